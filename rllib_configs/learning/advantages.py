"""Returns and baselines of REINFORCE (DeepRM, section 3.3 and figure 3)."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit


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
def advantages_by_clock(
    rewards: NDArray[np.float64],
    values: NDArray[np.float64],
    episode: NDArray[np.int32],
    time: NDArray[np.int32],
    jobset: NDArray[np.int32],
    gamma: float,
    trace: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Generalized advantages along the clock, less those of the jobset's other episodes.

    With :math:`V_t` the value of an episode's first state at clock :math:`t` and :math:`R_t` the
    reward of that time step, :math:`\delta_t = R_t + \gamma V_{t+1} - V_t` (Schulman et al.,
    *High-dimensional continuous control using generalized advantage estimation*, 2016, equation
    10) holds what an action did and what arrivals did. The episodes of a jobset see the same
    arrivals, so the mean of the others' :math:`\delta_t` is subtracted: a baseline that depends on
    the input (Mao et al., *Variance reduction for reinforcement learning in input-driven
    environments*, 2019) and, as an episode has no part in its own, does not bias the gradient. The
    advantage is the sum of :math:`(\gamma\lambda)^k` times what is left of :math:`\delta_{t+k}`.

    With values of 0 and without discounts it is the return minus the mean return of the other
    episodes at the same clock, from which no critic is needed. Episodes that have ended count
    as 0.

    Args:
        rewards: float64 ``(rows,)``; within an episode, rows are in order of time.
        values: float64 ``(rows,)``, value of each row's state, 0 without a critic.
        episode: int32 ``(rows,)``, index of each row's episode.
        time: int32 ``(rows,)``, clock at the decision.
        jobset: int32 ``(episodes,)``, jobset of each episode; at least two episodes of each.
        gamma: discount of a time step.
        trace: the :math:`\lambda` of the equation; 1 trusts rewards alone.

    Returns:
        The advantages, float64 ``(rows,)``, and for a critic to learn from what it adds up to
        without the other episodes, the :math:`\lambda`-return of each row, float64 ``(rows,)``.
    """
    episodes, steps = jobset.size, time.max() + 1
    reward = np.zeros((episodes, steps))
    value = np.zeros((episodes, steps + 1))
    for row in range(rewards.size - 1, -1, -1):
        reward[episode[row], time[row]] += rewards[row]
        value[episode[row], time[row]] = values[row]
    delta = reward + gamma * value[:, 1:] - value[:, :-1]
    total = np.zeros((jobset.max() + 1, steps))
    others = np.full(jobset.max() + 1, -1.0)
    for e in range(episodes):
        total[jobset[e]] += delta[e]
        others[jobset[e]] += 1.0
    advantage = np.zeros((episodes, steps + 1))
    target = np.zeros((episodes, steps + 1))
    for e in range(episodes):
        k = jobset[e]
        for t in range(steps - 1, -1, -1):
            alone = delta[e, t] - (total[k, t] - delta[e, t]) / others[k]
            advantage[e, t] = alone + gamma * trace * advantage[e, t + 1]
            target[e, t] = delta[e, t] + gamma * trace * target[e, t + 1]
    advantages = np.empty(rewards.size)
    targets = np.empty(rewards.size)
    for row in range(rewards.size):
        e, t = episode[row], time[row]
        advantages[row] = advantage[e, t] + value[e, t] - values[row]
        targets[row] = target[e, t] + value[e, t]
    return advantages, targets


@njit(cache=True)
def equalize(
    advantages: NDArray[np.float64], group: NDArray[np.int32], share: float
) -> NDArray[np.float64]:
    """Scales advantages to a root mean square of 1, groups that vary much down to the others.

    A crowded jobset's returns vary a thousand times as much as an empty one's, and would drown
    them. Groups that vary little keep their place: what differs there is mostly noise.

    Args:
        advantages: float64 ``(rows,)``, at least one.
        group: int32 ``(rows,)``, for instance the jobset of each row.
        share: of the groups, those that vary most, which are scaled down to the spread of the
            first that is not; 1 gives all groups the same spread, 0 divides all by one number.

    Returns:
        float64 ``(rows,)``.
    """
    count = np.zeros(group.max() + 1)
    squares = np.zeros(group.max() + 1)
    for row in range(advantages.size):
        count[group[row]] += 1.0
        squares[group[row]] += advantages[row] ** 2
    spread = np.sqrt(squares / np.maximum(count, 1.0))
    floor = np.quantile(spread[count > 0], 1.0 - share)
    floor = max(floor, 0.01 * np.sqrt(squares.sum() / count.sum()), 1e-8)
    scaled = np.empty(advantages.size)
    for row in range(advantages.size):
        scaled[row] = advantages[row] / max(spread[group[row]], floor)
    return scaled / (np.sqrt((scaled**2).mean()) + 1e-8)
