"""Recorded jobs before they become jobsets: parts of a log, other loads, other machines."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.recorded import RecordedJobs


def recorded(submit: list[int], size: list[int] | None = None) -> RecordedJobs:
    count = len(submit)
    return RecordedJobs.of(
        Path("log"),
        submit=np.array(submit),
        run=np.arange(1, count + 1),
        estimate=np.arange(2, count + 2),
        demand=np.array(size or [1] * count)[:, None],
        resources=("processors",),
        ids={"user": np.arange(count) % 2},
        line=np.arange(10, count + 10),
    )


def test_shares_of_the_time_have_every_job_once() -> None:
    jobs = recorded([100, 101, 149, 150, 179, 180, 199])  # 100 seconds
    parts = [jobs.between(*ends).submit.tolist() for ends in ((0, 0.5), (0.5, 0.8), (0.8, 1))]
    assert parts == [[100, 101, 149], [150, 179], [180, 199]]


def test_stretched_times_are_rounded_down_and_nothing_else_changes() -> None:
    jobs = recorded([100, 101, 103])
    half = jobs.stretched(0.5)
    assert half.submit.tolist() == [50, 50, 51]
    assert half.run.tolist() == jobs.run.tolist()
    assert jobs.stretched(1) is jobs
    for factor in (0, -1, float("inf"), float("nan")):
        with pytest.raises(InputError, match="factors above 0"):
            jobs.stretched(factor)


def test_jobs_that_are_too_large_are_counted_and_the_others_stay() -> None:
    fitting = recorded([5, 6, 7, 8], [4, 9, 8, 16]).that_fit((8,), "the machine")
    assert fitting.demand[:, 0].tolist() == [4, 8]
    assert fitting.ids["user"].tolist() == [0, 0]
    (lost,) = fitting.dropped
    assert (lost.reason, lost.count, lost.line) == ("is larger than the machine", 2, 11)


def test_a_jobset_begins_with_its_first_job_and_keeps_the_log_s_clock() -> None:
    jobset = recorded([100, 103, 109]).jobset(slice(1, 3))
    assert jobset.arrival.tolist() == [0, 6]
    assert jobset.attributes["submit"].tolist() == [103, 109]
    assert jobset.attributes["estimate"].tolist() == [3, 4]
