"""What runs: a heap of ends, a list of expected ends, and the reservation that follows from it."""

from typing import Any

import numpy as np
import pytest

from cluster_env.worlds.hpc import events, reservations
from cluster_env.worlds.hpc.jobs import JOB
from cluster_env.worlds.hpc.orders import Order
from cluster_env.worlds.hpc.scorer import Scorer

# They stand in other kernels alone, so that Python has to read them.
expect, forget, pop, push, raise_outlived, reserve = (
    getattr(kernel, "py_func", kernel)
    for kernel in (
        *(events.expect, events.forget, events.pop, events.push),
        *(events.raise_outlived, reservations.reserve),
    )
)


def episode_of(**columns: Any) -> events.Episode:
    """An episode of which only some arrays are asked for."""
    status = np.zeros(1, events.STATUS).view(np.recarray)
    status.running = columns["expected"].size
    columns["status"] = columns["sums"] = status
    return events.Episode(*(columns.get(name) for name in events.Episode._fields))


def room(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(count, np.int64), np.zeros(count, np.int32)


def test_a_heap_gives_jobs_in_the_order_of_their_ends() -> None:
    rng = np.random.default_rng(0)
    ends = rng.permutation(200)
    times, jobs = room(200)
    inside: list[int] = []
    taken = []
    for job, end in enumerate(ends.tolist()):
        push(times, jobs, len(inside), end, job)
        inside.append(job)
        if job % 3 == 2:
            first = min(inside, key=lambda one: ends[one])
            taken.append(pop(times, jobs, len(inside)))
            inside.remove(first)
            assert taken[-1] == first
            assert not inside or times[0] == min(ends[inside])
    while inside:
        first = min(inside, key=lambda one: ends[one])
        assert pop(times, jobs, len(inside)) == first
        inside.remove(first)


def test_expected_ends_stay_sorted_and_the_right_job_is_forgotten() -> None:
    times, jobs = room(6)
    for size, (end, job) in enumerate([(7, 0), (3, 1), (9, 2), (7, 3), (7, 4), (3, 5)]):
        expect(times, jobs, size, end, job)
    assert times.tolist() == [9, 7, 7, 7, 3, 3]
    assert jobs.tolist() == [2, 0, 3, 4, 1, 5]
    for size, (end, job) in zip((6, 5, 4), [(7, 3), (3, 1), (9, 2)], strict=True):
        assert forget(times, jobs, size, job) == end
    assert times[:3].tolist() == [7, 7, 3]
    assert jobs[:3].tolist() == [0, 4, 5]


def test_an_outlived_end_is_doubled_up_to_the_limit_and_stays_in_order() -> None:
    """At 10, job 0 of 4 s is expected after 16 s, job 1 at its limit, job 2 has reached its own."""
    times, jobs = np.array([20, 9, 7, 4]), np.array([3, 1, 2, 0], np.int32)
    start = np.array([0, 5, 2, 10])
    records = np.zeros(4, JOB).view(np.recarray)
    records.limit = [40, 6, 5, 99]
    demand = np.array([[2], [3], [1], [1]], np.int32)
    known = {"expected": times, "expected_jobs": jobs, "start": start, "jobs": records}
    order = Order.of_scorer(Scorer.linear(), 4, 0)
    episode = episode_of(**known, demand=demand, order=order)
    raise_outlived(episode, 10)
    assert dict(zip(jobs.tolist(), times.tolist(), strict=True)) == {3: 20, 0: 16, 1: 11, 2: 7}
    assert times.tolist() == sorted(times.tolist(), reverse=True)
    assert episode.sums[0].run_work == 2 * 12 + 3 * 2


# Four jobs run on 10 processors and 6 units of memory, all of which are in use.
DEMAND = np.array([[4, 1], [2, 3], [3, 0], [1, 2]], np.int32)
ENDS = np.array([20, 8, 8, 5], np.int64)


@pytest.mark.parametrize(
    ("demand", "now", "shadow", "spare"),
    [
        ((3, 1), 0, 5, [1, 0]),
        ((3, 2), 0, 8, [6, 2]),  # two jobs end at 8, and both have left by then
        ((7, 1), 0, 8, [2, 3]),  # one of the two would do
        ((10, 6), 0, 20, [0, 0]),
        ((3, 1), 6, 7, [1, 0]),  # the first has outlived its estimate: the next second
        ((9, 1), 8, 9, [0, 3]),
    ],
)
def test_a_reservation_is_the_first_time_at_which_a_job_is_expected_to_fit(
    demand: tuple[int, int], now: int, shadow: int, spare: list[int]
) -> None:
    demands = np.concatenate([DEMAND, np.array([demand], np.int32)])
    found = np.empty(2, np.int64)
    order = np.array([3, 1, 2, 0], np.int32)
    free = np.zeros(2, np.int64)
    known = {"expected": ENDS, "expected_jobs": order, "demand": demands, "free": free}
    assert reserve(episode_of(**known, spare=found), 4, now) == shadow
    assert found.tolist() == spare
    assert free.tolist() == [0, 0]
