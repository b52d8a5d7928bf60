"""The bound for policies that know all arrivals: by hand, by enumeration, and never beaten."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import get_heuristic
from cluster_env.core.utility import final_utility, unit_utility
from cluster_env.evaluation import evaluate
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.heuristics import HEURISTICS
from cluster_env.worlds.accrual.optimum import utility_bound
from cluster_env.worlds.accrual.workloads import PoissonWorkload
from tests.cluster_env.worlds.accrual.accrual_jobs import jobs, small_jobsets


@pytest.mark.usefixtures("solver")
def test_two_jobs_that_each_need_all_are_done_one_after_the_other() -> None:
    """One is done at 4; the other is worth nothing at 8, and half of it at 8 if it arrives at 2."""
    found = utility_bound(jobs([0, 0], [10, 10], [4, 4]), Accrual(processors=10))
    assert found.status == "optimal"
    assert found.value == found.bound == 40
    later = utility_bound(jobs([0, 2], [10, 10], [4, 4]), Accrual(processors=10))
    assert later.value == pytest.approx(40 + 40 * (1 - 2 / 4))
    levels = jobs([0, 0], [10, 10], [4, 4], "1:1 2:0.5")
    assert utility_bound(levels, Accrual(processors=10)).value == pytest.approx(40 + 20)


def best_of_all(jobset: JobSet, processors: int) -> float:
    """The same by trying all completion times; a maximum flow says whether they can be kept."""
    count = jobset.num_jobs
    horizon = int(jobset.arrival.max() + 3 * jobset.duration.max() + 8)
    tuf = jobset.attributes["tuf"]

    def worth(job: int, elapsed: int) -> float:
        unit = unit_utility(tuf[job], elapsed, int(jobset.duration[job]))
        return float(unit * jobset.demand[job, 0] * jobset.duration[job])

    choices = []
    for job in range(count):
        last = int(np.ceil(tuf[job, (tuf.shape[1] - 1) // 2 - 1] * jobset.duration[job]))
        times = [c for c in range(int(jobset.duration[job]), last) if worth(job, c) > 0]
        choices.append([*times, None])
    best = 0.0
    for chosen in itertools.product(*choices):
        total = sum(worth(j, 10**6 if c is None else c) for j, c in enumerate(chosen))
        if total <= best:
            continue
        graph = np.zeros((count + horizon + 2, count + horizon + 2), np.int32)
        for j, c in enumerate(chosen):
            if c is None:
                continue
            graph[0, 1 + j] = jobset.demand[j, 0] * jobset.duration[j]
            begin = int(jobset.arrival[j])
            graph[1 + j, 1 + count + begin : 1 + count + begin + c] = jobset.demand[j, 0]
        graph[1 + count : -1, -1] = processors
        flow = maximum_flow(csr_array(graph), 0, graph.shape[0] - 1).flow_value
        if flow == graph[0].sum():
            best = total
    return best


@pytest.mark.usefixtures("solver")
@settings(max_examples=12)
@given(small_jobsets(processors=4))
def test_it_is_the_best_of_all_completion_times(jobset: JobSet) -> None:
    few = slice(0, 3)
    jobset = JobSet.of(
        jobset.arrival[few],
        np.minimum(jobset.duration[few], 4),
        jobset.demand[few],
        attributes={"tuf": jobset.attributes["tuf"][few]},
    )
    found = utility_bound(jobset, Accrual(processors=4))
    assert found.status == "optimal"
    assert found.value == pytest.approx(best_of_all(jobset, 4), abs=0.002 * jobset.num_jobs)
    assert (found.processors.sum(axis=0) <= 4).all()
    assert (found.processors <= jobset.demand).all()


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("utility", ["linear", "square", "1:1 1.5:0.25"])
def test_no_policy_beats_the_bound(utility: str) -> None:
    world = Accrual()
    workload = PoissonWorkload(rate=0.3, window=25, utility=utility)
    jobsets = [workload.sample(np.random.default_rng(k)) for k in range(3)]
    bounds = [utility_bound(jobset, world, time_limit_s=1.0) for jobset in jobsets]
    for name in HEURISTICS.names():
        schedule = evaluate(get_heuristic(name, world), jobsets, world)
        earned = np.bincount(schedule.episode, final_utility(schedule), schedule.num_episodes)
        for total, bound in zip(earned, bounds, strict=True):
            assert total <= bound.bound + 1e-6
            assert bound.value <= bound.bound + 1e-6


@pytest.mark.usefixtures("solver")
def test_without_jobs_there_is_nothing_to_gain() -> None:
    empty = JobSet.of([], [], np.empty((0, 1)), window=5, attributes={"tuf": np.empty((0, 5))})
    assert utility_bound(empty, Accrual()).bound == 0
    with pytest.raises(InputError, match="above 0 seconds"):
        utility_bound(empty, Accrual(), time_limit_s=0)


def test_a_missing_solver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(InputError, match=r"metasched\[clairvoyant\]"):
        utility_bound(jobs([0], [1], [1]), Accrual())
