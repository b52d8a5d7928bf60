"""Several machines with one queue: stored schedules, hand-worked ones, and what always holds."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.utility import final_utility
from cluster_env.envs.checker import check_cluster_env
from cluster_env.objectives import UTILITY
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.orders import ALLOCATIONS
from cluster_env.worlds.accrual.rules import Rule
from cluster_env.worlds.accrual.simulator import AccrualSimulator
from cluster_env.worlds.accrual.td import Learners, new_learners
from cluster_env.worlds.accrual.values import PAPER_RULEBASE, RULEBASE
from cluster_env.worlds.accrual.workloads import PoissonWorkload
from tests.cluster_env.worlds.accrual.accrual_jobs import jobs, small_jobsets, small_worlds
from tests.cluster_env.worlds.accrual.step_rule import check_pool, check_step
from tests.cluster_env.worlds.stepping import play_to_the_end, step_one

scorers = st.sampled_from(("none", "aggressive", "value"))
PAPER = np.array([PAPER_RULEBASE])


def learners(functions: int = 1, sharing: int = 1) -> Learners:
    return new_learners(RULEBASE, np.repeat(PAPER, functions, 0), 0.1, 0.1, 100.0, False, sharing)


def loaded(world: Accrual, *jobsets: JobSet) -> AccrualSimulator:
    simulator = world.simulator()
    simulator.load(jobsets, UTILITY)
    return simulator


def played(world: Accrual, jobset: JobSet, scorer: str = "aggressive") -> Schedule:
    simulator = loaded(world, jobset)
    simulator.play(Rule("best_fit", scorer), learners=learners())
    return simulator.schedule()


@given(small_worlds(), small_jobsets(), scorers)
def test_one_machine_is_the_same_by_either_allocation(
    world: Accrual, jobset: JobSet, scorer: str
) -> None:
    one, other = (
        played(replace(world, allocation=allocation), jobset, scorer) for allocation in ALLOCATIONS
    )
    np.testing.assert_array_equal(one.finish, other.finish)
    np.testing.assert_array_equal(one.start, other.start)


@given(small_worlds(machines=3), small_jobsets(), scorers)
def test_no_machine_holds_too_much_and_work_is_conserved(
    world: Accrual, jobset: JobSet, scorer: str
) -> None:
    simulator = loaded(world, jobset)
    simulator.play(Rule("best_fit", scorer), learners=learners())
    schedule = simulator.schedule()
    check_pool(schedule, [jobset], world)
    steps = schedule.pieces.end - schedule.pieces.begin
    assert simulator.busy.sum() == steps @ schedule.pieces.units[:, 0]
    assert simulator.earned.sum() == pytest.approx(final_utility(schedule).sum(), rel=1e-12)
    assert simulator.machine_earned.shape == (1, world.machines)


@pytest.mark.parametrize(
    ("machines", "allocation", "scorer", "earned", "starts", "finishes", "pieces"),
    [
        (2, "machine", "none", [3351, 2931], 27457, 28633, 155),
        (2, "machine", "aggressive", [4678, 4450], 24638, 26623, 372),
        (2, "machine", "value", [5258, 4463], 25296, 28946, 272),
        (2, "job", "none", [1610, 882], 27634, 28810, 155),
        (2, "job", "aggressive", [4678, 4450], 24638, 26624, 372),
        (2, "job", "value", [5274, 4603], 25375, 28676, 270),
        (3, "machine", "none", [4655, 3905, 3080], 24307, 25483, 155),
        (3, "machine", "aggressive", [4770, 4178, 3540], 24100, 25414, 270),
        (3, "machine", "value", [4958, 4127, 3838], 24117, 25445, 221),
        (3, "job", "none", [3820, 3576, 3709], 24322, 25498, 155),
        (3, "job", "aggressive", [4273, 4327, 4128], 24100, 25401, 253),
        (3, "job", "value", [4638, 4525, 4020], 24121, 25423, 212),
    ],
)
def test_pools_earn_what_they_earned_before_they_were_worlds(
    machines: int,
    allocation: str,
    scorer: str,
    earned: list[int],
    starts: int,
    finishes: int,
    pieces: int,
) -> None:
    """Stored facts of 155 Poisson jobs, as the simulator of pools alone had them."""
    jobset = PoissonWorkload(rate=0.5, window=300).sample(np.random.default_rng(0))
    simulator = loaded(Accrual(machines=machines, allocation=allocation), jobset)
    simulator.play(Rule("best_fit", scorer), learners=learners())
    schedule = simulator.schedule()
    assert simulator.machine_earned[0].tolist() == pytest.approx(earned, rel=1e-12)
    assert (schedule.start.sum(), schedule.finish.sum()) == (starts, finishes)
    assert schedule.pieces.job.size == pieces


@pytest.mark.parametrize(("allocation", "start"), [("machine", [5, 0, 0]), ("job", [0, 0, 5])])
def test_either_heuristic_fits_best(allocation: str, start: list[int]) -> None:
    """Jobs of 5, 6 and 10 processors arrive at two machines of 10, both idle.

    The first machine takes the job of 10 and the second that of 6, beside which 5 do not fit. Job
    by job, 5 goes to the first machine and 6, which does not fit beside it, to the second.
    """
    pool = Accrual(processors=10, machines=2, allocation=allocation)
    schedule = played(pool, jobs([0, 0, 0], [5, 6, 10], [5, 5, 5]), "none")
    assert schedule.start.tolist() == start


def test_a_job_goes_where_the_fewest_processors_stay_idle() -> None:
    pool = Accrual(processors=10, machines=2, allocation="job")
    schedule = played(pool, jobs([0, 0, 1, 1], [3, 8, 2, 6], [5, 5, 5, 5]), "none")
    pieces = schedule.pieces
    assert pieces.node[np.argsort(pieces.job)].tolist() == [0, 1, 1, 0]
    assert schedule.start.tolist() == [0, 0, 1, 1]


def test_a_preempted_job_goes_on_wherever_there_is_room() -> None:
    """At 2 the third job, short and urgent, preempts the first; machine 1 is free again at 3."""
    pool = Accrual(processors=10, squeeze=False, machines=2)
    jobset = jobs([0, 0, 2], [8, 7, 8], [8, 3, 4])
    schedule = played(pool, jobset)
    pieces = schedule.pieces
    first = np.flatnonzero(pieces.job == 0)
    assert pieces.node[first].tolist() == [0, 1]
    assert schedule.finish.tolist() == [9, 3, 6]


def test_machines_decide_one_after_the_other_at_one_instant() -> None:
    """Two jobs wait behind two machines of 10 that are full: each machine is asked about both."""
    pool = Accrual(processors=10, squeeze=False, machines=2, candidates=2)
    simulator = loaded(pool, jobs([0, 0, 2, 2], [9, 10, 8, 7], [8, 8, 4, 4]))
    idle = []
    step_one(simulator, 2)  # at 0 there is nothing to decide
    for _ in range(2):
        assert simulator.time.tolist() == [2]
        idle.append(int(simulator.states[0, 3]))
        step_one(simulator, 2)
    assert idle == [0, 1]  # best fit gave the first machine the job of 10
    assert simulator.time[0] > 2


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_a_pool_is_an_environment_as_any(allocation: str) -> None:
    options = {"kind": "accrual", "machines": 2, "candidates": 4, "allocation": allocation}
    env = gymnasium.make("Accrual-v0", world=options, workload={"rate": 0.4, "window": 60})
    check_cluster_env(env, step_rule=check_step)


def test_machines_learn_by_themselves_or_share_a_value_function() -> None:
    world = Accrual(max_time=600)
    workload = PoissonWorkload(rate=0.4, window=600)
    jobsets = [workload.sample(np.random.default_rng(k)) for k in range(2)]
    rule = Rule("best_fit", "value")

    def learned(machines: int, functions: int, which: list[int]) -> np.ndarray:
        pool = loaded(replace(world, machines=machines), *(jobsets[k] for k in which))
        it = learners(functions, machines * len(which) // functions)
        pool.play(rule, learners=it, learning=True)
        assert (it.memory["count"] > 20).all()
        return it.p

    alone = [learned(1, 1, [k])[0] for k in range(2)]
    np.testing.assert_array_equal(learned(1, 2, [0, 1]), alone)
    assert (alone != PAPER).any()
    own, shared = learned(2, 4, [0, 1]), learned(2, 2, [0, 1])
    assert len(np.unique(own, axis=0)) == 4
    np.testing.assert_array_equal(learned(2, 1, [1])[0], shared[1])
    assert len(np.unique(shared, axis=0)) == 2


@pytest.mark.parametrize("machines", [1, 2])
def test_pieces_find_room_however_many_there_are(machines: int) -> None:
    """Whether jobs are decided on one by one, or a rule is played."""
    world = Accrual(processors=4, candidates=2, machines=machines)
    workload = PoissonWorkload(
        processors=4, rate=0.5 * machines, window=400, smallest=1, largest=4, shortest=1, longest=60
    )
    jobset = workload.sample(np.random.default_rng(1))
    simulator = loaded(world, jobset)
    room = simulator._servers.pieces.shape[1]
    play_to_the_end(simulator, np.zeros_like)
    assert simulator._servers.pieces.shape[1] > room
    for schedule in (simulator.schedule(), played(world, jobset)):
        assert schedule.pieces.job.size > 2 * jobset.num_jobs
        check_pool(schedule, [jobset], world)


@pytest.mark.parametrize(("machines", "projects"), [(1, 1), (3, 1), (3, 2)])
def test_a_state_under_way_is_taken_over_whole(machines: int, projects: int) -> None:
    world = Accrual(machines=machines, projects=projects)
    workload = PoissonWorkload(projects=projects, rate=0.8, window=100)
    jobset = workload.sample(np.random.default_rng(0))
    one, other, rewards = loaded(world, jobset), loaded(world, jobset, jobset), np.empty(2)
    both, first = np.arange(2, dtype=np.int32), np.zeros(1, np.int32)
    for _ in range(30):
        one.step(first, first, rewards)
    other.take_over(one, np.zeros(2, np.int32), both)
    while one.active[0]:
        one.step(first, np.ones(1, np.int32), rewards)
        reward = rewards[0]
        other.step(both, np.ones(2, np.int32), rewards)
        assert rewards.tolist() == [reward, reward]
        assert (other.states == one.states).all()
    assert other.machine_earned.tolist() == 2 * one.machine_earned.tolist()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="machines must be 1"):
        Accrual(machines=0)
    with pytest.raises(InputError, match="allocation"):
        Accrual(machines=2, allocation="both")
    with pytest.raises(InputError, match="at least one jobset"):
        loaded(Accrual(machines=2))
    pool = loaded(Accrual(machines=2), jobs([0], [1], [1]))
    with pytest.raises(InputError, match="2 servers need as many learners"):
        pool.play(Rule("best_fit", "value"), learners=learners(3), learning=True)
    with pytest.raises(InputError, match="needs value functions"):
        pool.play(Rule("best_fit", "value"))
