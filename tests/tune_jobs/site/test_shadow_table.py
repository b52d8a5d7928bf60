"""What `shadow` shows on a terminal, and what scripts read elsewhere."""

import json

import pytest

from rllib_configs.snapshot import BLOCKED, RUNNING, WAITING, SiteJob, SiteNode, Snapshot, StartTime
from tests.tune_jobs.site.test_reporting import JOBS, metasched
from tune_jobs.site import reporting
from tune_jobs.site.deciding import Decision, Held, Start
from tune_jobs.site.shadow_table import MOST_ROWS, shadow_table

NOW = 10_000


def job(name, state=WAITING, *, reason="", expected=0):
    return SiteJob(
        *(name, state, reason, "ann", "batch", NOW - 600, 0, 300, 8, 0, 0, 1, 0), expected
    )


SNAPSHOT = Snapshot(
    NOW,
    (
        *(job("1", RUNNING), job("2", expected=NOW + 900), job("3"), job("4")),
        job("5", BLOCKED, reason="Dependency"),
    ),
    (SiteNode("n1", 8, 0, 0, 8, 0, 0),),
)
DECISION = Decision(
    (Start("3", "policy", 600, None),),
    (Held("4", "limit: 2 jobs per user of the qos urgent", None),),
    ("3", "2", "4"),
)


def test_the_table_has_what_the_policy_would_do_with_each_waiting_job():
    title, head, *rows = shadow_table(SNAPSHOT, DECISION, "sjf:easy").splitlines()
    assert "1 running, 4 waiting, 1 to start" in title
    assert head.split() == ["job", "user", "partition", "waited", "sjf:easy", "now", "Slurm:", "in"]
    assert [row.split()[0] for row in rows] == ["3", "2", "4", "5"]
    assert "start" in rows[0]
    assert "no room" in rows[1]
    assert rows[1].endswith("15 min")
    assert "held: limit: 2 jobs per user of the qos urgent" in rows[2]
    assert "Slurm: Dependency" in rows[3]
    assert all("10 min" in row for row in rows)


def test_start_times_stand_in_it_if_they_are_asked_for():
    times = [StartTime("2", 0, NOW, (NOW + 60, NOW, NOW + 120, NOW, NOW + 7200), None)]
    _, head, _, row, *_ = shadow_table(SNAPSHOT, DECISION, "sjf:easy", times).splitlines()
    assert "starts in  90% between" in head
    assert row.split()[-9:-2] == ["2", "min", "60", "s", "-", "2", "h"]
    times = [StartTime("2", 0, 0, None, None, ("licenses lab:1",))]
    _, head, _, row, *_ = shadow_table(SNAPSHOT, DECISION, "sjf:easy", times).splitlines()
    assert "not simulated" in head
    assert "licenses lab:1" in row
    assert "latest" not in head


def test_a_guaranteed_start_stands_beside_what_it_assumes():
    times = [StartTime("2", 0, NOW, (NOW + 60,) * 5, NOW + 3600)]
    text = shadow_table(SNAPSHOT, DECISION, "sjf:easy", times)
    _, head, _, row, *_ = text.splitlines()
    assert "latest" in head
    assert "60 min" in row
    assert "(Guaranteed, if no job runs" in text


def test_of_a_long_queue_the_first_jobs_are_shown():
    jobs = tuple(job(str(k)) for k in range(99))
    long = Decision((), (), tuple(one.job for one in jobs))
    text = shadow_table(Snapshot(NOW, jobs, ()), long, "fcfs:easy")
    assert len(text.splitlines()) == MOST_ROWS + 3
    assert "and 59 more" in text


@pytest.mark.parametrize(
    ("terminal", "words", "tables", "lines"),
    [
        (True, (), 2, None),
        (True, ("--out", "s.jsonl"), 2, 2),
        (False, (), 0, 2),
        (False, ("--out", "s.jsonl"), 0, 2),
    ],
)
def test_people_get_a_table_and_scripts_lines(
    terminal, words, tables, lines, tmp_path, monkeypatch, capfdbinary
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(JOBS)
    monkeypatch.setattr(reporting, "is_terminal", lambda stream: terminal)
    site = ("--simulate", "jobs.csv", "--processors", "16", "--speed", "600", "--tick", "0.02")
    assert metasched("shadow", "sjf:easy", *site, "--ticks", "2", *words) == 0
    out = capfdbinary.readouterr().out.decode()
    assert out.count(" running, ") == tables
    if lines is not None:
        written = (tmp_path / "s.jsonl").read_text() if "--out" in words else out
        entries = [json.loads(line) for line in written.splitlines()]
        assert [entry["kind"] for entry in entries] == ["tick"] * lines
