"""Advantages where many agents decide in an episode, and what one does costs the others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from cluster_env.core.errors import InputError


def advantages_of_agents(
    rewards: NDArray[np.float64],
    row: NDArray[np.int32],
    episode: NDArray[np.int32],
    time: NDArray[np.integer[Any]],
    jobset: NDArray[np.int32],
    gamma: float,
    joint: float,
) -> NDArray[np.float64]:
    r"""What agents and all together get, less what they get in the other episodes of the jobset.

    The own part of a decision is what its agent gets in all, less the mean of what the agent of the
    same consumer gets in the other episodes: until it starts they have all paid the same. The joint
    part is :math:`J(t) = \sum_{s \ge t} \gamma^{s-t} R(s)`, with :math:`R(s)` what all agents of
    the episode get for their decisions at the clock :math:`s`, less the mean of :math:`J(t)` over
    the other episodes. As a decision has no part in other episodes, neither baseline biases the
    gradient. (PANDA, section 4.1: rewards of agents and of the system.)

    Args:
        rewards: float64 ``(rows,)``.
        row: int32 ``(rows,)``, the agent; those of an episode stand together, in the same order in
            each episode of a jobset.
        episode: int32 ``(rows,)``.
        time: integers ``(rows,)``, clock of the decision, at least 0.
        jobset: int32 ``(num_episodes,)``, of each episode; at least two of each.
        gamma: discount of a unit of time, of the joint part.
        joint: share of the joint part, 0 to 1.

    Returns:
        float64 ``(rows,)``.

    Raises:
        InputError: if a jobset has one episode alone.
    """
    if np.bincount(jobset).min(initial=2, where=np.bincount(jobset) > 0) < 2:
        raise InputError("the other episodes of a jobset are its baseline, so it needs two of each")
    found = np.zeros(rewards.size)
    if joint < 1:
        first = np.full(jobset.size, np.iinfo(np.int32).max, np.int32)
        np.minimum.at(first, episode, row)
        consumer = row - first[episode]
        total = np.zeros((jobset.size, int(consumer.max(initial=0)) + 1))
        np.add.at(total, (episode, consumer), rewards)
        found += (1 - joint) * _less_others(total, jobset)[episode, consumer]
    if joint > 0:
        clock = np.zeros((jobset.size, int(time.max(initial=0)) + 1))
        np.add.at(clock, (episode, time), rewards)
        ahead = lfilter([1.0], [1.0, -gamma], clock[:, ::-1], axis=1)[:, ::-1]
        found += joint * _less_others(ahead, jobset)[episode, time]
    return found


def _less_others(values: NDArray[np.float64], jobset: NDArray[np.int32]) -> NDArray[np.float64]:
    """Values of episodes, ``(num_episodes, n)``, less the mean of the jobset's other episodes."""
    count = np.bincount(jobset)[jobset][:, None]
    sums = np.zeros((int(jobset.max()) + 1, values.shape[1]))
    np.add.at(sums, jobset, values)
    return np.asarray((values * count - sums[jobset]) / (count - 1))
