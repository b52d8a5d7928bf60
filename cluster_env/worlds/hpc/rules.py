"""A rule: an order, and what may start before the first job of that order."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.worlds.hpc.orders import FIXED, FIXED_ORDERS, MOVING_ORDERS
from cluster_env.worlds.hpc.rlscheduler import SCORES
from cluster_env.worlds.hpc.schedgym import SCHEDGYM_ORDERS

BACKFILLING = ("strict", "skip", "easy", "conservative")
"""What may start before the first waiting job, see `Rule`."""

PEER: Mapping[str, tuple[str, ...]] = {
    "rls": SCORES,
    "rls_easy": SCORES,
    "srg": SCHEDGYM_ORDERS,
}
"""Event loops of others, to repeat what they published, and their orders: RLScheduler's (see
`rlscheduler`) and sched-rl-gym's (see `schedgym`)."""

ORDERS = (*FIXED_ORDERS, *MOVING_ORDERS, "random")


@dataclass(frozen=True)
class Weights:
    """What counts in the order `priority`, as sites weigh it.

    Attributes:
        age: weight of the waiting time, which counts up to a week.
        size: weight of the share of the machine that is asked for.
        fair_share: weight of 2^(-usage / fair usage) of the job's user, where usage is what the
            user's finished jobs held and fades by half in a week.
    """

    age: float = 1000.0
    size: float = 500.0
    fair_share: float = 2000.0

    def __post_init__(self) -> None:
        for name in ("age", "size", "fair_share"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(f"the weight {name} must be finite, but is {getattr(self, name)}")


@dataclass(frozen=True)
class Reserve:
    """How many processors a long job must leave free, so that short ones find room at once.

    A job may start only if as many processors stay free as a share of the machine that grows with
    the logarithm of its estimate. Where nothing runs, the first job starts all the same. The
    defaults, with the order `wspt`, were found by a grid on generated jobs.

    Attributes:
        none_below_s: estimate in seconds up to which a job need not leave any.
        all_from_s: estimate from which it has to leave the whole share.
        share: of the machine, 0 to 1.
    """

    none_below_s: float = 900.0
    all_from_s: float = 100_000.0
    share: float = 0.8

    def left_free(self, estimate: NDArray[np.int32], processors: int) -> NDArray[np.int64]:
        """Processors that jobs with these estimates must leave free."""
        place = np.log(np.maximum(estimate, 1) / self.none_below_s)
        place /= np.log(self.all_from_s / self.none_below_s)
        return np.ceil(np.clip(place, 0, 1) * self.share * processors).astype(np.int64)


@dataclass(frozen=True)
class Rule:
    """What a simulator can play by itself.

    Attributes:
        order: name of an order, one of `ORDERS`.
        backfilling: what may start before the first job of the order. ``strict``: nothing.
            ``skip``: whatever fits. ``easy``: what fits and does not delay the first job, for
            which a reservation is made from the estimates (Lifka, 1995). ``conservative``: what
            fits and delays no job before it in the order; all get reservations, anew at each
            event (Mu'alem and Feitelson, 2001). Names in `PEER` are event loops of
            others.
        weights: of `priority`.
        reserve: what long jobs must leave free; with ``skip`` only.
    """

    order: str = "fcfs"
    backfilling: str = "easy"
    weights: Weights = field(default_factory=Weights)
    reserve: Reserve | None = None

    def __post_init__(self) -> None:
        if self.backfilling not in (*BACKFILLING, *PEER):
            raise unknown("kind of backfilling", self.backfilling, (*BACKFILLING, *PEER))
        known = PEER.get(self.backfilling, ORDERS)
        if self.order not in known:
            raise unknown("order", self.order, known)
        if self.reserve is not None and self.backfilling != "skip":
            raise InputError(
                f"a reserve goes with the backfilling 'skip', but '{self.backfilling}' was given"
            )


class Compiled(NamedTuple):
    """A rule as compiled code reads it, for the jobs that are loaded."""

    kind: int  # FIXED, or which moving order
    mode: int  # index in BACKFILLING
    score: NDArray[np.float64]  # (num_jobs,), of a fixed order
    left_free: NDArray[np.int64]  # (num_jobs,), processors that must stay free
    weights: NDArray[np.float64]  # (3,)
    user: NDArray[np.int32]  # (num_jobs,), for fair shares


def compiled(
    rule: Rule,
    estimate: NDArray[np.int32],
    demand: NDArray[np.int32],
    submit: NDArray[np.int64],
    user: NDArray[np.int32],
    processors: int,
    uniforms: NDArray[np.float64],
) -> Compiled:
    """A rule for some jobs.

    Args:
        rule: the rule.
        estimate: seconds, int32 ``(num_jobs,)``.
        demand: int32 ``(num_jobs, num_resources)``, processors first.
        submit: seconds of the log's clock, int64 ``(num_jobs,)``.
        user: int32 ``(num_jobs,)``, from 0.
        processors: of the machine.
        uniforms: float64 ``(num_jobs,)``, for the order `random`.
    """
    if rule.order == "random":
        score = uniforms
    elif rule.order in FIXED_ORDERS:
        columns = (np.asarray(column, np.float64) for column in (estimate, demand[:, 0], submit))
        score = FIXED_ORDERS[rule.order](*columns)
    else:
        score = np.zeros(estimate.size)
    none = np.zeros(estimate.size, np.int64)
    return Compiled(
        kind=MOVING_ORDERS.get(rule.order, FIXED),
        mode=BACKFILLING.index(rule.backfilling) if rule.backfilling in BACKFILLING else -1,
        score=np.ascontiguousarray(score, np.float64),
        left_free=none if rule.reserve is None else rule.reserve.left_free(estimate, processors),
        weights=np.array([rule.weights.age, rule.weights.size, rule.weights.fair_share]),
        user=user,
    )
