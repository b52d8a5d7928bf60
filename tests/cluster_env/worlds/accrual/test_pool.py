"""Several machines with one queue: as one server where there is one, and what always holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import evaluate
from cluster_env.objectives import UTILITY
from cluster_env.objectives.utility import final_utility
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.heuristics import AccrualPolicy
from cluster_env.worlds.accrual.play import Rule
from cluster_env.worlds.accrual.pool import ALLOCATIONS, AccrualPool
from cluster_env.worlds.accrual.td import Learners, new_learners
from cluster_env.worlds.accrual.values import PAPER_RULEBASE, RULEBASE
from cluster_env.worlds.accrual.workloads import PoissonWorkload
from tests.cluster_env.worlds.accrual.accrual_jobs import jobs, small_jobsets, small_worlds
from tests.cluster_env.worlds.accrual.step_rule import complete_until

scorers = st.sampled_from(("none", "aggressive", "value"))
PAPER = np.array([PAPER_RULEBASE])


def learners(functions: int = 1, sharing: int = 1) -> Learners:
    return new_learners(RULEBASE, np.repeat(PAPER, functions, 0), 0.1, 0.1, 100.0, False, sharing)


def played(pool: AccrualPool, jobset: JobSet, scorer: str = "aggressive") -> Schedule:
    pool.load([jobset])
    pool.play(Rule("best_fit", scorer), learners=learners())
    return pool.schedule()


@given(small_worlds(), small_jobsets(), scorers)
def test_a_pool_of_one_machine_is_the_server(world: Accrual, jobset: JobSet, scorer: str) -> None:
    pooled = played(AccrualPool(world, 1), jobset, scorer)
    alone = evaluate(AccrualPolicy(world, scorer, Rule("best_fit", scorer)), [jobset], world)
    for name in ("start", "finish", "end"):
        np.testing.assert_array_equal(getattr(pooled, name), getattr(alone, name))
    assert final_utility(pooled).tolist() == final_utility(alone).tolist()


@given(small_worlds(), small_jobsets(), scorers, st.integers(2, 3), st.sampled_from(ALLOCATIONS))
def test_no_machine_holds_too_much_and_work_is_conserved(
    world: Accrual, jobset: JobSet, scorer: str, machines: int, allocation: str
) -> None:
    pool = AccrualPool(world, machines, allocation)
    schedule = played(pool, jobset, scorer)
    capacity = np.full((machines, 1), world.processors, np.int32)
    complete = complete_until(world)
    check_schedule(schedule, [jobset], complete_until=complete, node_capacity=capacity)
    assert pool.earned.sum() == pytest.approx(final_utility(schedule).sum(), rel=1e-12)


@pytest.mark.parametrize(("allocation", "start"), [("machine", [5, 0, 0]), ("job", [0, 0, 5])])
def test_either_heuristic_fits_best(allocation: str, start: list[int]) -> None:
    """Jobs of 5, 6 and 10 processors arrive at two machines of 10, both idle.

    The first machine takes the job of 10 and the second that of 6, beside which 5 do not fit. Job
    by job, 5 goes to the first machine and 6, which does not fit beside it, to the second.
    """
    pool = AccrualPool(Accrual(processors=10), 2, allocation)
    schedule = played(pool, jobs([0, 0, 0], [5, 6, 10], [5, 5, 5]), "none")
    assert schedule.start.tolist() == start


def test_a_job_goes_where_the_fewest_processors_stay_idle() -> None:
    pool = AccrualPool(Accrual(processors=10), 2, "job")
    schedule = played(pool, jobs([0, 0, 1, 1], [3, 8, 2, 6], [5, 5, 5, 5]), "none")
    pieces = schedule.pieces
    assert pieces is not None
    assert pieces.node is not None
    assert pieces.node[np.argsort(pieces.job)].tolist() == [0, 1, 1, 0]
    assert schedule.start.tolist() == [0, 0, 1, 1]


def test_a_preempted_job_goes_on_wherever_there_is_room() -> None:
    """At 2 the third job, short and urgent, preempts the first; machine 1 is free again at 3."""
    world = Accrual(processors=10, squeeze=False)
    jobset = jobs([0, 0, 2], [8, 7, 8], [8, 3, 4])
    schedule = played(AccrualPool(world, 2), jobset)
    pieces = schedule.pieces
    assert pieces is not None
    assert pieces.node is not None
    first = np.flatnonzero(pieces.job == 0)
    assert pieces.node[first].tolist() == [0, 1]
    assert schedule.finish.tolist() == [9, 3, 6]


def test_machines_learn_by_themselves_or_share_a_value_function() -> None:
    world = Accrual(max_time=600)
    workload = PoissonWorkload(rate=0.4, window=600)
    jobsets = [workload.sample(np.random.default_rng(k)) for k in range(2)]
    rule = Rule("best_fit", "value")

    def learned(machines: int, functions: int, which: list[int]) -> np.ndarray:
        pool = AccrualPool(world, machines)
        pool.load([jobsets[k] for k in which])
        it = learners(functions, machines * len(which) // functions)
        pool.play(rule, learners=it, learning=True)
        assert (it.of["count"] > 20).all()
        return it.p

    alone = learned(1, 1, [0])
    server = world.simulator()
    server.load([jobsets[0]], UTILITY)
    it = learners()
    server.play(rule, learners=it, learning=True)
    np.testing.assert_array_equal(alone, it.p)
    own, shared = learned(2, 4, [0, 1]), learned(2, 2, [0, 1])
    assert len(np.unique(own, axis=0)) == 4
    np.testing.assert_array_equal(learned(2, 1, [1])[0], shared[1])
    assert len(np.unique(shared, axis=0)) == 2


@settings(max_examples=3)
@given(st.integers(0, 99))
def test_pieces_find_room_however_many_there_are(seed: int) -> None:
    workload = PoissonWorkload(
        processors=4, rate=1.0, window=400, smallest=1, largest=4, shortest=1, longest=60
    )
    jobset = workload.sample(np.random.default_rng(seed))
    schedule = played(AccrualPool(Accrual(processors=4, candidates=2), 2), jobset)
    assert schedule.pieces is not None
    assert schedule.pieces.job.size > 2 * jobset.num_jobs
    check_schedule(schedule, [jobset], node_capacity=np.full((2, 1), 4, np.int32))


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="one machine or more"):
        AccrualPool(Accrual(), 0)
    with pytest.raises(InputError, match="allocation"):
        AccrualPool(Accrual(), 2, "both")
    pool = AccrualPool(Accrual(), 2)
    with pytest.raises(InputError, match="at least one jobset"):
        pool.load([])
    pool.load([jobs([0], [1], [1])])
    with pytest.raises(InputError, match="not by edf"):
        pool.play(Rule("edf"))
    with pytest.raises(InputError, match="2 servers need as many learners"):
        pool.play(Rule("best_fit", "value"), learners=learners(3), learning=True)
    with pytest.raises(InputError, match="needs value functions"):
        pool.play(Rule("best_fit", "value"))
