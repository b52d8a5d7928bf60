"""Decisions in all episodes of a simulator at once, and episodes that are played to their ends."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.policy import choose


def step_all(simulator: Any, actions: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Rewards of a decision in every episode, and which have ended."""
    rewards = np.empty(simulator.num_rows)
    simulator.step(simulator.episode, actions, rewards)
    return rewards, ~simulator.active


def step_one(simulator: Any, action: int) -> float:
    """Reward of a decision in the first row."""
    reward = np.empty(1)
    simulator.step(np.zeros(1, np.int32), np.array([action], np.int32), reward)
    return float(reward[0])


def choosing(policy: Any, simulator: Any) -> Callable[[NDArray[np.int32]], NDArray[Any]]:
    """The actions of a rule in a simulator, which draws the same number each time."""
    return lambda rows: choose(policy, simulator, rows, np.full(rows.size, 0.3))


def play_to_the_end(simulator: Any, choose: Callable[[NDArray[np.int32]], Any]) -> NDArray[Any]:
    """The return of each episode, whose actions are chosen for the rows that go on."""
    returns = np.zeros(np.max(simulator.episode) + 1)
    while (rows := np.flatnonzero(simulator.active).astype(np.int32)).size:
        rewards = np.zeros(rows.size)
        left = simulator.step(rows, choose(rows), rewards)
        assert left == simulator.active[rows].sum()
        np.add.at(returns, simulator.episode[rows], rewards)
    return returns
