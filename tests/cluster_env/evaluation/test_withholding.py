"""Withheld jobs: on schedules to follow by hand, and against a search job by job."""

import numpy as np
import pytest

from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import concatenate, evaluate
from cluster_env.evaluation.withholding import find_withheld
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload


def one_episode(
    arrival: list[int], start: list[int], duration: list[int], demand: list[list[int]], end: int
) -> Schedule:
    """A cluster of 4 and 4 units."""
    begin, length = np.array(start, np.int32), np.array(duration, np.int32)
    done = (begin >= 0) & (begin + length <= end)
    return Schedule(
        episode=np.zeros(length.size, np.int32),
        job=np.arange(length.size, dtype=np.int32),
        arrival=np.array(arrival, np.int32),
        start=begin,
        finish=np.where(done, begin + length, -1).astype(np.int32),
        duration=length,
        demand=np.array(demand, np.int32),
        end=np.array([end], np.int32),
        window=np.array([end], np.int32),
        jobset=np.zeros(1, np.int32),
        capacity=np.array([4, 4], np.int32),
    )


def test_a_job_that_starts_as_soon_as_there_is_room_is_not_withheld() -> None:
    # The second has to wait for the first; the third fits beside it at once.
    schedule = one_episode([0, 1, 1], [0, 3, 1], [3, 2, 1], [[3, 1], [2, 1], [1, 1]], end=5)
    found = find_withheld(schedule)
    assert found.first_fit.tolist() == [0, 3, 1]
    assert found.waited.tolist() == [0, 0, 0]
    assert not found.withheld.any()
    assert found.holding_steps.tolist() == [0]


def test_a_job_is_withheld_from_the_first_step_in_which_it_fits() -> None:
    # The second job arrives at 1, fits from 3 on, and starts at 6: steps 3, 4 and 5 are held.
    found = find_withheld(one_episode([0, 1], [0, 6], [3, 2], [[3, 1], [2, 1]], end=8))
    assert found.first_fit.tolist() == [0, 3]
    assert found.waited.tolist() == [0, 3]
    assert found.withheld.tolist() == [False, True]
    assert found.holding_steps.tolist() == [3]


def test_room_that_another_job_takes_in_the_same_step_is_not_left() -> None:
    # Both fit at 0, one of them starts: the other could have started only after it.
    schedule = one_episode([0, 0], [0, 2], [2, 2], [[3, 1], [3, 1]], end=4)
    assert find_withheld(schedule).waited.tolist() == [0, 0]


def test_the_wait_goes_on_while_there_is_no_room_any_more() -> None:
    # It fits at 0, is overtaken by a job that starts at 1 and runs to 4, and starts then.
    schedule = one_episode([0, 1], [4, 1], [2, 3], [[3, 1], [3, 1]], end=6)
    found = find_withheld(schedule)
    assert found.first_fit.tolist() == [0, 1]
    assert found.waited.tolist() == [4, 0]
    assert found.holding_steps.tolist() == [1]


def test_every_resource_must_fit() -> None:
    schedule = one_episode([0, 0], [0, 2], [2, 1], [[1, 4], [1, 1]], end=3)
    assert find_withheld(schedule).waited.tolist() == [0, 0]


def test_jobs_that_never_start_are_withheld_to_the_end_of_their_episode() -> None:
    # The first could have started at 2, the second is larger than what is ever left.
    schedule = one_episode([2, 0, 0], [-1, -1, 0], [2, 2, 6], [[1, 1], [3, 1], [2, 1]], end=6)
    found = find_withheld(schedule)
    assert found.first_fit.tolist() == [2, -1, 0]
    assert found.waited.tolist() == [4, 0, 0]
    assert found.holding_steps.tolist() == [4]


def test_episodes_do_not_see_each_other_and_jobs_may_come_in_any_order() -> None:
    held = one_episode([0, 1], [0, 6], [3, 2], [[3, 1], [2, 1]], end=8)
    empty = one_episode([0], [2], [1], [[4, 4]], end=3)
    schedule = concatenate([held, empty])
    assert find_withheld(schedule).waited.tolist() == [0, 3, 2]
    turned = np.array([2, 1, 0])
    mixed = Schedule(
        **{
            name: getattr(schedule, name)[turned]
            for name in ("episode", "job", "arrival", "start", "finish", "duration", "demand")
        },
        end=schedule.end,
        window=schedule.window,
        jobset=schedule.jobset,
        capacity=schedule.capacity,
    )
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
