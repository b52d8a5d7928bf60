"""Slurm's own records in every command that takes a log: the same jobs give the same numbers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.seeding import Split
from meta.tasks import read_task
from rllib_configs.config.loading import load_config
from tests.tune_jobs.replaying.slurm_export import Job, write_as_csv, write_export
from tune_jobs import cli

MACHINE = ("--processors", "16", "--gpus", "4")
Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same 400 jobs as an export and as CSV."""
    rng = np.random.default_rng(4)
    jobs: list[Job] = []
    arrival = 0
    for _ in range(400):
        arrival += int(rng.integers(1, 900))
        run = int(rng.integers(30, 3000))
        limit = 60 * int(rng.integers(run // 60 + 1, 3 * run // 60 + 3))
        size, gpus = int(rng.integers(1, 9)), int(rng.integers(0, 3))
        user = str(rng.choice(["ada", "bob", "cyd"]))
        jobs.append((arrival, int(rng.integers(0, 500)), run, limit, size, gpus, user))
    folder = tmp_path_factory.mktemp("slurm")
    return write_export(folder / "jobs.txt", jobs), write_as_csv(folder / "jobs.csv", jobs)


def run(capsys: Shown, *args: str) -> Any:
    assert cli.run(cli.metasched, [*args]) == 0
    return json.loads(capsys.readouterr().out)


def test_trace_says_the_same_and_counts_the_steps(logs: tuple[Path, Path], capsys: Shown) -> None:
    ours, plain = (run(capsys, "trace", str(path), *MACHINE, "--json") for path in logs)
    assert ours.pop("dropped") == [
        {"because_the_job": "is a step of a job", "jobs": 400, "first_in_line": 3}
    ]
    assert plain.pop("dropped") == []
    assert ours == plain


def test_replay_plays_the_same(logs: tuple[Path, Path], capsys: Shown) -> None:
    line = ("--policies", "sjf:easy,priority:conservative", "--json")
    ours, plain = (run(capsys, "replay", str(path), *MACHINE, *line) for path in logs)
    assert ours["replay"] == plain["replay"]
    assert ours["by-user"] == plain["by-user"]


def test_compare_compares_the_same(logs: tuple[Path, Path], capsys: Shown) -> None:
    line = ("--set", "task.world.kind=hpc", "--policies", "sjf,saf", "--jobsets", "3", "--json")
    ours, plain = (
        run(capsys, "compare", *line, *MACHINE, "--set", f"task.workload.trace={path}")
        for path in logs
    )
    for one, other in zip(ours, plain, strict=True):
        named = {"trace": "", "jobs": ""}
        assert one | named == other | named


def test_train_and_adapt_draw_the_same_jobsets(logs: tuple[Path, Path]) -> None:
    drawn = []
    for path in logs:
        settings = [f"task.workload.trace={path}", "task.world.processors=16", "task.world.gpus=4"]
        trained = load_config("hpc-smoke", settings).task
        drawn.append(trained.build("t", 0).jobsets(Split.TRAIN, range(3)))
        adapted = read_task([f"workload.trace={path}", "workload.jobs=12"], trained.at_point())
        drawn[-1] += adapted.jobsets(Split.TRAIN, range(3))
    for ours, plain in zip(*drawn, strict=True):
        np.testing.assert_array_equal(ours.arrival, plain.arrival)
        np.testing.assert_array_equal(ours.demand, plain.demand)
        np.testing.assert_array_equal(ours.attributes["estimate"], plain.attributes["estimate"])
    assert drawn[0][-1].num_jobs == 12


def test_hashed_users_stand_nowhere_in_what_is_shown_and_written(
    logs: tuple[Path, Path], tmp_path: Path, capsys: Shown
) -> None:
    for name, more in (("trace", ()), ("replay", ("--policies", "sjf:easy"))):
        out = tmp_path / name
        line = [name, str(logs[0]), *MACHINE, *more, "--hash-users", "--out", str(out)]
        assert cli.run(cli.metasched, line) == 0
        texts = [capsys.readouterr().out, *(path.read_text() for path in out.glob("*.csv"))]
        assert any("user-" in text for text in texts[1:])
        for text in texts:
            assert not re.search(r"\b(ada|bob|cyd|bio)\b", text)


def test_a_time_zone_and_a_format_can_be_said(tmp_path: Path, capsys: Shown) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "JobID;State;Submit;Start;End;NCPUS\n"
        "1;COMPLETED;2026-06-30T23:59:00;2026-07-01T00:10:00;2026-07-01T01:00:00;4\n"
    )
    shown = run(capsys, "trace", str(path), "--json", "--time-zone", "Asia/Tokyo")
    assert shown["facts"]["dates (UTC)"] == "2026-06-30 to 2026-06-30"
    assert shown["noticed"][0]["the_row"] == "has times without a zone"
    line = ("--set", "task.workload.time_zone=Pacific/Honolulu", "--log-format", "sacct")
    shown = run(capsys, "trace", str(path), "--json", *line)
    assert shown["facts"]["dates (UTC)"] == "2026-07-01 to 2026-07-01"
