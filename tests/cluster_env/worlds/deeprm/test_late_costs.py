"""What jobs cost once they have been in the system for long, under all rules."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import LateCost, Objective
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import PAPER_RULES, RELEASED_RULES, Rules
from tests.cluster_env.worlds.stepping import step_all

CLUSTER = Cluster(capacity=(4, 3), horizon=6, num_slots=2, backlog_view=2)
RULES = {
    "paper": PAPER_RULES,
    "released": RELEASED_RULES,
    "released, cut": replace(RELEASED_RULES, stop="no_new_job"),
    "paper, charged after": replace(PAPER_RULES, charge_after_step=True),
    "paper, dropping": replace(PAPER_RULES, drop_when_backlog_full=True),
}


def objective_of(jobs: list[float], *late: tuple[list[float], list[int]]) -> Objective:
    """Costs of each job, and for each late cost, those of each job and the steps after which."""

    def term(cost: list[float], after: list[int]) -> LateCost:
        return LateCost(lambda _: np.array(cost, float), lambda _: np.array(after, np.int32))

    return Objective("late", lambda _: np.array(jobs), late_costs=tuple(term(*one) for one in late))


def random_jobset(rng: np.random.Generator, num_jobs: int) -> JobSet:
    return JobSet.of(
        np.sort(rng.integers(12, size=num_jobs)),
        rng.integers(1, CLUSTER.horizon, size=num_jobs),
        rng.integers(1, CLUSTER.capacity, size=(num_jobs, 2), endpoint=True),
        window=12,
    )


def rewards_of(
    objective: Objective, jobset: JobSet, rules: Rules, actions: NDArray[np.int32]
) -> tuple[list[float], list[int]]:
    """Reward of each decision, and the clock that a step is charged at."""
    simulator = DeepRM(CLUSTER, rules, max_time=40).simulator()
    simulator.load([jobset], objective)
    rewards, clocks = [], []
    for action in actions:
        before = int(simulator.time[0])
        reward, ended = step_all(simulator, np.array([action], np.int32))
        rewards.append(float(reward[0]))
        clocks.append(int(simulator.time[0]) if rules.charge_after_step else before)
        if ended[0]:
            return rewards, clocks
    raise AssertionError("the episode has not ended")


@given(rules=st.sampled_from(sorted(RULES)), seed=st.integers(0, 2**32 - 1))
def test_a_job_that_is_charged_is_charged_its_late_costs_from_its_age_on(
    rules: str, seed: int
) -> None:
    """Dropped jobs never, jobs that linger as long as they do, jobs with age 0 from the start."""
    rng = np.random.default_rng(seed)
    num_jobs = int(rng.integers(1, 25))
    jobset = random_jobset(rng, num_jobs)
    costs = rng.integers(4, size=(2, num_jobs)).astype(float)
    ages = rng.integers(9, size=(2, num_jobs))
    actions = rng.integers(CLUSTER.num_actions, size=2000).astype(np.int32)
    presence = objective_of([2.0**job for job in range(num_jobs)])  # bits say who is charged for
    bits, clocks = rewards_of(presence, jobset, RULES[rules], actions)
    late = objective_of([0.0] * num_jobs, *zip(costs.tolist(), ages.tolist(), strict=True))
    found, _ = rewards_of(late, jobset, RULES[rules], actions)
    for reward, present, clock in zip(found, bits, clocks, strict=True):
        here = [j for j in range(num_jobs) if int(-present) >> j & 1]
        expected = sum(
            costs[k, j] for k in (0, 1) for j in here if clock - jobset.arrival[j] >= ages[k, j]
        )
        assert -reward == expected


def test_rewards_worked_by_hand() -> None:
    # Both jobs fill the cluster: job 0 (2 steps) runs 0-2, job 1 (1 step) waits and runs 2-3.
    jobset = JobSet.of([0, 0], [2, 1], [[4, 3], [4, 3]], window=1)
    objective = objective_of([1.0, 10.0], ([5.0, 100.0], [1, 2]))
    rewards, _ = rewards_of(objective, jobset, PAPER_RULES, np.array([0, 1, 2, 2, 2], np.int32))
    assert rewards == [0, 0, -(1 + 10), -(1 + 5 + 10), -(10 + 100)]


def test_another_episode_begins_without_the_late_costs_of_the_last() -> None:
    rng = np.random.default_rng(1)
    jobsets = [random_jobset(rng, num_jobs) for num_jobs in (3, 9)]
    late = LateCost(
        lambda jobset: np.full(jobset.num_jobs, 0.1), lambda jobset: 2 * jobset.duration
    )
    objective = Objective("late", lambda jobset: np.ones(jobset.num_jobs), late_costs=(late,))
    simulator = DeepRM(CLUSTER, RELEASED_RULES, max_time=60).simulator()
    simulator.load(jobsets, objective, episodes_per_jobset=2)
    actions = rng.integers(CLUSTER.num_actions, size=(40, 4)).astype(np.int32)
    first = [step_all(simulator, chosen)[0] for chosen in actions]
    simulator.reset(np.array([1, 3], np.int32))
    simulator.reset(np.array([0, 2], np.int32))
    again = [step_all(simulator, chosen)[0] for chosen in actions]
    assert np.array_equal(first, again)
    assert np.min(first) < -1


def test_a_job_that_is_never_late_costs_nothing() -> None:
    jobset = JobSet.of([3], [1], [[1, 1]], window=5)
    never = objective_of([0.0], ([1.0], [2**31 - 1]))
    rewards, _ = rewards_of(never, jobset, PAPER_RULES, np.full(50, 2, np.int32))
    assert not any(rewards)
