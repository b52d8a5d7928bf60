"""What an engineer does first: describe the site's log, replay it, compare every rule on weeks."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from cluster_env.worlds.hpc import SPEC
from tests.tune_jobs.replaying.site_log import LOAD, MACHINE, write_site_log
from tune_jobs import cli
from tune_jobs.tables.frames import read_table

pytestmark = pytest.mark.rendered

Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site_log(tmp_path_factory.mktemp("site") / "jobs.csv")


def run(capsys: Shown, *args: str) -> str:
    assert cli.run(cli.metasched, list(args)) == 0
    return capsys.readouterr().out


def has_content(image: Path) -> bool:
    """Whether a picture has many colors, and is as wide as a page."""
    pixels = imread(image)[..., :3]
    return bool(pixels.shape[1] >= 1600 and pixels.std() > 0.05)


def test_trace_describes_the_log(log: Path, tmp_path: Path, capsys: Shown) -> None:
    shown = run(capsys, "trace", str(log), *MACHINE, "--out", str(tmp_path / "out"))
    for words in ("jobs  ", "5,000", "users", "none was left out", "under fcfs:easy", "ada"):
        assert words in shown
    (load,) = re.findall(r"^load of processors {26}(\d+\.\d)%$", shown, re.MULTILINE)
    assert float(load) / 100 == pytest.approx(LOAD, abs=0.005)
    tables = shown.partition("\n\nWrote")[0].splitlines()
    assert max(map(len, tables)) <= 80
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {
        *("trace.png", "trace.csv", "times.csv", "sizes.csv", "by-size.csv", "by-week.csv"),
        *("estimates.csv", "by-user.csv", "site.yaml", "schedule-fcfs-easy.csv", "waits.csv"),
        *("gantt-fcfs-easy.png", "waiting-by-user.csv", "waiting-by-user.png", "waits.png"),
        "summary.csv",
    }
    assert has_content(tmp_path / "out" / "trace.png")
    weeks = read_table(tmp_path / "out" / "by-week.csv", ["week", "load_processors"])
    assert sum(int(row["jobs"]) for row in weeks) == 5000
    spans = np.full(len(weeks), 7.0)
    spans[-1] = float(
        json.loads(run(capsys, "trace", str(log), *MACHINE, "--json"))["facts"][
            "time from first to last submission"
        ]
    ) / 86_400 - 7 * (len(weeks) - 1)
    load = [float(row["load_processors"]) for row in weeks]
    assert np.average(load, weights=spans) == pytest.approx(LOAD, abs=0.005)


def test_replay_shows_what_two_rules_would_have_done(
    log: Path, tmp_path: Path, capsys: Shown
) -> None:
    line = ["replay", str(log), *MACHINE, "--policies", "fcfs:easy", "--policies", "sjf:easy"]
    shown = run(capsys, *line, "--out", str(tmp_path / "out"))
    tables = shown.partition("\n\nWrote")[0].splitlines()[1:]  # the first line names the file
    assert max(map(len, tables)) <= 80
    found = {row["policy"]: row for row in json.loads(run(capsys, *line, "--json"))["replay"]}
    first, shortest = found["fcfs:easy"], found["sjf:easy"]
    assert shortest["bounded_slowdown"] < first["bounded_slowdown"]
    assert shortest["longest_wait"] > first["longest_wait"]  # the price
    for name, row in found.items():
        schedule = schedule_of(tmp_path / "out" / f"schedule-{name.replace(':', '-')}.csv")
        assert schedule["wait"].mean() == pytest.approx(row["mean_wait"])
        assert schedule["wait"].max() == row["longest_wait"]
        turnaround = schedule["wait"] + schedule["duration"]
        slowdown = np.maximum(turnaround / np.maximum(schedule["duration"], 10), 1)
        assert slowdown.mean() == pytest.approx(row["bounded_slowdown"])
        assert turnaround.mean() == pytest.approx(row["turnaround"])
        makespan = schedule["finish"].max() - schedule["submit"].min()
        assert makespan == row["makespan"]
        used = (schedule["duration"] * schedule["processors"]).sum() / 16 / makespan
        assert used == pytest.approx(row["to_end_processors"])
        assert_fits(schedule)
        assert has_content(tmp_path / "out" / f"gantt-{name.replace(':', '-')}.png")
    assert has_content(tmp_path / "out" / "timeline.png")
    sizes = json.loads(run(capsys, *line, "--json"))["by-size"]
    assert sum(sizes[0][f"jobs_{size}"] for size in ("narrow", "medium", "wide")) == 5000


def schedule_of(path: Path) -> dict[str, np.ndarray]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([int(row[name]) for row in rows]) for name in rows[0] if name != "user"}


def assert_fits(schedule: dict[str, np.ndarray]) -> None:
    """At no moment more is in use than there is, and nobody starts before the submission."""
    assert (schedule["start"] >= schedule["submit"]).all()
    for name, units in (("processors", 16), ("gpus", 4)):
        at = np.concatenate([schedule["start"], schedule["finish"]])
        change = np.concatenate([schedule[name], -schedule[name]])
        in_use = np.cumsum(change[np.lexsort((change, at))])  # at an instant, finishes first
        assert in_use.max() <= units


def test_compare_takes_every_rule_on_windows_of_weeks(
    log: Path, tmp_path: Path, capsys: Shown
) -> None:
    site = f"--set task.world.kind=hpc {shlex.join(MACHINE)} --set task.workload.trace={log}"
    line = f"compare {site} --window {2 * 7 * 86_400} --warmup {2 * 86_400} --jobsets 3 --json"
    rows = json.loads(run(capsys, *shlex.split(line), "--out", str(tmp_path / "out")))
    assert [row["policy"] for row in rows] == list(SPEC.heuristics.names())
    assert {row["metric"] for row in rows} == {"bounded_slowdown"}
    for row in rows:
        for price in ("utilization", "utilization_to_end", "wait", "longest_wait", "makespan"):
            assert row[price] > 0
        assert row["bounded_slowdown_narrow"] >= 1
        assert row["warmup"] == 2 * 86_400
    assert has_content(tmp_path / "out" / "comparison.png")


def test_compare_measures_long_windows_if_nobody_says_how_long(log: Path, capsys: Shown) -> None:
    line = ["compare", "--set", "task.world.kind=hpc", *MACHINE, "--policies", "fcfs"]
    line += ["--set", f"task.workload.trace={log}", "--jobsets", "2"]
    (row,) = json.loads(run(capsys, *line, "--json"))
    mean_run = np.loadtxt(log, delimiter=",", skiprows=1, usecols=1).mean()
    assert row["warmup"] > 5 * mean_run
    assert row["window_s"] - 2 * row["warmup"] >= 20 * mean_run
    assert "not counted" in run(capsys, *line).splitlines()[0]
