"""Calibration: the simulator recognizes the rule that made a log, and says where it does not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.workloads import HPCLog
from tests.tune_jobs.replaying.site_log import write_site_log
from tests.tune_jobs.replaying.slurm_export import Job, write_export
from tune_jobs import cli
from tune_jobs.tables.frames import read_table

MACHINE = ("--processors", "16", "--gpus", "4")
MADE_BY = "sjf:conservative"
Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a site that schedules by a rule that the simulator has."""
    folder = tmp_path_factory.mktemp("site")
    path = write_site_log(folder / "jobs.csv", 900)
    workload = HPCLog(path, (16, 4), ("processors", "gpus"), jobs=0, whole=True)
    world, read = HPC(processors=16, gpus=4), workload.recorded
    jobset = workload.part(Split.TRAIN).sample(np.random.default_rng(0))
    schedule = evaluate(get_heuristic(MADE_BY, world), [jobset], world)
    wait = dict(zip(schedule.job, schedule.start - schedule.arrival, strict=True))
    users = read.names["user"][read.ids["user"]]
    jobs: list[Job] = [
        (
            *(int(read.submit[k]), int(wait[k]), int(read.run[k]), int(read.estimate[k])),
            *(int(read.demand[k, 0]), int(read.demand[k, 1]), str(users[k])),
        )
        for k in range(read.num_jobs)
    ]
    return write_export(folder / "jobs.txt", jobs)


def calibrate(capsys: Shown, *args: str) -> Any:
    assert cli.run(cli.metasched, ["replay", *args, "--calibrate", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_rule_that_made_the_log_is_found_to_the_second(log: Path, capsys: Shown) -> None:
    found = calibrate(capsys, str(log), *MACHINE, "--policies", f"fcfs:easy,{MADE_BY},saf:strict")
    best, *others = found["fidelity"]
    assert best["policy"] == MADE_BY
    assert best["gain"] == best["ratio"] == best["near"] == 1
    assert best["rank"] == pytest.approx(1)
    assert best["difference"] == 0
    assert best["recorded"] == best["simulated"] > 3600
    assert all(other["gain"] < 0.9 for other in others)
    for sheet in ("fidelity-by-week", "fidelity-by-class"):
        assert {row["difference"] for row in found[sheet]} == {0}
    assert sum(row["jobs"] for row in found["fidelity-by-week"]) == 900
    assert [row["class"] for row in found["fidelity-by-class"]][:3] == ["narrow", "medium", "wide"]


@pytest.mark.rendered
def test_another_rule_says_by_how_much_it_is_off_and_where(
    log: Path, tmp_path: Path, capsys: Shown
) -> None:
    line = ["replay", str(log), *MACHINE, "--calibrate", "--policies", "fcfs:easy"]
    assert cli.run(cli.metasched, [*line, "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.partition("\n\nWrote")[0].splitlines()[1:])) <= 80
    assert "It does not simulate limits of users" in " ".join(shown.split())
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {
        *("calibration.png", "calibration.csv", "fidelity.csv"),
        *("fidelity-by-week.csv", "fidelity-by-class.csv"),
    }
    pixels = imread(tmp_path / "out" / "calibration.png")[..., :3]
    assert pixels.shape[1] >= 1600
    assert pixels.std() > 0.05
    weeks = read_table(tmp_path / "out" / "fidelity-by-week.csv", ["week", "jobs", "simulated"])
    (whole,) = read_table(tmp_path / "out" / "fidelity.csv", ["jobs", "simulated"])
    total = sum(float(row["jobs"]) * float(row["simulated"]) for row in weeks)
    assert total / 900 == pytest.approx(float(whole["simulated"]))


def test_the_site_s_weights_count(log: Path, capsys: Shown) -> None:
    found = []
    for weights in ("{age: 1, size: 0, fair_share: 0}", "{age: 0, size: 1, fair_share: 0}"):
        more = ("--policies", "priority:easy", "--set", f"task.world.priority={weights}")
        found.append(calibrate(capsys, str(log), *MACHINE, *more)["fidelity"][0]["simulated"])
    assert found[0] != found[1]


CONF = """
PriorityType=priority/multifactor
PriorityWeightAge=70
PriorityWeightJobSize=5
NodeName=n1 CPUs=16 Gres=gpu:4
"""


def test_slurm_conf_says_what_the_user_does_not(log: Path, tmp_path: Path, capsys: Shown) -> None:
    """A site of one node is a pool."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF)
    found = calibrate(capsys, str(log), "--site", str(conf))
    weights = "task.world.priority={age: 70, size: 5, fair_share: 0}"
    line = (*MACHINE, "--policies", "priority:conservative", "--set", weights)
    (as_pool,) = calibrate(capsys, str(log), *line)["fidelity"]
    (at_site,) = found["fidelity"]
    assert (at_site["policy"], at_site["simulated"]) == (as_pool["policy"], as_pool["simulated"])
    other = calibrate(capsys, str(log), "--site", str(conf), "--policies", "priority:strict")
    assert other["fidelity"][0]["simulated"] != at_site["simulated"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--calibrate", "does not record how many processors the machine has"),
        ("--processors 16 --gpus 4 --calibrate --policies fcsf", "did you mean 'fcfs'?"),
        ("--processors 16 --gpus 4 --calibrate --policies hpc-order", "hpc-order is none"),
        ("--calibrate --site nowhere.conf", "cannot read the site nowhere.conf"),
        (
            "--processors 16 --gpus 4 --calibrate --policies fcfs --set task.world.max_time=9",
            "some jobs do not end before max_time",
        ),
    ],
)
def test_what_cannot_be_calibrated_is_refused(
    log: Path, line: str, words: str, capsys: Shown
) -> None:
    assert cli.run(cli.metasched, ["replay", str(log), *line.split()]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err


def test_a_log_without_waits_has_nothing_to_be_compared_with(tmp_path: Path, capsys: Shown) -> None:
    path = write_site_log(tmp_path / "jobs.csv", 20)
    assert cli.run(cli.metasched, ["replay", str(path), *MACHINE, "--calibrate"]) == 2
    assert "does not record the wait of every job" in capsys.readouterr().err
