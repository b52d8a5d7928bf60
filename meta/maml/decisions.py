"""What learning keeps of a stage: the decisions that had a choice, and how good they were."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import State, World
from meta.maml.values import fitted_values
from rllib_configs.learning.advantages import DiscountPer, advantages_by_clock
from rllib_configs.runners.rollout import Rollouts

_TINY = 1e-8  # where neither advantages nor returns differ from 0


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions of one stage of one task; only those in which more than one action was allowed.

    Attributes:
        states: ``(rows, state_size)``.
        actions: int32 ``(rows,)``.
        log_probabilities: float32 ``(rows,)``, under the policy that chose, less than 0.
        advantages: float32 ``(rows,)``, see `decisions_of`.
        jobset: int32 ``(rows,)``, index of the jobset among those of the stage.
    """

    states: State
    actions: NDArray[np.int32]
    log_probabilities: NDArray[np.float32]
    advantages: NDArray[np.float32]
    jobset: NDArray[np.int32]

    @property
    def num_rows(self) -> int:
        """Number of decisions."""
        return int(self.actions.size)

    def of_jobset(self, jobset: int) -> "Decisions":
        """The decisions of one jobset."""
        return self.of_rows(np.flatnonzero(self.jobset == jobset))

    def of_rows(self, rows: NDArray[np.intp]) -> "Decisions":
        """Some of the decisions, in the given order."""
        names = Decisions.__dataclass_fields__
        return Decisions(**{name: getattr(self, name)[rows] for name in names})


def decisions_of(
    rollouts: Rollouts,
    *,
    gamma: float,
    floor: float,
    relative: bool = False,
    trace: float = 1.0,
    stride: int = 1,
    world: World | None = None,
    discount_per: DiscountPer = "time_unit",
) -> Decisions:
    """Weighs the decisions of a stage against the other episodes of the same jobsets.

    The advantage is the return less the mean return of the jobset's other episodes from the same
    clock on (`advantages_by_clock` without a critic), divided by its standard deviation plus
    ``floor`` times the absolute mean return. The first term makes the size of an inner step
    independent of the objective's unit; the second keeps it small where all episodes came out
    nearly alike, as on an empty cluster, because what differs there is noise.

    With ``relative`` it is divided by the absolute mean return alone. An outer step then weighs
    tasks by the share of their cost that can be saved, which is what comparisons measure; with
    spreads of 1, many tasks in which nothing is to be gained outvote the few in which much is.

    With a ``trace`` below 1, returns give way to values of states that are fitted to the stage in
    the world, see `meta.maml.values`; of what comes later the less counts, the lower it is.
    One of ``stride`` decisions is kept.

    There are at least two episodes of each jobset.
    """
    values = np.zeros(rollouts.num_rows)
    if trace < 1.0 and world is not None:
        values = fitted_values(world, rollouts, gamma, discount_per)
    advantages, _ = advantages_by_clock(
        rollouts.rewards,
        values,
        rollouts.row,
        rollouts.time,
        rollouts.row_jobset,
        gamma,
        trace,
        discount_per,
    )
    # Where one action alone was allowed, its probability was 1: there is nothing to learn.
    rows = np.flatnonzero(rollouts.log_probabilities < 0)
    if stride > 1:
        # By episode, because rows of all episodes take turns.
        rows = rows[np.argsort(rollouts.row[rows], kind="stable")][::stride]
    returns = np.bincount(rollouts.row, rollouts.rewards, rollouts.row_jobset.size)
    spread = advantages[rows].std() if rows.size else 0.0
    size = abs(returns.mean())
    scale = (size if relative else spread + floor * size) + _TINY
    return Decisions(
        states=rollouts.states[rows],
        actions=rollouts.actions[rows],
        log_probabilities=rollouts.log_probabilities[rows],
        advantages=(advantages[rows] / scale).astype(np.float32),
        jobset=rollouts.jobset[rollouts.episode[rows]],
    )
