"""Decisions one by one: rules and scorers choose what they would start when they are played."""

from collections.abc import Callable
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, HEURISTICS, ORDERS, Rule
from cluster_env.worlds.hpc.scorer import MODES, SIZE, Scorer
from cluster_env.worlds.hpc.workloads import LublinWorkload
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played, small_jobsets
from tests.cluster_env.worlds.stepping import choosing, play_to_the_end, step_one

WORLD = HPC(PROCESSORS, queue=16)
EVERY_SECOND = replace(WORLD, reward="base", time_step=1, every_step=True)
RULES = [Rule(order, mode) for order in ORDERS if order != "random" for mode in BACKFILLING]


@st.composite
def jobsets_of_users(draw) -> JobSet:
    """Jobs of three users, with estimates that are wrong and corrected."""
    jobset = draw(small_jobsets(corrected=True))
    users = st.lists(st.integers(0, 2), min_size=jobset.num_jobs, max_size=jobset.num_jobs)
    attributes = {**jobset.attributes, "user": np.array(draw(users))}
    return JobSet.of(jobset.arrival, jobset.duration, jobset.demand, attributes=attributes)


def stepped(world: HPC, jobsets: list[JobSet], rule: Rule | Scorer) -> Schedule:
    """Episodes side by side, decision by decision."""
    simulator = world.simulator()
    simulator.load(jobsets, get_objective("slowdown"))
    play_to_the_end(simulator, lambda rows: simulator.choose(rule, rows))
    return simulator.schedule()


def assert_same(world: HPC, jobsets: list[JobSet], rule: Rule | Scorer) -> None:
    one_by_one = stepped(world, jobsets, rule)
    assert one_by_one.start.tolist() == played(world, jobsets, rule).start.tolist()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.order}-{rule.backfilling}")
@given(jobset=jobsets_of_users(), world=st.sampled_from([WORLD, EVERY_SECOND]))
@settings(max_examples=14)
def test_decisions_one_by_one_give_the_schedule_that_is_played(
    rule: Rule, jobset: JobSet, world: HPC
) -> None:
    assert_same(world, [jobset], rule)


