"""First come, first served, and EASY: a case worked by hand, and the textbook's way on lists."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.deeprm.test_reference_simulator import CLUSTERS, random_jobset


class Textbook:
    """A queue of jobs, those that run with their ends, and EASY as the books tell it.

    The first job that does not fit gets a shadow time, at which enough of the running jobs have
    ended, and leaves extra units of each resource then. Others start if they end by the shadow
    time, or need no more than the extra units, which they then take.
    """

    def __init__(self, cluster: Cluster, jobset: JobSet, backfills: bool) -> None:
        self.capacity, self.visible = cluster.capacity, cluster.num_slots
        self.backfills = backfills
        self.arrival, self.duration = jobset.arrival.tolist(), jobset.duration.tolist()
        self.demand = jobset.demand.tolist()
        self.starts: dict[int, int] = {}

    def run(self) -> list[int]:
        time, queue, coming = 0, list[int](), list(range(len(self.arrival)))
        while coming or queue:
            while coming and self.arrival[coming[0]] == time:
                queue.append(coming.pop(0))
            while (job := self.next_of(queue[: self.visible], time)) is not None:
                queue.remove(job)
                self.starts[job] = time
            time += 1
        return [self.starts[job] for job in range(len(self.arrival))]

    def free_at(self, time: int) -> list[int]:
        free = list(self.capacity)
        for job, start in self.starts.items():
            if time < start + self.duration[job]:
                free = [have - used for have, used in zip(free, self.demand[job], strict=True)]
        return free

    def next_of(self, queue: Sequence[int], time: int) -> int | None:
        if not queue:
            return None
        head, *others = queue
        free = self.free_at(time)
        if fits(self.demand[head], free):
            return head
        if not self.backfills:
            return None
        ends = sorted({start + self.duration[job] for job, start in self.starts.items()})
        shadow = next(end for end in ends if fits(self.demand[head], self.free_at(end)))
        left = zip(self.free_at(shadow), self.demand[head], strict=True)
        extra = [have - needed for have, needed in left]
        for job in others:
            in_time = time + self.duration[job] <= shadow
            if fits(self.demand[job], free) and (in_time or fits(self.demand[job], extra)):
                return job
        return None


def fits(demand: Sequence[int], free: Sequence[int]) -> bool:
    return all(needed <= have for needed, have in zip(demand, free, strict=True))


def starts_of(name: str, cluster: Cluster, jobset: JobSet) -> list[int]:
    world = DeepRM(cluster, max_time=5000)
    return evaluate(get_heuristic(name, world), [jobset], world).start.tolist()


def test_a_reservation_holds_in_both_resources() -> None:
    """Ten units of each of two resources; all jobs arrive at once, but the last.

    Job 0 runs 0-4 with (6, 2); job 1, the head, needs (5, 3), so its shadow time is 4, when (5, 7)
    are extra. Job 2 lasts 6 and needs (4, 8): it fits now, but has not ended at 4 and takes more of
    the second resource than is extra. Job 3 lasts 4 with (2, 6), ends in time and starts. Job 4
    lasts 9 with (2, 2) and takes no more than is extra. Then nothing is free of the first resource
    for job 5, which comes at 1. At 4 jobs 0 and 3 end, and job 1 starts at last; job 5 with it.
    """
    cluster = Cluster(capacity=(10, 10), horizon=20, num_slots=6)
    jobset = JobSet.of(
        [0, 0, 0, 0, 0, 1],
        [4, 5, 6, 4, 9, 1],
        [[6, 2], [5, 3], [4, 8], [2, 6], [2, 2], [1, 1]],
        window=5,
    )
    assert starts_of("easy", cluster, jobset) == [0, 4, 9, 0, 0, 4]
    # The first that does not fit holds up all others: job 2 waits for job 1, and so on.
    assert starts_of("fcfs", cluster, jobset) == [0, 4, 9, 15, 15, 15]


@pytest.mark.parametrize("name", ["fcfs", "easy"])
@given(
    shape=st.integers(0, len(CLUSTERS) - 1),
    window=st.integers(1, 12),
    at_most=st.integers(1, 25),
    seed=st.integers(0, 2**32 - 1),
)
def test_jobs_start_as_in_the_textbook(
    name: str, shape: int, window: int, at_most: int, seed: int
) -> None:
    cluster = CLUSTERS[shape]
    drawn = random_jobset(np.random.default_rng(seed), cluster, window, at_most)
    # One job an instant: of several the slots do not show which came first.
    jobset = JobSet.of(
        np.arange(drawn.num_jobs) * window // 12 + np.arange(drawn.num_jobs),
        drawn.duration,
        drawn.demand,
        window=60,
        job_class=drawn.job_class,
    )
    assert starts_of(name, cluster, jobset) == Textbook(cluster, jobset, name == "easy").run()


def test_the_order_is_kept_where_jobs_wait_for_longer_than_a_byte_can_say() -> None:
    cluster = Cluster(capacity=(2,), horizon=9, num_slots=3, backlog_view=2)
    rng = np.random.default_rng(4)
    jobset = JobSet.of(
        np.arange(100), rng.integers(3, 9, 100), rng.integers(1, 3, (100, 1)), window=100
    )
    for name in ("fcfs", "easy"):
        starts = starts_of(name, cluster, jobset)
        assert max(np.array(starts) - np.arange(100)) > 300
        assert starts == Textbook(cluster, jobset, name == "easy").run()


def test_in_operation_backfilling_fills_what_the_queue_leaves_idle() -> None:
    world = DeepRM(max_time=5000)
    workload = BimodalWorkload(load=0.7, window=300)
    jobsets = sample_jobsets(workload, 0, Split.HELD_OUT, range(10))
    ends = {
        name: evaluate(get_heuristic(name, world), jobsets, world).end.mean()
        for name in ("fcfs", "easy")
    }
    assert ends["easy"] < 0.9 * ends["fcfs"]
