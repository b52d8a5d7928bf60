"""Run-time corrections: what they know, when they know it, and what schedules gain by them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.histories import COLUMNS, histories
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.run_times import RUN_TIMES, corrected
from cluster_env.worlds.hpc.workloads import HPCLog


def log_of(submit, run, estimate, user, size=None) -> RecordedJobs:
    columns = [np.asarray(column, np.int64) for column in (submit, run, estimate)]
    count = len(run)
    return RecordedJobs(
        Path("made-up.swf"),
        *columns,
        np.ones((count, 1), np.int64) if size is None else np.asarray(size, np.int64)[:, None],
        ("processors",),
        {"user": np.asarray(user, np.int64)},
        np.arange(count),
    )


def habits(count: int = 300, seed: int = 0) -> RecordedJobs:
    """Users all ask for an hour; one needs it, one a tenth, one a hundredth of it."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 3, count)
    run = np.ceil(3600 * np.array([1.0, 0.1, 0.01])[user] * rng.uniform(0.7, 1.0, count))
    return log_of(np.arange(count) * 150, run, np.full(count, 3600), user)


def test_what_is_known_of_a_user_is_what_had_ended() -> None:
    """Of user 0, job 0 ends at 10 and job 1 at 9; job 2 is submitted at 9, job 4 at 20."""
    known = histories(
        np.array([0, 4, 9, 10, 20]),
        np.array([10, 9, 30, 12, 25]),
        np.array([3.0, 1.0, 7.0, 9.0, 0.0]),
        np.array([0, 0, 0, 1, 0]),
    )
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in known.tolist()]
    assert [row["ended"] for row in rows] == [0, 0, 1, 0, 2]
    assert (rows[2]["last_0"], rows[2]["mean"]) == (1, 1)
    assert (rows[4]["last_0"], rows[4]["last_1"], rows[4]["mean"]) == (3, 1, 2)
    assert np.isnan([rows[3]["mean"], rows[2]["last_1"]]).all()


def test_recent_is_the_mean_of_the_last_two_but_never_above_the_estimate() -> None:
    jobs = log_of([0, 1, 50, 60, 70], [10, 21, 5, 5, 5], [90, 90, 90, 12, 90], [0, 0, 0, 0, 1])
    order, reserve = RUN_TIMES.get("recent")(jobs)
    assert order.tolist() == reserve.tolist() == [90, 90, 16, 12, 90]


def test_actual_and_user_are_what_they_say() -> None:
    jobs = habits(20)
    assert corrected(jobs, "user") is jobs
    made = corrected(jobs, "actual").jobset()
    assert made.attributes["order_estimate"].tolist() == jobs.run.tolist()
    assert made.attributes["reserve_estimate"].tolist() == jobs.run.tolist()
    assert made.attributes["estimate"].tolist() == jobs.estimate.tolist()


@pytest.mark.parametrize("name", ["recent", "mixed"])
def test_nothing_is_known_of_jobs_that_had_not_ended(name: str) -> None:
    """Other run times of the jobs that end after a moment change no estimate before it."""
    jobs = habits()
    moment = int(jobs.submit[220])
    later = jobs.submit + jobs.run > moment
    other = replace(jobs, run=np.where(later, np.maximum(jobs.run // 2, 1), jobs.run))
    other = replace(other, run=np.where(other.submit + other.run > moment, other.run, jobs.run))
    before = jobs.submit <= moment
    assert (other.run != jobs.run).sum() > 60
    one, two = (RUN_TIMES.get(name)(log) for log in (jobs, other))
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine[before], theirs[before])
    assert (one.order[230:] != two.order[230:]).any()


def test_windows_keep_what_was_learned_from_the_whole_log() -> None:
    found = corrected(habits(), "recent")
    window = found.select(slice(200, 210)).jobset()
    expected = found.predicted["order_estimate"][200:210]
    assert window.attributes["order_estimate"].tolist() == expected.tolist()


def test_impossible_corrections_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,duration,processors\n" + "".join(f"{9 * k},5,1\n" for k in range(40)))
    with pytest.raises(InputError, match=r"'learned' was removed in 0\.3: take mixed"):
        HPCLog(path, run_times="learned")
    with pytest.raises(InputError, match="corrects recorded estimates"):
        HPCLog(path, run_times="recent", estimates="exact")