@pytest.mark.parametrize("bilinear", [False, True], ids=["linear", "bilinear"])
@pytest.mark.parametrize("mode", MODES)
@given(jobset=jobsets_of_users(), seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_decisions_of_scorers_give_the_schedule_that_is_played(
    mode: str, bilinear: bool, jobset: JobSet, seed: int
) -> None:
    weights = np.random.default_rng(seed).standard_normal((SIZE, SIZE))
    weights[:-1, :-1] *= bilinear
    assert_same(WORLD, [jobset], Scorer(weights, mode))


@pytest.mark.parametrize(
    "options",
    [{"time_step": 60}, {"max_time": 20_000}, {"kill_at_estimate": True}, {"horizon": 5}],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("name", ["tetris:easy", "priority:conservative", "f3", "wfp3:easy"])
def test_whenever_a_rule_is_asked_it_starts_what_it_starts_when_played(
    name: str, options: dict
) -> None:
    world = HPC(64, queue=200, **options)
    workload = LublinWorkload(64, jobs=60, load=1.1, estimates="gaussian:0.8")
    jobsets = [workload.sample(np.random.default_rng(seed)) for seed in range(2)]
    assert_same(world, jobsets, get_heuristic(name, world).rule)


def test_rules_decide_at_events_alone() -> None:
    """From 14 on job 2 stands before job 1 and fits, but until 100 nothing happens."""
    jobset = jobset_of([0, 1, 10], [100, 1000, 200], [100, 1000, 200], [4, 8, 4])
    world = HPC(PROCESSORS, queue=4, time_step=5)
    starts = stepped(world, [jobset], Rule("wfp3", "easy")).start.tolist()
    assert starts == played(world, [jobset], Rule("wfp3", "easy")).start.tolist() == [0, 300, 100]


def test_rules_that_are_asked_every_minute_see_what_has_happened_since() -> None:
    """Job 0 ends at 70, job 1 arrives at 10: nobody is asked before the next whole minute."""
    world = HPC(PROCESSORS, queue=4, reward="base", time_step=60, every_step=True)
    jobset = jobset_of([0, 10], [70, 5], [70, 5], [8, 8])
    assert stepped(world, [jobset], Rule("saf", "easy")).start.tolist() == [0, 120]


def of_memory_and_gpus(seed: int) -> JobSet:
    rng = np.random.default_rng(seed)
    arrival, run = np.sort(rng.integers(0, 200, 60)), rng.integers(1, 40, 60)
    demand = np.stack([rng.integers(low, high, 60) for low, high in ((1, 9), (0, 9), (0, 3))], 1)
    return jobset_of(arrival, run, run + rng.integers(-9, 20, 60).clip(1 - run), demand)


@pytest.mark.parametrize("name", [*HEURISTICS.names(), "packer:skip", "tetris:conservative"])
def test_rules_by_name_choose_on_machines_with_memory_and_gpus(name: str) -> None:
    world = HPC(8, memory=8, gpus=2, queue=60)
    jobset = of_memory_and_gpus(3)
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    policy = get_heuristic(name, world)
    play_to_the_end(simulator, choosing(policy, simulator))
    schedule = simulator.schedule()
    check_schedule(schedule, [jobset], complete_until=world.max_time)
    if name != "random":  # which is drawn anew at each decision
        assert schedule.start.tolist() == evaluate(policy, [jobset], world).start.tolist()


def test_rows_that_are_taken_over_choose_as_before() -> None:
    """What users have used goes along, and what was true when the instant began."""
    jobset = LublinWorkload(64, jobs=80, load=1.2).sample(np.random.default_rng(1))
    attributes = {**jobset.attributes, "user": np.arange(80) % 3}
    jobset = JobSet.of(jobset.arrival, jobset.duration, jobset.demand, attributes=attributes)
    world, rule, objective = HPC(64, queue=80), Rule("priority"), get_objective("slowdown")
    first, second = world.simulator(), world.simulator()
    first.load([jobset], objective)
    second.load([of_one_second(), jobset], objective)
    row, there = np.zeros(1, np.int32), np.ones(1, np.int32)
    for _ in range(70):
        first.step(row, first.choose(rule, row), np.empty(1))
    second.take_over(first, row, there)
    while second.active[1]:
        second.step(there, second.choose(rule, there), np.empty(1))
    starts = second.schedule().start[1:]
    assert starts.tolist() == played(world, [jobset], rule).start.tolist()


def of_one_second() -> JobSet:
    attributes = {"estimate": [1], "user": [2]}
    return JobSet.of([0], [1], [[64]], attributes=attributes)


def test_a_job_that_a_state_does_not_show_waits_and_the_next_one_goes_first() -> None:
    """All jobs behind the first fit, and the last is the shortest; a state shows two of them."""
    jobset = jobset_of([0, 0, 0, 0], [9, 8, 7, 2], [9, 8, 7, 2], [2, 2, 2, 2])
    world, row = HPC(PROCESSORS, queue=2), np.zeros(1, np.int32)
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    actions = []
    for _ in range(4):
        actions += simulator.choose(Rule("sjf", "skip"), row).tolist()
        step_one(simulator, actions[-1])
    assert actions == [1, 1, 1, 0]  # jobs 1, 2, 3, as each comes into sight, and then job 0


def test_a_rule_may_choose_after_another_policy_has_started_jobs() -> None:
    """Job 2 has been started although it delays job 1; the rule goes on with what still fits."""
    jobset = jobset_of([0, 1, 1, 1], [10, 9, 30, 5], [10, 9, 30, 5], [4, 8, 3, 1])
    simulator, row = WORLD.simulator(), np.zeros(1, np.int32)
    simulator.load([jobset], get_objective("slowdown"))
    for action in (0, 1):
        step_one(simulator, action)
    assert simulator.choose(Rule("fcfs", "easy"), row).tolist() == [1]


def test_random_orders_are_drawn_by_the_numbers_that_are_given() -> None:
    jobset = jobset_of(np.zeros(9), np.ones(9), np.ones(9), np.full(9, 8))
    simulator = WORLD.simulator()
    simulator.load([jobset] * 50, get_objective("slowdown"))
    uniforms = np.random.default_rng(0).random(50)
    first, again = (simulator.choose(Rule("random"), simulator.episode, uniforms) for _ in "ab")
    assert first.tolist() == again.tolist()
    assert set(first.tolist()) == set(range(9))
    alone = simulator.choose(Rule("random"), np.array([7], np.int32), uniforms[7:8])
    assert alone.tolist() == first[7:8].tolist()


def test_environments_choose_by_rules() -> None:
    env = gymnasium.make("HPC-v0", workload={"jobs": 40})
    policy = get_heuristic("saf", env.unwrapped.world)
    env.reset(seed=5)
    ended = False
    while not ended:
        _, _, ended, truncated, _ = env.step(env.unwrapped.choose(policy))
        assert not truncated
    core = env.unwrapped
    assert (
        core.schedule().start.tolist() == evaluate(policy, [core.jobset], core.world).start.tolist()
    )


def test_rules_do_not_act_on_bare_states() -> None:
    act: Callable = get_heuristic("saf", WORLD).act
    with pytest.raises(InputError, match=r"env\.unwrapped\.choose"):
        act(WORLD.state_space.sample()[None], np.zeros(1))
