"""The compiled server against the plain one, and what must hold whatever is decided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import get_heuristic
from cluster_env.core.utility import final_utility
from cluster_env.evaluation import evaluate
from cluster_env.objectives import UTILITY
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.heuristics import HEURISTICS, AccrualPolicy
from cluster_env.worlds.accrual.rules import Rule
from cluster_env.worlds.accrual.state import CANDIDATE, HEADER
from cluster_env.worlds.accrual.td import new_learners
from cluster_env.worlds.accrual.values import RULEBASE, value_of
from tests.cluster_env.schedules import assert_same_schedule
from tests.cluster_env.worlds.accrual.accrual_jobs import jobs, small_jobsets, small_worlds
from tests.cluster_env.worlds.accrual.plain import (
    Choice,
    PlainLearner,
    PlainServer,
    by_value,
    nothing,
    smallest,
)
from tests.cluster_env.worlds.accrual.step_rule import check_pool, complete_until
from tests.cluster_env.worlds.stepping import choosing, play_to_the_end, step_one

parameters = st.lists(st.sampled_from((-2.0, -0.5, 0.0, 0.25, 1.0, 3.0)), min_size=8, max_size=8)


def rulebase(world: Accrual, p: list[float]) -> Choice:
    """The same values as the compiled rule sees, which knows x1 to a millionth."""

    def value(x: tuple[float, int, int]) -> float:
        shares = round(x[0] * 1e6) / 1e6, min(x[1] / world.longest, 1.0), x[2] / world.processors
        return float(value_of(RULEBASE, np.array(p), *shares))

    return by_value(value)


def used(schedule: Schedule, job: int, until: int) -> list[int]:
    """Processors that a job uses in each step."""
    pieces = schedule.pieces
    found = np.zeros(until, np.int64)
    for k in np.flatnonzero(pieces.job == job):
        found[pieces.begin[k] : pieces.end[k]] += pieces.units[k, 0]
    return found.tolist()


def assert_same(schedule: Schedule, plain: PlainServer) -> None:
    arrived = plain.jobs[: schedule.job.size]
    assert schedule.start.tolist() == [job.start for job in arrived]
    assert schedule.finish.tolist() == [job.finish for job in arrived]
    for job in arrived:
        expected = np.zeros(plain.now, np.int64)
        for step, count in job.used:
            expected[step] += count
        assert used(schedule, job.number, plain.now) == expected.tolist()
    assert final_utility(schedule).sum() == pytest.approx(plain.utility, rel=1e-12)


@given(
    small_worlds(), small_jobsets(), st.sampled_from(("none", "aggressive", "value")), parameters
)
def test_it_does_what_the_plain_server_does(
    world: Accrual, jobset: JobSet, scorer: str, p: list[float]
) -> None:
    choose = {"none": nothing, "aggressive": smallest, "value": rulebase(world, p)}[scorer]
    plain = PlainServer(world, jobset, choose)
    plain.play()
    policy = AccrualPolicy(world, scorer, Rule("best_fit", scorer), parameters=tuple(p))
    schedule = evaluate(policy, [jobset], world)
    complete = complete_until(world)
    check_schedule(schedule, [jobset], complete_until=complete)
    assert_same(schedule, plain)


@given(small_worlds(), small_jobsets(), parameters, st.sampled_from((0.02, 0.5)))
def test_it_learns_what_the_plain_server_learns(
    world: Accrual, jobset: JobSet, p: list[float], rate: float
) -> None:
    assert_learns_the_same(world, jobset, p, rate)


def assert_learns_the_same(world: Accrual, jobset: JobSet, p: list[float], rate: float) -> None:
    plain = [PlainLearner(world, rate, 0.1, 3.0, list(p)) for _ in range(world.projects)]
    server = PlainServer(
        world,
        jobset,
        lambda *offered: plain[server.project].choose(*offered),
        lambda *seen: plain[server.project].learn(*seen),
    )
    server.play()
    it = new_learners(RULEBASE, np.array([p] * world.projects), rate, 0.1, 3.0, False)
    simulator = world.simulator()
    simulator.load([jobset], UTILITY)
    simulator.play(Rule("best_fit", "value"), learners=it, learning=True)
    assert_same(simulator.schedule(), server)
    assert it.memory["count"].tolist() == [one.count for one in plain]
    np.testing.assert_allclose(it.p, [one.p for one in plain], rtol=1e-9, atol=1e-9)
    assert it.memory["rho"].tolist() == pytest.approx([one.rho for one in plain], rel=1e-12)


def rules_of(world: Accrual) -> list[str]:
    """All rules by name that a world has, with the columns of figure 2."""
    columns = [name for name in ("preempt", "squeeze") if getattr(world, name)]
    deciding = [f"{name}:{column}" for name in ("aggressive", "rulebase") for column in columns]
    return [*HEURISTICS.names(), *deciding]


@given(small_worlds(machines=3), st.lists(small_jobsets(), min_size=1, max_size=2))
def test_rules_that_choose_in_a_simulator_make_the_schedules_that_they_play(
    world: Accrual, jobsets: list[JobSet]
) -> None:
    width = {one.attributes["tuf"].shape[1] for one in jobsets}
    jobsets = jobsets if len(width) == 1 else jobsets[:1]
    simulator = world.simulator()
    simulator.load(jobsets, UTILITY)
    for name in rules_of(world):
        policy = get_heuristic(name, world)
        simulator.reset()
        play_to_the_end(simulator, choosing(policy, simulator))
        assert_same_schedule(simulator.schedule(), evaluate(policy, jobsets, world))
        check_pool(simulator.schedule(), jobsets, world)


def test_an_order_that_is_chosen_late_holds_from_then_on() -> None:
    """Three jobs of one processor wait behind the first one; the last has the first deadline."""
    world = Accrual(processors=1, longest=15)
    jobset = jobs([0, 1, 1, 1], [1, 1, 1, 1], [5, 4, 15, 3])
    simulator = world.simulator()
    simulator.load([jobset], UTILITY)
    step_one(simulator, world.candidates)
    play_to_the_end(simulator, choosing(get_heuristic("edf", world), simulator))
    assert simulator.schedule().start.tolist() == [0, 8, 12, 5]
    simulator.reset()  # best fit again, of equal sizes the one that is worth most
    play_to_the_end(simulator, lambda rows: np.full(rows.size, world.candidates, np.int32))
    assert simulator.schedule().start.tolist() == [0, 20, 5, 24]


@pytest.mark.parametrize("name", ["none", "aggressive", "rulebase", "edf", "density", "dasa"])
@pytest.mark.parametrize("utility", ["linear", "square", "root"])
def test_one_job_on_an_empty_server_is_worth_k_l(name: str, utility: str) -> None:
    world = Accrual()
    schedule = evaluate(get_heuristic(name, world), [jobs([3], [17], [9], utility)], world)
    assert final_utility(schedule).tolist() == [17 * 9]
    assert schedule.finish.tolist() == [12]


def test_a_squeezed_job_gets_processors_back_and_loses_what_it_was_late() -> None:
    """4 processors are left beside the first job, until it is done at 5; then all 6."""
    world = Accrual(processors=10, preempt=False)
    jobset = jobs([0, 0], [6, 6], [5, 10])  # best fit starts the longer one: it is worth more
    schedule = evaluate(get_heuristic("aggressive", world), [jobset], world)
    assert used(schedule, 1, 10) == [6] * 10
    assert used(schedule, 0, 8) == [4] * 7 + [2]  # 30 units of work, four a step
    assert schedule.finish.tolist() == [8, 10]
    assert final_utility(schedule).tolist() == pytest.approx([30 * (1 - 3 / 5), 60])
    grown = evaluate(get_heuristic("aggressive", world), [jobs([0, 1], [6, 6], [5, 10])], world)
    assert used(grown, 1, 13) == [0, *[4] * 4, *[6] * 7, 2]


def test_a_preempted_job_goes_on_where_it_stopped() -> None:
    world = Accrual(processors=10, squeeze=False)
    jobset = jobs([0, 2], [8, 8], [8, 2])  # 1 / 2 is more than 1 / 6
    schedule = evaluate(get_heuristic("aggressive", world), [jobset], world)
    assert used(schedule, 0, 10) == [8, 8, 0, 0, *[8] * 6]
    assert schedule.finish.tolist() == [10, 4]
    assert schedule.start.tolist() == [0, 2]
    assert final_utility(schedule).tolist() == pytest.approx([64 * (1 - 2 / 8), 16])


def test_a_state_says_what_its_candidates_lose_otherwise() -> None:
    """At 2 the second job could preempt the first one, which would finish at 10 instead of 8."""
    world = Accrual(processors=10, squeeze=False)
    simulator = world.simulator()
    simulator.load([jobs([0, 2], [8, 8], [8, 2])], UTILITY)
    step_one(simulator, 0)
    state = simulator.states[0]
    seen = dict(zip(HEADER._fields, state[: len(HEADER)].tolist(), strict=True))
    assert (seen["slope"], seen["promised"]) == (8, 64)
    seen = dict(zip(CANDIDATE._fields, state[len(HEADER) :].tolist(), strict=False))
    assert (seen["full_utility"], seen["wait_utility"]) == (1_000_000, 0)
    assert seen["lost"] == 64 * 2 / 8
    lost = world.features(simulator.states).items[0, 0, -1]
    assert lost == pytest.approx(16 / (16 + 10 * 10))
