"""Withheld jobs: on schedules to follow by hand, and against a search job by job."""

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import concatenate, evaluate
from cluster_env.evaluation.withholding import find_withheld
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.schedules import in_order, schedule_of

CAPACITY = (4, 4)
HELD = JobSet.of([0, 1], [3, 2], [[3, 1], [2, 1]])


@pytest.mark.parametrize(
    ("jobset", "start", "end", "first_fit", "waited", "holding"),
    [
        pytest.param(
            *(JobSet.of([0, 1, 1], [3, 2, 1], [[3, 1], [2, 1], [1, 1]]), [0, 3, 1], 5),
            *([0, 3, 1], [0, 0, 0], 0),
            id="the second waits for the first, the third fits beside it at once",
        ),
        pytest.param(
            *(HELD, [0, 6], 8, [0, 3], [0, 3], 3),
            id="the second fits from 3 on: steps 3, 4 and 5 are held",
        ),
        pytest.param(
            *(JobSet.of([0, 0], [2, 2], [[3, 1], [3, 1]]), [0, 2], 4, [0, 2], [0, 0], 0),
            id="both fit at 0, but the other only before the one that starts",
        ),
        pytest.param(
            *(JobSet.of([0, 1], [2, 3], [[3, 1], [3, 1]]), [4, 1], 6, [0, 1], [4, 0], 1),
            id="the first is overtaken, and waits on while there is no room",
        ),
        pytest.param(
            *(JobSet.of([0, 0], [2, 1], [[1, 4], [1, 1]]), [0, 2], 3, [0, 2], [0, 0], 0),
            id="every resource must fit",
        ),
        pytest.param(
            *(JobSet.of([0, 0, 2], [2, 6, 2], [[3, 1], [2, 1], [1, 1]]), [-1, 0, -1], 6),
            *([-1, 0, 2], [0, 0, 4], 4),
            id="of those that never start, the first fits nowhere and the last from 2 on",
        ),
    ],
)
def test_a_job_is_withheld_from_the_first_step_in_which_it_fits(
    jobset: JobSet,
    start: list[int],
    end: int,
    first_fit: list[int],
    waited: list[int],
    holding: int,
) -> None:
    """It waits on where it fits no more; steps count as holding while some job fits."""
    found = find_withheld(schedule_of(jobset, start, end, CAPACITY))
    assert found.first_fit.tolist() == first_fit
    assert found.waited.tolist() == waited
    assert found.withheld.tolist() == [steps > 0 for steps in waited]
    assert found.holding_steps.tolist() == [holding]


def test_episodes_do_not_see_each_other_and_jobs_may_come_in_any_order() -> None:
    held = schedule_of(HELD, [0, 6], 8, CAPACITY)
    empty = schedule_of(JobSet.of([0], [1], [[4, 4]]), [2], 3, CAPACITY)
    schedule = concatenate([held, empty])
    assert find_withheld(schedule).waited.tolist() == [0, 3, 2]
    mixed = in_order(schedule, [2, 1, 0])
    assert find_withheld(mixed).waited.tolist() == [2, 3, 0]
    assert find_withheld(mixed).holding_steps.tolist() == [3, 2]


@pytest.mark.parametrize("spec", ["random", "hold:8"])
def test_the_same_as_a_search_job_by_job(spec: str) -> None:
    jobsets = sample_jobsets(BimodalWorkload(load=0.9, window=20), 0, Split.VALIDATION, range(6))
    schedule = evaluate(get_heuristic(spec, DeepRM(Cluster())), jobsets, DeepRM(Cluster()))
    found = find_withheld(schedule)
    for job in range(schedule.job.size):
        same = schedule.episode == schedule.episode[job]
        fits = [
            step
            for step in range(schedule.arrival[job], schedule.start[job])
            if np.all(used(schedule, same, step) + schedule.demand[job] <= schedule.capacity)
        ]
        assert found.first_fit[job] == (fits[0] if fits else schedule.start[job])
        assert found.withheld[job] == bool(fits)
    assert found.withheld.any()


def used(schedule: Schedule, of: np.ndarray, step: int) -> np.ndarray:
    runs = of & (schedule.start <= step) & (step < schedule.start + schedule.duration)
    return np.asarray(schedule.demand[runs].sum(axis=0))


def test_heuristics_that_start_what_fits_withhold_nothing_and_hold_withholds_long_jobs() -> None:
    cluster = Cluster(num_slots=30)  # so that every waiting job is in a slot
    jobsets = sample_jobsets(BimodalWorkload(load=0.9), 0, Split.VALIDATION, range(10))
    for spec in ("sjf", "packer", "tetris"):
        schedule = evaluate(get_heuristic(spec, DeepRM(cluster)), jobsets, DeepRM(cluster))
        assert find_withheld(schedule).holding_steps.sum() == 0
    schedule = evaluate(get_heuristic("hold:8", DeepRM(cluster)), jobsets, DeepRM(cluster))
    held = find_withheld(schedule).withheld
    assert held.any()
    assert schedule.duration[held].min() > 5
