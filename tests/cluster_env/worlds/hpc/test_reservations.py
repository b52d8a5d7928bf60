"""What EASY and conservative backfilling promise, looked for in finished schedules alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played, small_jobsets

WORLD = HPC(processors=PROCESSORS)
KEYS = {"fcfs": "arrival", "sjf": "estimate", "saf": "area"}


def keys_of(jobset: JobSet, order: str) -> list[tuple[int, int]]:
    """What a fixed order sorts by, ties by the place in the jobset."""
    estimate = jobset.attributes["estimate"]
    columns = {
        "arrival": jobset.arrival,
        "estimate": estimate,
        "area": estimate * jobset.demand[:, 0],
    }
    return [(int(key), job) for job, key in enumerate(columns[KEYS[order]])]


def reserved(ends: list[tuple[int, int]], free: int, size: int, now: int) -> int:
    """When so many processors are free, if running jobs end as expected and nothing else starts."""
    for end, released in sorted(ends):
        if free >= size:
            break
        now, free = end, free + released
    return now


def broken_promises(jobset: JobSet, schedule: Schedule, order: str) -> tuple[int, list[str]]:
    """Counts the reservations of jobs that are the first to wait, and names those not kept.

    A reservation is made at an instant before anything behind the first job starts. It holds until
    a job arrives that goes before the first one. Estimates must not be too short.
    """
    start, size, estimate = schedule.start, jobset.demand[:, 0], jobset.attributes["estimate"]
    keys, made, broken = keys_of(jobset, order), 0, []
    for now in np.unique(np.concatenate([jobset.arrival, schedule.finish])).tolist():
        waiting = np.flatnonzero((jobset.arrival <= now) & (start > now)).tolist()
        if not waiting:
            continue
        first = min(waiting, key=keys.__getitem__)
        runs = (start <= now) & (schedule.finish > now)
        runs &= ~((start == now) & np.array([key > keys[first] for key in keys]))
        ends = [(int(start[job] + estimate[job]), int(size[job])) for job in np.flatnonzero(runs)]
        free = PROCESSORS - int(size[runs].sum())
        promise = reserved(ends, free, int(size[first]), now)
        later = np.flatnonzero((jobset.arrival > now) & (jobset.arrival <= start[first]))
        if any(keys[job] < keys[first] for job in later.tolist()):
            continue
        made += 1
        if start[first] > promise:
            broken.append(f"job {first} starts at {start[first]}, not by {promise} as at {now}")
    return made, broken


@st.composite
def patient_jobsets(draw) -> JobSet:
    """Jobs whose estimates are never too short."""
    jobset = draw(small_jobsets(exact=True))
    more = draw(st.lists(st.integers(0, 6), min_size=jobset.num_jobs, max_size=jobset.num_jobs))
    return jobset_of(
        jobset.arrival, jobset.duration, jobset.duration + np.array(more), jobset.demand
    )


@pytest.mark.parametrize("order", KEYS)
@given(jobset=patient_jobsets())
def test_easy_never_delays_the_first_job_beyond_its_reservation(order: str, jobset: JobSet) -> None:
    _, broken = broken_promises(jobset, played(WORLD, [jobset], Rule(order, "easy")), order)
    assert not broken


def test_the_check_finds_a_reservation_that_was_not_kept() -> None:
    """Whatever fits, one after the other: the job that needs the whole machine waits for long."""
    run = [10, 10, 4, 9, 20]
    jobset = jobset_of([0, 1, 2, 3, 4], run, run, [6, 8, 2, 2, 1])
    made, broken = broken_promises(jobset, played(WORLD, [jobset], Rule("fcfs", "skip")), "fcfs")
    assert made > 1
    assert "job 1 starts at 30, not by 10 as at 1" in broken
    made, broken = broken_promises(jobset, played(WORLD, [jobset], Rule("fcfs", "easy")), "fcfs")
    assert (made > 1, broken) == (True, [])


def placed_one_after_the_other(jobset: JobSet) -> NDArray[np.int64]:
    """Each job at the first hole that is long and wide enough, and moves none placed before it."""
    horizon = int(jobset.arrival[-1] + jobset.duration.sum()) + 1
    free, starts = np.full(horizon, PROCESSORS), []
    for arrival, run, (size,) in zip(jobset.arrival, jobset.duration, jobset.demand, strict=True):
        start = int(arrival)
        while (free[start : start + run] < size).any():
            start += 1
        free[start : start + run] -= size
        starts.append(start)
    return np.array(starts)


@given(jobset=small_jobsets(exact=True))
def test_conservative_keeps_every_promise_where_estimates_are_exact(jobset: JobSet) -> None:
    """Each job starts when it was promised to at its arrival, given all who came before."""
    starts = played(WORLD, [jobset], Rule("fcfs", "conservative")).start
    assert starts.tolist() == placed_one_after_the_other(jobset).tolist()


@given(jobset=small_jobsets(), order=st.sampled_from(["fcfs", "saf"]))
@settings(max_examples=25)
def test_killed_jobs_hold_their_processors_for_their_estimate(jobset: JobSet, order: str) -> None:
    world = HPC(PROCESSORS, kill_at_estimate=True)
    schedule = played(world, [jobset], Rule(order, "easy"))
    expected = np.minimum(jobset.duration, jobset.attributes["estimate"])
    assert (schedule.finish - schedule.start).tolist() == expected.tolist()
