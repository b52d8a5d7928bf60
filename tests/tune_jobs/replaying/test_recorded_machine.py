"""What a recording says: of its machine, of its waits, and where no simulation explains them."""

import json
from pathlib import Path

import pytest

from tune_jobs import cli

Shown = pytest.CaptureFixture[str]
HEAD = "arrival,duration,processors,estimate,wait,queue"
# 3 processors from 0 to 100 and 4 from 50 to 150; 2 start at 150, when the 4 are given back.
ROWS = ("0,100,3,100,0,a", "10,100,4,100,40,b", "20,60,2,60,130,b")


def run(capsys: Shown, folder: Path, *line: str, rows: tuple[str, ...] = ROWS) -> str:
    path = folder / "jobs.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    assert cli.run(cli.metasched, [line[0], str(path), *line[1:]]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_machine_that_nobody_names_is_what_was_in_use_at_once(
    tmp_path: Path, capsys: Shown
) -> None:
    shown = run(capsys, tmp_path, "trace")
    assert "processors 7 " in shown
    assert "nobody says how many processors there are: as many as were in use at once" in shown
    assert "cannot give" not in shown
    shown = run(capsys, tmp_path, "trace", rows=tuple(row.replace(",a", ",") for row in ROWS[:1]))
    assert "processors 3 " in shown


def test_without_waits_it_is_the_largest_job(tmp_path: Path, capsys: Shown) -> None:
    shown = run(capsys, tmp_path, "trace", rows=("0,100,3,,,", "0,100,4,,,"))
    assert "processors 4 " in shown
    assert "as many as the largest job has" in shown


@pytest.mark.parametrize("line", [("trace",), ("replay", "--policies", "fcfs")])
def test_a_recording_that_does_not_fit_its_machine_is_said(
    tmp_path: Path, capsys: Shown, line: tuple[str, ...]
) -> None:
    words = "as recorded, jobs held 7 processors at once, which a machine of 5 cannot give"
    assert words in run(capsys, tmp_path, *line, "--processors", "5")
    assert "--partition NAME takes one of its 2 queues" in run(
        capsys, tmp_path, *line, "--processors", "6"
    )
    assert words not in run(capsys, tmp_path, *line, "--processors", "7")


def test_one_partition_is_a_log_of_its_own(tmp_path: Path, capsys: Shown) -> None:
    shown = run(capsys, tmp_path, "trace", "--partition", "b")
    assert "jobs 2 " in shown
    assert "processors 4 " in shown
    assert "is of another partition than b 1 2" in shown
    line = ["trace", str(tmp_path / "jobs.csv"), "--partition", "c"]
    assert cli.run(cli.metasched, line) == 2
    assert "of the partition or queue 'c'; there are b (2 jobs), a (1 jobs)" in (
        capsys.readouterr().err
    )


def test_partitions_of_swf_are_those_of_the_last_fields(tmp_path: Path, capsys: Shown) -> None:
    path = tmp_path / "site.swf"
    lines = (f"{k} {k} 0 60 {k} -1 -1 {k} 90 -1 1 1 1 -1 7 {k % 2 + 1} -1 -1" for k in (1, 2, 3))
    path.write_text("\n".join(["; MaxProcs: 64", *lines]) + "\n")
    for name, jobs in (("1", 1), ("2", 2), ("7", 3)):
        assert cli.run(cli.metasched, ["trace", str(path), "--partition", name]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert f"jobs {jobs} " in shown
        assert ("processors 64 " in shown) == (jobs == 3)  # the header is that of the whole


def test_replay_begins_with_what_was_recorded(tmp_path: Path, capsys: Shown) -> None:
    run(capsys, tmp_path, "trace")
    line = ["replay", str(tmp_path / "jobs.csv"), "--processors", "7", "--policies", "fcfs,sjf"]
    assert cli.run(cli.metasched, [*line, "--json"]) == 0
    recorded, *others = json.loads(capsys.readouterr().out)["replay"]
    assert recorded["policy"] == "as recorded"
    assert {row["policy"] for row in others} == {"fcfs", "sjf"}
    assert recorded["mean_wait"] == pytest.approx((0 + 40 + 130) / 3)
    assert recorded["longest_wait"] == 130
    assert recorded["makespan"] == 150 + 60
    assert recorded["bounded_slowdown"] == pytest.approx((1 + 1.4 + 190 / 60) / 3)
    work = 100 * 3 + 100 * 4 + 60 * 2
    assert recorded["to_end"] == pytest.approx(work / 7 / 210)
    # Where jobs come faster than they did, the recorded waits are not of these arrivals.
    assert cli.run(cli.metasched, [*line, "--json", "--set", "task.workload.stretch=0.5"]) == 0
    rows = json.loads(capsys.readouterr().out)["replay"]
    assert {row["policy"] for row in rows} == {"fcfs", "sjf"}


def test_waits_that_nothing_here_explains_are_said(tmp_path: Path, capsys: Shown) -> None:
    rows = tuple(f"{100 * k},90,1,90,{3000 if k % 2 else 10}," for k in range(40))
    shown = run(capsys, tmp_path, "replay", "--processors", "64", "--policies", "fcfs", rows=rows)
    assert "as recorded, the mean wait was 25.1 min, here it is at most 0 s" in shown
    shown = run(capsys, tmp_path, "replay", "--processors", "64", "--calibrate", rows=rows)
    assert "Can this log be replayed? Not: under priority:conservative, the one policy" in shown


def test_a_rule_that_cannot_carry_the_load_is_named(tmp_path: Path, capsys: Shown) -> None:
    # A job of one processor and a job of three, in turn, which cannot share three processors.
    rows = tuple(f"{50 * k},90,{1 + k % 2 * 2},90,," for k in range(200))
    line = ("replay", "--policies", "fcfs:strict", "--processors")
    words = "fcfs:strict cannot keep up with these jobs: the last one ends after"
    assert words not in run(capsys, tmp_path, *line, "4", rows=rows)
    assert words in run(capsys, tmp_path, *line, "3", rows=rows)
