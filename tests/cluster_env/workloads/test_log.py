"""One workload for logs: in each world the same windows, splits, formats and options."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.spec import build_world
from cluster_env.task import build_workload
from cluster_env.workloads import sample_jobsets
from cluster_env.workloads.log import LogWorkload
from cluster_env.workloads.swf import write_swf

HOUR = 3600
STEPS_OF_A_SECOND: dict[str, dict[str, Any]] = {
    "hpc": {},
    "deeprm": {"log_format": "auto", "window": HOUR},
}
"""Options with which a step of each world that reads logs is a second."""
ONE_RESOURCE = {"kind": "deeprm", "cluster": {"capacity": [16], "horizon": 255}}
MACHINES: dict[str, dict[str, Any]] = {
    "hpc": {"kind": "hpc", "processors": 16},
    "deeprm": ONE_RESOURCE,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A job every two minutes for 40 hours; its run time tells which one it is."""
    count = np.arange(1200)
    columns = {"submit": 120 * count, "run": 1 + count % 255, "processors": 1 + count // 255}
    write_swf(tmp_path / "jobs.swf", columns)
    return tmp_path / "jobs.swf"


def log_of(world: str, path: Path, **options: Any) -> LogWorkload:
    given = {"path": path, **STEPS_OF_A_SECOND[world], **options}
    workload = build_workload(build_world(MACHINES[world]), "trace", given)
    assert isinstance(workload, LogWorkload)
    return workload


def which(jobset: JobSet) -> list[int]:
    """Which jobs of the log a jobset has, by their run times and sizes."""
    return (jobset.duration - 1 + 255 * (jobset.demand[:, 0] - 1)).tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"window": 5 * HOUR, "offset": 7, "whole": True},
        {"window": HOUR, "block": HOUR},
        {"window": HOUR, "block": HOUR, "warmup": HOUR},
        {"window": HOUR, "block": 600, "splits": (0.5, 0.6), "stretch": 0.5},
    ],
)
def test_a_window_is_the_same_in_every_world(path: Path, options: dict[str, Any]) -> None:
    hpc, other = log_of("hpc", path, **options), log_of("deeprm", path, **options)
    for split in Split:
        for one, two in zip(
            sample_jobsets(hpc, 0, split, range(5)),
            sample_jobsets(other, 0, split, range(5)),
            strict=True,
        ):
            assert which(one) == which(two)
            assert np.array_equal(one.arrival, two.arrival)
            assert np.array_equal(one.counted, two.counted)
            assert one.window == two.window


@pytest.mark.parametrize("world", MACHINES)
def test_in_every_world_the_splits_share_no_job(path: Path, world: str) -> None:
    workload = log_of(world, path)
    seen = [
        {job for jobset in sample_jobsets(workload, 0, split, range(60)) for job in which(jobset)}
        for split in Split
    ]
    # 1200 jobs in parts of 60, 20 and 20 % of the time.
    assert [min(jobs) // 240 for jobs in seen] == [0, 3, 4]
    assert [max(jobs) // 240 for jobs in seen] == [2, 3, 4]


@pytest.mark.parametrize("world", MACHINES)
def test_in_every_world_a_log_of_slurm_may_name_its_time_zone(tmp_path: Path, world: str) -> None:
    rows = [
        f"{k};COMPLETED;2026-06-30T{k // 60:02}:{k % 60:02}:00;2026-06-30T{k // 60:02}:"
        f"{k % 60:02}:00;2026-06-30T{k // 60:02}:{k % 60:02}:30;4"
        for k in range(1, 1400)
    ]
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join(["JobID;State;Submit;Start;End;NCPUS", *rows]))
    utc, tokyo = (
        log_of(world, path, log_format="sacct", time_zone=zone) for zone in ("", "Asia/Tokyo")
    )
    assert (utc.recorded.submit - tokyo.recorded.submit == 9 * HOUR).all()


def test_steps_of_deeprm_may_be_minutes_and_units_several_processors(path: Path) -> None:
    options = {"seconds": 60, "units": (2,), "window": 30}
    (jobset,) = sample_jobsets(log_of("deeprm", path, **options), 0, Split.TRAIN, [0])
    assert jobset.window == 30
    assert np.diff(jobset.arrival).tolist() == [2] * (jobset.num_jobs - 1)
    (whole,) = sample_jobsets(
        log_of("deeprm", path, window=2000, offset=0, whole=True, seconds=60, units=(2,)),
        *(0, Split.TRAIN, [0]),
    )
    assert whole.duration[:200].tolist() == [-(-(1 + k) // 60) for k in range(200)]
    assert whole.demand[::255, 0].tolist() == [1, 1, 2, 2]  # of 1 to 4 processors
    for wrong, words in (({"seconds": 0}, "1 or more"), ({"units": (2, 2)}, "cluster's 1 resour")):
        with pytest.raises(InputError, match=words):
            log_of("deeprm", path, **wrong)


def test_a_window_at_an_offset_without_jobs_is_refused(tmp_path: Path) -> None:
    write_swf(
        tmp_path / "gap.swf", {"submit": [0, 5000, 9000], "run": [1] * 3, "processors": [1] * 3}
    )
    log = log_of("hpc", tmp_path / "gap.swf", whole=True, window=60, offset=100)
    with pytest.raises(InputError, match="in the 60 seconds from offset 100 on"):
        log.sample(np.random.default_rng(0))
