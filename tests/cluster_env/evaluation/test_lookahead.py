"""Rollouts through sampled futures, beside the same with one simulator for each and plain loops."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import choose
from cluster_env.core.seeding import Split, episode_keys, uniforms
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.lookahead import (
    FIRST_SHARE,
    Compared,
    Lookahead,
    RolloutPolicy,
    candidates,
    decision_key,
)
from cluster_env.objectives import get_objective
from cluster_env.task import Task, build_workload
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.hpc import HPC

FUTURES, REACH = 8, 12


def deeprm_task(**options: Any) -> Task:
    world = DeepRM(Cluster(num_slots=3), rules="released", max_time=500)
    workload = build_workload(world, "bimodal", {"load": 1.2, "window": 40, **options})
    return Task(world, workload, get_objective("slowdown"), seed=3)


def hpc_task() -> Task:
    world = HPC(processors=16, queue=4)
    workload = build_workload(world, "lublin", {"jobs": 40, "load": 2.0})
    return Task(world, workload, get_objective("bounded_slowdown"), seed=3)


EVERY = {"deeprm": 2, "hpc": 4}  # of the decisions, one is tried in so many
TASKS = {"deeprm": (deeprm_task, "fcfs"), "hpc": (hpc_task, "sjf:easy")}


def played_up_to(task: Task, jobset: JobSet, actions: list[int]) -> Any:
    """A simulator with one episode, after some actions."""
    simulator: Any = task.world.simulator()
    simulator.load([jobset], task.objective)
    for action in actions:
        simulator.step(np.zeros(1, np.int32), np.array([action], np.int32), np.empty(1))
    return simulator


def return_of(task: Task, policy: Any, jobset: JobSet, actions: list[int]) -> float:
    """What comes after all actions but the last, if the policy plays on after them."""
    simulator = played_up_to(task, jobset, actions[:-1])
    rows, action, total = np.zeros(1, np.int32), np.array(actions[-1:], np.int32), 0.0
    while True:
        reward = np.empty(1)
        simulator.step(rows, action, reward)
        total += reward[0]
        if not simulator.active[0]:
            return total
        action = choose(policy, simulator, rows, np.zeros(1))


def decisions_of(task: Task, policy: Any, jobset: JobSet, least: int) -> list[list[int]]:
    """Actions before each decision at which at least so many actions are possible."""
    simulator, actions, found = played_up_to(task, jobset, []), list[int](), list[list[int]]()
    rows = np.zeros(1, np.int32)
    while simulator.active[0]:
        own = choose(policy, simulator, rows, np.zeros(1))
        if candidates(policy, simulator, rows, own, 9)[0].size >= least:
            found.append(list(actions))
        simulator.step(rows, own, np.empty(1))
        actions.append(int(own[0]))
    return found


@pytest.mark.parametrize("name", TASKS)
def test_gains_are_those_of_episodes_that_are_played_one_by_one(name: str) -> None:
    """Each future runs from the beginning, with the actions that were taken."""
    task, rule = TASKS[name][0](), TASKS[name][1]
    policy, lookahead = get_heuristic(rule, task.world), Lookahead(task, FUTURES, reach=REACH)
    (jobset,) = task.jobsets(Split.TRAIN, [0])
    rows, differ = np.zeros(1, np.int32), 0
    for key, before in enumerate(decisions_of(task, policy, jobset, 3)[:: EVERY[name]]):
        simulator = played_up_to(task, jobset, before)
        states = simulator.states.copy()
        own = choose(policy, simulator, rows, np.zeros(1))
        (actions,) = candidates(policy, simulator, rows, own, 4)
        (found,) = lookahead.compare(policy, simulator, [0], [actions], [key])
        assert np.array_equal(simulator.states, states)
        now = int(simulator.time[0])
        nothing_arrives = jobset.select(jobset.arrival <= now, window=now + 1)
        futures = [nothing_arrives, *lookahead.sample(simulator, 0, key, range(FUTURES))]
        returns = np.array(
            [
                [return_of(task, policy, one, [*before, int(action)]) for one in futures]
                for action in actions
            ]
        )
        gains = returns - returns[0]
        assert np.allclose(found.alone, gains[:, 0], atol=1e-9)
        better = gains[:, 0] > 1e-9
        assert np.array_equal(found.played[1:], better[1:])
        assert found.played[0] == better.any()
        first = int(FUTURES * FIRST_SHARE)
        few, many = found.gains[found.played, :first], gains[found.played, 1:]
        assert np.allclose(few, many[:, :first], atol=1e-9)
        goes_on = few.mean(axis=1) > 0
        goes_on[:1] = goes_on.any()
        assert np.allclose(found.gains[found.played][goes_on], many[goes_on], atol=1e-9)
        assert np.isnan(found.gains[found.played][~goes_on, first:]).all()
        assert np.array_equal(found.mean[~found.played], found.alone[~found.played])
        differ += int(better.any())
    assert differ > 3


@pytest.mark.parametrize("name", TASKS)
def test_jobs_that_have_not_arrived_change_nothing(name: str) -> None:
    """The same jobs up to a decision, and others or none after it: the same futures and gains."""
    task, rule = TASKS[name][0](), TASKS[name][1]
    policy, lookahead = get_heuristic(rule, task.world), Lookahead(task, FUTURES, reach=REACH)
    (jobset,) = task.jobsets(Split.TRAIN, [0])
    every = decisions_of(task, policy, jobset, 2)
    before = every[len(every) // 4]
    simulator = played_up_to(task, jobset, before)
    now = int(simulator.time[0])
    arrived = int((jobset.arrival <= now).sum())
    assert 0 < arrived < jobset.num_jobs - 1
    other = JobSet.of(
        jobset.arrival,
        np.where(np.arange(jobset.num_jobs) < arrived, jobset.duration, 1),
        jobset.demand,
        jobset.window,
        attributes=dict(jobset.attributes),
    )
    fewer = jobset.select(slice(arrived + 1))
    rows, found = np.zeros(1, np.int32), []
    for one in (jobset, other, fewer):
        simulator = played_up_to(task, one, before)
        own = choose(policy, simulator, rows, np.zeros(1))
        (actions,) = candidates(policy, simulator, rows, own, 4)
        (compared,) = lookahead.compare(policy, simulator, [0], [actions], [7])
        found.append(np.column_stack([compared.alone, compared.gains]))
    assert np.array_equal(found[0], found[1], equal_nan=True)
    assert np.array_equal(found[0], found[2], equal_nan=True)
    assert np.nanmax(np.abs(found[0])) > 0


def test_later_jobs_come_after_the_instant_and_repeat_no_other_future() -> None:
    task = deeprm_task()
    lookahead = Lookahead(task, FUTURES, reach=REACH)
    (jobset,) = task.jobsets(Split.TRAIN, [0])
    simulator = played_up_to(task, jobset, [3] * 10)  # void each
    now, futures = int(simulator.time[0]), lookahead.sample(simulator, 0, 1, range(FUTURES))
    assert now == 10
    for future in futures:
        arrived = int((future.arrival <= now).sum())
        assert np.array_equal(future.arrival[:arrived], jobset.arrival[jobset.arrival <= now])
        assert future.window == now + 1 + REACH
    assert len({future.arrival.tobytes() for future in futures}) == FUTURES
    (again,) = lookahead.sample(simulator, 0, 1, [5])
    assert np.array_equal(again.arrival, futures[5].arrival)


def test_another_action_needs_a_gain_above_its_errors() -> None:
    none = np.nan
    gains = np.array([[0] * 4, [1, 3, 1, 3], [4, -2, 4, 2], [none] * 4, [-2, -1, none, none]])
    compared = Compared(np.arange(5, 10, dtype=np.int32), np.array([0, 1, 2, -3, 4.0]), gains)
    assert compared.mean == pytest.approx([0, 2, 2, -3, -1.5])
    errors = [0, np.std(gains[1], ddof=1) / 2, 2**0.5, 0, 0.5]
    assert compared.error == pytest.approx(errors, abs=1e-9)
    assert compared.best(1.0) == 1  # of equally good ones the first
    assert compared.best(2.0) == 1
    assert compared.best(9.0) == 0
    nowhere = Compared(compared.actions, -np.abs(compared.alone), np.full((5, 4), none))
    assert nowhere.best(0.0) == 0


def test_rollouts_are_better_than_the_rule_that_plays_on() -> None:
    """First come, first served leaves room that the next jobs could use."""
    task = deeprm_task(load=0.9, window=60)
    base = get_heuristic("fcfs", task.world)
    improved = RolloutPolicy("improved", base, Lookahead(task, 12, reach=30))
    jobsets = task.jobsets(Split.HELD_OUT, range(6))
    costs = [
        evaluate(policy, jobsets, task.world, run_seed=3).slowdown.mean()
        for policy in (base, improved)
    ]
    assert costs[1] < 0.9 * costs[0]


def test_decisions_depend_neither_on_batches_nor_on_who_is_beside() -> None:
    task = deeprm_task()
    policy = RolloutPolicy("r", get_heuristic("sjf", task.world), Lookahead(task, 4, reach=REACH))
    jobsets = task.jobsets(Split.HELD_OUT, range(4))
    together = evaluate(policy, jobsets, task.world, run_seed=3)
    apart = evaluate(policy, jobsets, task.world, run_seed=3, batch_episodes=1)
    last = evaluate(policy, jobsets[3:], task.world, run_seed=3, first_position=3)
    assert np.array_equal(together.start, apart.start)
    assert np.array_equal(together.start[together.jobset[together.episode] == 3], last.start)


def test_each_decision_has_a_key_of_its_own() -> None:
    keys = episode_keys(1, 2, count=50)
    found = [decision_key(number) for step in range(50) for number in uniforms(keys, step)]
    assert len(set(found)) == len(found)


def test_futures_follow_what_varies_and_end_where_asked() -> None:
    vary = {"load": (0.4, 1.2), "window": (10, 50), "window_loads": (1.2, 0.5)}
    workload: Any = deeprm_task(load=0.7).workload
    workload = replace(workload, vary=replace(workload.vary, **vary), first_step=1)
    later = workload.after(30)
    assert (later.vary.load, later.vary.window, later.first_step) == ((0.4, 1.2), (), 0)
    rng = np.random.default_rng
    assert later.sample(rng(1)).window == 30
    drawn = workload.of_jobset(rng(1))
    assert drawn.vary == type(drawn.vary)()


def test_what_cannot_be_played_on_is_refused() -> None:
    task = deeprm_task()
    with pytest.raises(InputError, match=r"at least 2 futures, .* but 1 was given"):
        Lookahead(task, 1)
    with pytest.raises(InputError, match=r"need sampled futures, which .* world accrual"):
        Lookahead(replace(task, world=Accrual()), 4)
    simulator = played_up_to(task, task.jobsets(Split.TRAIN, [0])[0], [])
    policy, actions = get_heuristic("sjf", task.world), np.array([0, 1], np.int32)
    other = Lookahead(replace(task, objective=get_objective("makespan")), 4)
    with pytest.raises(InputError, match=r"for the objective makespan need .* not slowdown"):
        other.compare(policy, simulator, [0], [actions], [1])
    with pytest.raises(InputError, match="cannot act on states alone"):
        RolloutPolicy("r", policy, Lookahead(task, 4)).act(simulator.states, np.zeros(1))


class Expecting:
    """A rule that expects what jobs that have ended took."""

    name = "expecting"

    def __init__(self, task: Task) -> None:
        self._rule: Any = get_heuristic("sjf:easy", task.world)

    def view(self, world: Any) -> Any:
        """See `ViewingPolicy`."""
        return replace(world, run_times="mixed")

    def act(self, states: Any, uniforms: Any) -> Any:
        """See `Policy`."""
        return self._rule.act(states, uniforms)

    def choose(self, simulator: Any, rows: Any, uniforms: Any) -> Any:
        """See `ChoosingPolicy`."""
        return self._rule.choose(simulator, rows, uniforms)


def test_futures_are_seen_as_the_policy_sees_jobs() -> None:
    task = hpc_task()
    task = replace(task, workload=replace(task.workload, estimates="over:3"))
    base, lookahead = Expecting(task), Lookahead(task, 4, reach=REACH)
    rule = RolloutPolicy("r", get_heuristic("sjf:easy", task.world), lookahead)
    jobsets, seen = task.jobsets(Split.TRAIN, [0]), replace(task, world=base.view(task.world))
    found = evaluate(RolloutPolicy("r", base, lookahead), jobsets, task.world)
    assert np.array_equal(found.start, evaluate(rule, jobsets, seen.world).start)
    assert not np.array_equal(found.start, evaluate(rule, jobsets, task.world).start)
    simulator = played_up_to(seen, jobsets[0], [])
    actions = np.array([0, task.world.num_actions - 1], np.int32)
    (compared,) = lookahead.compare(base, simulator, [0], [actions], [1])
    assert compared.gains.shape == (2, 4)
    known = {**jobsets[0].attributes, "order_estimate": jobsets[0].duration}
    told = [replace(jobsets[0], attributes=known)]
    with pytest.raises(InputError, match="lack the attribute 'order_estimate'"):
        evaluate(rule, told, task.world)


def test_jobs_of_users_are_refused() -> None:
    task = hpc_task()
    (jobset,) = task.jobsets(Split.TRAIN, [0])
    users = {**jobset.attributes, "user": np.arange(jobset.num_jobs) % 3}
    simulator = played_up_to(task, replace(jobset, attributes=users), [])
    with pytest.raises(InputError, match="those of users"):
        Lookahead(task, 4).sample(simulator, 0, 1, [0])
