"""What a real Slurm wrote, read row by row."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.workloads.formats import read_log
from cluster_env.workloads.recorded import RecordedJobs
from tests.golden import stored

# line, second of arrival (after 10:55:21 or 10:40:22), wait, run, limit, processors, MiB, GPUs
SACCT = """
2 0 1 2 300 4 4096 0
6 0 1 2 300 2 3072 2
8 0 2 1 183900 1 100 0
10 0 2 1 3600 1 100 0
12 0 2 3 300 1 100 0
14 0 2 1 300 1 100 0
16 0 2 3 300 1 100 0
18 1 1 1 120 1 100 0
20 1 1 1 120 1 100 0
22 3 0 1 120 1 100 0
24 3 0 1 120 1 100 0
26 1 1 1 180 3 3072 0
33 4 0 1 300 1 100 0
37 1 1 1 300 64 6400 8
40 1 2 1 300 1 262144 0
42 1 1 1 183900 1 100 0
51 35 0 1 600 64 6400 0
53 35 0 1 600 64 6400 0
55 35 0 1 600 64 6400 0
"""
JOBCOMP = """
1 0 1 8 60 64 6400 0
2 1 0 8 60 64 6400 0
3 0 1 8 60 64 6400 0
4 0 1 8 60 64 6400 0
5 2 7 1 60 48 4800 0
6 900 1 1 120 1 100 0
7 900 1 1 120 1 100 0
8 899 2 1 300 1 100 0
9 899 2 1 300 1 100 0
10 902 0 1 120 1 100 0
11 902 0 1 120 1 100 0
13 899 2 3 300 1 100 0
"""


@pytest.fixture
def slurm(golden: Path) -> Path:
    """Folder of what Slurm wrote; a test is skipped where it is absent."""
    return stored(golden / "slurm")


def rows(jobs: RecordedJobs) -> list[list[int]]:
    assert jobs.wait is not None
    columns = [jobs.line, jobs.submit - jobs.submit[0], jobs.wait, jobs.run, jobs.estimate]
    return sorted(np.column_stack([*columns, jobs.demand]).tolist())


def expected(table: str) -> list[list[int]]:
    return [[int(cell) for cell in line.split()] for line in table.strip().splitlines()]


def dropped(jobs: RecordedJobs) -> dict[str, tuple[int, int]]:
    return {one.reason: (one.count, one.line) for one in jobs.dropped}


def noticed(jobs: RecordedJobs) -> dict[str, int]:
    return {one.what: one.count for one in jobs.noticed}


def test_the_export_of_sacct_row_by_row(slurm: Path) -> None:
    jobs = read_log(slurm / "sacct_sample.txt")
    assert jobs.resources == ("processors", "memory", "gpus")
    assert rows(jobs) == expected(SACCT)
    assert int(jobs.submit[0]) == 1795344921  # 2026-11-22T10:55:21 in UTC
    assert dropped(jobs) == {
        "is a step of a job": (28, 3),
        "is part of a heterogeneous job, counted once": (1, 29),
        "has no run time above 0": (1, 31),
        "was still running": (4, 35),
        "was still waiting": (2, 39),
    }
    assert jobs.rows == 55 == jobs.num_jobs + sum(one.count for one in jobs.dropped)
    assert noticed(jobs) == {
        "has times without a zone": 27,
        "has no time limit (UNLIMITED): the log's longest counts": 1,
        "has the delimiter in its name: put together": 1,
        "ended in a requeue: each run is a job": 1,
        "element of an array: a job of its own": 4,
        "was eligible later than submitted: arrives then": 5,
        "is heterogeneous: its parts start together": 1,
        "holds more processors than it asked for": 4,
    }
    assert {name: values.tolist() for name, values in jobs.names.items()} == {
        "user": ["root"],
        "group": ["physics"],
        "queue": ["main"],
        "qos": ["normal"],
    }


def test_the_file_of_jobcomp_row_by_row(slurm: Path) -> None:
    jobs = read_log(slurm / "jobcomp_sample.txt")
    assert rows(jobs) == expected(JOBCOMP)
    assert dropped(jobs) == {"was cancelled before it started": (1, 12)}
    assert jobs.rows == 13
    assert noticed(jobs) == {
        "has times without a zone": 13,
        "has no time limit (UNLIMITED): the log's longest counts": 1,
        "ended in a requeue: each run is a job": 1,
        "element of an array: a job of its own": 4,
        "was eligible later than submitted: arrives then": 4,
    }
    assert jobs.optional == ("memory", "gpus")  # GPUs stand in it with slurmdbd alone
    assert jobs.names["group"].tolist() == ["physics", "root"]  # an account, or else the group


def test_both_say_the_same_of_the_jobs_that_both_hold(slurm: Path) -> None:
    first, second = (read_log(slurm / f"{name}_sample.txt") for name in ("sacct", "jobcomp"))
    start = second.submit[0] + 899
    of_both = sorted(row[1:5] for row in rows(second) if row[1] >= 899)
    others = [[row[1] + first.submit[0] - start + 899, *row[2:5]] for row in rows(first)]
    # The longest limit of each file stands for none, and differs.
    for row in of_both:
        assert row in others or [*row[:3], 183900] in others
