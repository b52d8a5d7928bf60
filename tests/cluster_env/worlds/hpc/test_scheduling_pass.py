"""A scheduling pass after each single event, as some simulators make it, instead of each second."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cluster_env  # noqa: F401 - registers the environments
from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.published import PublishedPolicy
from cluster_env.worlds.hpc.rules import BACKFILLING, Rule
from cluster_env.worlds.hpc.scorer import Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played, small_jobsets
from tests.cluster_env.worlds.hpc.plain_rules import plain_starts

INSTANT = HPC(processors=PROCESSORS)
EVENT = replace(INSTANT, scheduling_pass="event")


@pytest.mark.parametrize("backfilling", BACKFILLING)
@pytest.mark.parametrize("order", ["fcfs", "sjf", "lcfs", "wfp3", "unicep", "tetris"])
@given(jobset=small_jobsets(), max_wait=st.sampled_from([0, 3, 6]))
@settings(max_examples=40)
def test_rules_are_those_of_a_plain_loop(
    order: str, backfilling: str, jobset: JobSet, max_wait: int
) -> None:
    """Estimates may be wrong in both directions."""
    rule, world = Rule(order, backfilling), replace(EVENT, max_wait=max_wait)
    schedule = played(world, [jobset], rule)
    check_schedule(schedule, [jobset], complete_until=world.max_time)
    plain = plain_starts(jobset, rule, PROCESSORS, max_wait, pass_per_event=True)
    assert schedule.start.tolist() == plain


@pytest.mark.parametrize("rule", ["sjf/easy", "saf/conservative", "wfp3/easy", "wspt/skip"])
@given(jobset=small_jobsets(corrected=True))
@settings(max_examples=40)
def test_corrected_estimates_are_those_of_a_plain_loop(rule: str, jobset: JobSet) -> None:
    """The plan counts on a running job up to what is believed of it, not up to its limit."""
    chosen = Rule(*rule.split("/"))
    starts = played(EVENT, [jobset], chosen).start.tolist()
    assert starts == plain_starts(jobset, chosen, PROCESSORS, pass_per_event=True)


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@given(jobset=small_jobsets(), max_wait=st.sampled_from([0, 4]))
def test_a_scorer_of_estimates_is_the_shortest_job_first(
    mode: str, jobset: JobSet, max_wait: int
) -> None:
    world = replace(EVENT, max_wait=max_wait)
    scorer, rule = Scorer.linear(mode, log_estimate=1.0), Rule("sjf", mode)
    starts = [played(world, [jobset], one).start.tolist() for one in (scorer, rule)]
    assert starts[0] == starts[1]


@given(jobset=small_jobsets())
def test_strict_first_come_first_served_does_not_depend_on_the_pass(jobset: JobSet) -> None:
    starts = [played(world, [jobset], Rule("fcfs", "strict")).start for world in (INSTANT, EVENT)]
    np.testing.assert_array_equal(*starts)


def test_early_ends_of_one_second_come_one_by_one_in_the_order_of_starts() -> None:
    """Jobs 1 and 0 end at 9, and job 0 started first.

    When it alone has ended, four processors are free: job 2 needs six, which are expected at 40,
    and job 3 ends before. With job 1 gone first, there would be two, which are too few for job 3.
    """
    jobset = jobset_of([0, 1, 2, 3], [9, 8, 5, 20], [30, 39, 5, 20], [4, 2, 6, 3])
    world = replace(EVENT, processors=6)
    assert played(world, [jobset], Rule("fcfs", "easy")).start.tolist() == [0, 1, 29, 9]
    world = replace(INSTANT, processors=6)
    assert played(world, [jobset], Rule("fcfs", "easy")).start.tolist() == [0, 1, 9, 14]


@given(jobset=small_jobsets(), max_wait=st.sampled_from([0, 4]), seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_a_policy_is_asked_after_each_event(jobset: JobSet, max_wait: int, seed: int) -> None:
    """Who always starts the oldest job that fits plays first come, first served with skipping."""
    world = replace(EVENT, queue=16, max_wait=max_wait)
    simulator = world.simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    row, rewards = simulator.episode, np.zeros(1)
    while simulator.active[0]:
        first = world.features(simulator.states).allowed.argmax(axis=1)
        simulator.step(row, first.astype(np.int32), rewards)
    starts = simulator.schedule().start
    if not max_wait:
        np.testing.assert_array_equal(starts, played(world, [jobset], Rule("fcfs", "skip")).start)
    # Any actions give a schedule.
    rng = np.random.default_rng(seed)
    simulator.reset()
    while simulator.active[0]:
        simulator.step(row, rng.integers(0, 18, 1).astype(np.int32), rewards)
    check_schedule(simulator.schedule(), [jobset], complete_until=world.max_time)


def test_what_does_not_go_with_single_events_is_refused() -> None:
    env = gymnasium.make("HPC-v0", world={"kind": "hpc", "scheduling_pass": "event"})
    env.reset(seed=0)
    with pytest.raises(InputError, match="with scheduling_pass=event rules and scorers only play"):
        env.unwrapped.choose(get_heuristic("fcfs", EVENT))
    with pytest.raises(InputError, match="with an event loop of its own; leave out scheduling_p"):
        evaluate(PublishedPolicy("rls", "rls", "sjf"), [jobset_of([0], [1], [1], [1])], EVENT)
    with pytest.raises(InputError, match="so scheduling_pass must be instant"):
        replace(EVENT, time_step=1, every_step=True)
    with pytest.raises(InputError, match="scheduling pass 'second'"):
        replace(EVENT, scheduling_pass="second")
