"""Returns and baselines of REINFORCE (DeepRM, section 3.3 and figure 3)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from rllib_configs.learning.events import advantages_of_events

DiscountPer = Literal["decision", "time_unit"]
"""Whether a discount counts once per decision, or once per unit of time (a semi-MDP)."""


def returns_to_go(
    rewards: NDArray[np.float64],
    episode: NDArray[np.int32],
    num_episodes: int,
    gamma: float,
    time: NDArray[np.integer[Any]] | None = None,
    discount_per: DiscountPer = "decision",
) -> NDArray[np.float64]:
    r"""Discounted sum of the rewards from each decision to the end of its trajectory.

    Args:
        rewards: float64 ``(rows,)``; within a trajectory, rows are in order of time.
        episode: int32 ``(rows,)``, index of the trajectory of each row's decider: an episode where
            one agent decides, an agent in an episode where many do.
        num_episodes: number of trajectories.
        gamma: discount of a decision, or of a unit of time.
        time: int32 or int64 ``(rows,)``, clock at each decision; needed for the latter.
        discount_per: with ``time_unit`` what comes :math:`dt` later counts :math:`\gamma^{dt}`,
            and decisions at one time do not discount each other.

    Returns:
        float64 ``(rows,)``, the :math:`v_t^i` of figure 3.

    Raises:
        InputError: for another `discount_per`, or if times are needed and not given.
    """
    per_decision = _is_per_decision(discount_per)
    if time is None and not per_decision:
        raise InputError("a discount per time_unit needs the time of each row; give time")
    return _returns_to_go(
        rewards, episode, num_episodes, gamma, episode if time is None else time, per_decision
    )


@njit(cache=True)
def _returns_to_go(
    rewards: NDArray[np.float64],
    episode: NDArray[np.int32],
    num_episodes: int,
    gamma: float,
    time: NDArray[np.integer[Any]],
    per_decision: bool,
) -> NDArray[np.float64]:
    after = np.zeros(num_episodes)
    time_after = np.zeros(num_episodes, np.int64)
    returns = np.empty(rewards.size)
    for row in range(rewards.size - 1, -1, -1):
        e = episode[row]
        # Nothing follows the last row: its discount multiplies 0.
        discount = gamma if per_decision else gamma ** float(abs(time_after[e] - time[row]))
        after[e] = rewards[row] + discount * after[e]
        time_after[e] = time[row]
        returns[row] = after[e]
    return returns


def _is_per_decision(discount_per: str) -> bool:
    if discount_per not in ("decision", "time_unit"):
        raise unknown("discount_per", discount_per, ("decision", "time_unit"))
    return discount_per == "decision"


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


def advantages_by_clock(
    rewards: NDArray[np.float64],
    values: NDArray[np.float64],
    episode: NDArray[np.int32],
    time: NDArray[np.integer[Any]],
    jobset: NDArray[np.int32],
    gamma: float,
    trace: float,
    discount_per: DiscountPer = "time_unit",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Generalized advantages along the clock, less those of the jobset's other trajectories.

    An event is a time at which a trajectory has decisions. With :math:`V_i` the value of the first
    state at its event :math:`i`, :math:`R_i` the reward from there to its next event and
    :math:`dt` the time between the two, :math:`\delta_i = R_i + \gamma^{dt} V_{i+1} - V_i`
    (Schulman et al., *High-dimensional continuous control using generalized advantage estimation*,
    2016, equation 10; for times that differ, Bradtke and Duff, *Reinforcement learning methods for
    continuous-time Markov decision problems*, 1994) holds what an action did and what arrivals did.
    The trajectories of a jobset see the same arrivals, so the mean of the others' :math:`\delta` at
    the same time is subtracted: a baseline that depends on the input (Mao et al., *Variance
    reduction for reinforcement learning in input-driven environments*, 2019) and, as a trajectory
    has no part in its own, does not bias the gradient. Where others have events and a trajectory
    has none, its own :math:`\delta` is 0. The advantage is the sum of what is left from an event
    on, weighed by :math:`(\gamma\lambda)^{dt}` with :math:`dt` the time since the event.

    With a discount per decision, :math:`\gamma` and :math:`\lambda` count once for each event of a
    trajectory, whatever time lies between. The others' sums are then discounted by their own
    events: what is subtracted at a time is the mean of what each of them adds up to from its first
    event at that time or after. (A discount by one's own events would let one's later actions weigh
    the baseline, and bias it.)

    Differential returns, which take an average reward from each unit of time (Sutton and Barto,
    *Reinforcement Learning*, 2nd edition, section 10.3), have the same advantages where nothing is
    discounted: what is taken from all trajectories that go on is in their baseline, too.

    With values of 0 and without discounts it is the return minus the mean return of the other
    trajectories from the same time on, from which no critic is needed. Trajectories that have ended
    count as 0.

    Memory is that of the rows and of one jobset's events, however long the clock runs.

    Args:
        rewards: float64 ``(rows,)``; within a trajectory, rows are in order of time.
        values: float64 ``(rows,)``, value of each row's state, 0 without a critic.
        episode: int32 ``(rows,)``, index of the trajectory of each row's decider: an episode where
            one agent decides, an agent in an episode where many do.
        time: int32 or int64 ``(rows,)``, clock at the decision.
        jobset: int32 ``(trajectories,)``: those with the same number see the same arrivals and are
            each other's baseline, at least two of each.
        gamma: discount of a unit of time, or of a decision.
        trace: the :math:`\lambda` of the equation, of the same; 1 trusts rewards alone.
        discount_per: what they are of.

    Returns:
        The advantages, float64 ``(rows,)``, and for a critic to learn from what it adds up to
        without the other trajectories, the :math:`\lambda`-return of each row, float64 ``(rows,)``.

    Raises:
        InputError: for another `discount_per`.
    """
    per_decision = _is_per_decision(discount_per)
    return advantages_of_events(rewards, values, episode, time, jobset, gamma, trace, per_decision)
