"""Returns and baselines of REINFORCE (DeepRM, section 3.3 and figure 3)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def returns_to_go(
    rewards: NDArray[np.float64], episode: NDArray[np.int32], num_episodes: int, gamma: float
) -> NDArray[np.float64]:
    """Discounted sum of the rewards from each decision to the end of its episode.

    Args:
        rewards: float64 ``(rows,)``; within an episode, rows are in order of time.
        episode: int32 ``(rows,)``, index of each row's episode.
        num_episodes: number of episodes.
        gamma: discount of a decision.

    Returns:
        float64 ``(rows,)``, the :math:`v_t^i` of figure 3.
    """
    after = np.zeros(num_episodes)
    returns = np.empty(rewards.size)
    for row in range(rewards.size - 1, -1, -1):
        after[episode[row]] = rewards[row] + gamma * after[episode[row]]
        returns[row] = after[episode[row]]
    return returns


@njit(cache=True)
def subtract_decision_baseline(
    returns: NDArray[np.float64],
    episode: NDArray[np.int32],
    decision: NDArray[np.int32],
    jobset: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Advantage over the mean return of the same jobset's episodes at the same decision.

    Episodes that have ended count as 0 (the paper's zero padding, its footnote 4).

    Args:
        returns: float64 ``(rows,)``.
        episode: int32 ``(rows,)``.
        decision: int32 ``(rows,)``, index of the decision in its episode.
        jobset: int32 ``(episodes,)``, jobset of each episode.

    Returns:
        float64 ``(rows,)``, the :math:`v_t^i - b_t` of figure 3.
    """
    num_jobsets = jobset.max() + 1
    episodes_of = np.zeros(num_jobsets)
    for e in range(jobset.size):
        episodes_of[jobset[e]] += 1.0
    baseline = np.zeros((num_jobsets, decision.max() + 1))
    for row in range(returns.size):
        baseline[jobset[episode[row]], decision[row]] += returns[row]
    advantages = np.empty(returns.size)
    for row in range(returns.size):
        k = jobset[episode[row]]
        advantages[row] = returns[row] - baseline[k, decision[row]] / episodes_of[k]
    return advantages


@njit(cache=True)
def subtract_time_baseline(
    returns: NDArray[np.float64],
    episode: NDArray[np.int32],
    time: NDArray[np.int32],
    jobset: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Advantage over the mean return of the jobset's other episodes at the same clock.

    The state of the queue depends on the clock, not on how many decisions have been taken, and an
    episode left out of its own baseline does not bias the gradient. Decisions of one time step
    have the same return, as only the passing of time is rewarded. Episodes that have ended count
    as 0.

    Args:
        returns: float64 ``(rows,)``, undiscounted.
        episode: int32 ``(rows,)``.
        time: int32 ``(rows,)``, clock at the decision.
        jobset: int32 ``(episodes,)``, jobset of each episode; at least two episodes of each.

    Returns:
        float64 ``(rows,)``.
    """
    num_jobsets = jobset.max() + 1
    others = np.full(num_jobsets, -1.0)
    for e in range(jobset.size):
        others[jobset[e]] += 1.0
    steps = time.max() + 1
    by_clock = np.zeros((jobset.size, steps))
    for row in range(returns.size):
        by_clock[episode[row], time[row]] = returns[row]
    total = np.zeros((num_jobsets, steps))
    for e in range(jobset.size):
        for t in range(steps):
            total[jobset[e], t] += by_clock[e, t]
    advantages = np.empty(returns.size)
    for row in range(returns.size):
        k, t = jobset[episode[row]], time[row]
        advantages[row] = returns[row] - (total[k, t] - returns[row]) / others[k]
    return advantages
