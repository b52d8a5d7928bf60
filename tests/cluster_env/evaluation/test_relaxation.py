"""The relaxed bound is true for every schedule, and close to the linear program's."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.relaxation import relaxed_bound
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.deeprm.tiny_jobsets import CAPACITY, best_cost, tiny_jobsets


@settings(max_examples=25)
@given(jobset=tiny_jobsets(), delay=st.integers(0, 10), data=st.data())
def test_no_schedule_costs_less_than_the_bound(
    jobset: JobSet, delay: int, data: st.DataObject
) -> None:
    # One job after the other, later than need be: the bound is true whatever it starts from.
    later = np.cumsum(jobset.duration) - jobset.duration + jobset.arrival[-1] + delay
    count = jobset.num_jobs
    weights = data.draw(st.lists(st.integers(1, 60), min_size=count, max_size=count))
    bound = relaxed_bound(
        jobset, CAPACITY, np.array(weights, np.int64), later.astype(np.int32), num_iterations=60
    )
    cost = best_cost(jobset, CAPACITY, list(map(float, weights)))
    assert float(np.dot(weights, jobset.duration)) <= bound <= cost + 1e-6


def test_jobs_over_one_half_cannot_share_a_resource() -> None:
    # Three jobs of 6 units out of 10: fractions of them would fit in 1.8 steps, whole ones take 3.
    jobset = JobSet.of([0, 0, 0], [1, 1, 1], [[6], [6], [6]], window=1)
    start = np.array([0, 1, 2], np.int32)
    weights = np.full(3, 1000, np.int64)
    assert relaxed_bound(jobset, (10,), weights, start) == pytest.approx(6000, rel=0.01)
    # And of jobs of exactly one half, two can.
    halves = JobSet.of([0, 0, 0], [1, 1, 1], [[5], [5], [5]], window=1)
    assert relaxed_bound(halves, (10,), weights, start) <= 4000 + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_close_to_that_of_the_linear_program(seed: int) -> None:
    workload = BimodalWorkload(load=1.5, window=14)
    jobset = workload.sample(np.random.default_rng(seed))
    cluster = Cluster()
    start = evaluate(get_heuristic("hold:8", DeepRM(cluster)), [jobset], DeepRM(cluster)).start
    weights = 60060 // jobset.duration.astype(np.int64)
    bound = relaxed_bound(jobset, cluster.capacity, weights, start)
    exact = linear_program(jobset, cluster.capacity, weights, int((start + jobset.duration).max()))
    assert 0.98 * exact <= bound <= exact * (1 + 1e-6)


def linear_program(
    jobset: JobSet, capacity: tuple[int, ...], weights: np.ndarray, horizon: int
) -> float:
    """The time-indexed model with halves; starts at the horizon or later use nothing."""
    limits = [
        *((jobset.demand[:, r] / units) for r, units in enumerate(capacity)),
        *(np.sign(2 * jobset.demand[:, r] - units) / 2 + 0.5 for r, units in enumerate(capacity)),
    ]
    starts = [(j, t) for j, a in enumerate(jobset.arrival) for t in range(a, horizon + 1)]
    use = scipy.sparse.lil_matrix((len(limits) * horizon, len(starts)))
    one = scipy.sparse.lil_matrix((jobset.num_jobs, len(starts)))
    for column, (job, start) in enumerate(starts):
        one[job, column] = 1
        for step in range(start, min(start + int(jobset.duration[job]), horizon)):
            for place, share in enumerate(limits):
                use[place * horizon + step, column] = share[job]
    cost = [weights[j] * (t + jobset.duration[j] - jobset.arrival[j]) for j, t in starts]
    solved = linprog(
        cost,
        A_ub=use.tocsr(),
        b_ub=np.ones(use.shape[0]),
        A_eq=one.tocsr(),
        b_eq=np.ones(jobset.num_jobs),
        method="highs",
    )
    return float(solved.fun)
