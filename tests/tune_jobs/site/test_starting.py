"""Start times at a site: from its queue and its log, what Slurm says, and the bound."""

import json
from pathlib import Path

import pytest

from rllib_configs.snapshot import RUNNING, WAITING, SiteJob, SiteNode, Snapshot
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs import cli
from tune_jobs.site.deciding import NO_PAST, Limits, decide
from tune_jobs.site.journal import open_journal, tick_entry

NOW = 1_800_000_000
QUEUE = (
    SiteJob("1", RUNNING, "", "ada", "", NOW - 900, NOW - 600, 3600, 16, 0, 0),
    SiteJob("2", WAITING, "", "bob", "", NOW - 300, 0, 1800, 16, 0, 0, expected=NOW + 3000),
    SiteJob("3", WAITING, "", "cyd", "", NOW - 200, 0, 1800, 1, 0, 0),
    SiteJob("4", WAITING, "", "cyd", "", NOW - 100, 0, 1800, 17, 0, 0),  # never fits
)
EXACT = "arrival,duration,estimate,processors,user\n" + "".join(
    f"{1000 * k},60,60,1,ada\n" for k in range(20)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snapshot = Snapshot(NOW, QUEUE, (SiteNode("all", 16, 0, 0, 0, 0, 0),))
    decision = decide(snapshot, lambda queue: _Nothing, Limits(), WAITING)
    write = open_journal(Path("seen.jsonl"))
    write(tick_entry(1, "", Limits(), WAITING, snapshot, NO_PAST, decision))
    Path("exact.csv").write_text(EXACT)
    return tmp_path


class _Nothing:
    starts, planned, scores = (), {}, {}


def metasched(*words: str) -> int:
    return cli.run(cli.metasched, words)


def test_a_queue_of_exact_users_starts_when_estimates_say(folder, capsys):
    words = ("--past", "exact.csv", "--repeat", "seen.jsonl", "--instants", "0", "--futures", "5")
    assert metasched("starts", "fcfs:strict", *words, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    second, third = data["starts"]
    assert data["time"] == NOW
    # Job 1 runs to its limit, 3,000 seconds from now; then job 2, 1,800 more.
    assert second == {
        "job": "2",
        "expected": NOW + 3000,
        "plan": NOW + 3000,
        "at": [*[NOW + 3000] * 4, NOW + 3060],
        "latest": None,
        "not_simulated": [],
    }
    assert (third["job"], third["expected"], third["at"]) == (
        "3",
        0,
        [*[NOW + 4800] * 4, NOW + 4860],
    )


def test_people_see_slurms_own_time_and_the_guaranteed_one(folder, capsys):
    words = ("--past", "exact.csv", "--repeat", "seen.jsonl", "--instants", "4", "--futures", "5")
    assert metasched("starts", "fcfs:easy", *words, "--max-wait", "1h") == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "Starts under fcfs:easy, from now on"
    assert head.split()[2:4] == ["Slurm", "median"]
    assert head.endswith("latest")
    # Overdue in 3,300 s; what starts until then ends 3,600 s later.
    assert rows[0].split()[:5] == ["2", "5", "min", "50", "min"]
    assert rows[0].endswith("115 min")
    assert any(row.startswith("Guaranteed, if no job") for row in rows)


def test_shadow_writes_start_times_beside_its_advice(folder, capsys):
    write_site_log(folder / "jobs.csv", 300)
    site = ("--simulate", "jobs.csv", "--processors", "16", "--gpus", "4", "--speed", "3000000")
    words = ("--starts", "jobs.csv", "--instants", "0", "--futures", "3", "--tick", "0.01")
    assert metasched("shadow", "sjf:easy", *site, *words, "--ticks", "3", "--out", "s.jsonl") == 0
    ticks = [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()]
    for tick in ticks:
        waiting = [job[0] for job in tick["snapshot"]["jobs"] if job[1] == WAITING]
        assert sorted(one["job"] for one in tick["start_times"]) == sorted(waiting)
    assert metasched("shadow", "sjf:easy", "--repeat", "s.jsonl") == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fcfs:easy", "--past", "exact.csv"), "squeue is not on PATH"),
        (("fcfs:easy", "--past", "none.csv", "--repeat", "seen.jsonl"), "none.csv: No such file"),
        (("fcfs:easy", "--past", "exact.csv", "--repeat", "exact.csv"), "is no line of a journal"),
        (("slj:easy", "--past", "exact.csv", "--repeat", "seen.jsonl"), "'slj:easy'"),
        (("fcfs", "--past", "exact.csv", "--repeat", "seen.jsonl", "--max-wait", "x2"), "a time"),
        (("fcfs", "--repeat", "seen.jsonl"), "--past"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_with_status_2(
    words, said, folder, capsys, monkeypatch
):
    monkeypatch.setenv("PATH", str(folder))
    assert metasched("starts", *words) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1


def test_a_record_of_before_slurms_own_times_were_read_has_none(folder, capsys):
    entry = json.loads(Path("seen.jsonl").read_text())
    entry["snapshot"]["jobs"] = [row[:13] for row in entry["snapshot"]["jobs"]]
    Path("old.jsonl").write_text(json.dumps(entry) + "\n")
    words = ("--past", "exact.csv", "--repeat", "old.jsonl", "--instants", "0", "--futures", "2")
    assert metasched("starts", "fcfs:strict", *words, "--json") == 0
    assert [one["expected"] for one in json.loads(capsys.readouterr().out)["starts"]] == [0, 0]
