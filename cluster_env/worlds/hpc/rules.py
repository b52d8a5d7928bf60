"""The rules by name (``saf``, ``saf:strict``): an order, and what may start before its first job.

An order is a score, lower first, equals by arrival. It is *fixed* if it depends on the job alone,
and *moving* if it changes while the job waits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from cluster_env.core.compiled import call_at, callable_at, njit_inlined, njit_kernel
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.spec import Heuristic
from cluster_env.sites.weights import Weights

BACKFILLING = ("strict", "skip", "easy", "conservative")
"""What may start before the first waiting job, see `Rule`."""

STRICT, SKIP, EASY, CONSERVATIVE = range(len(BACKFILLING))

SHORTEST_S = 10
"""Seconds that shorter jobs count as, in `wspt` as in the bounded slowdown."""

AGE_S = 7 * 24 * 3600
"""Waiting time from which a job's age gains nothing more in `priority`, a week as Slurm has it."""

_NOT_0 = 1e-15  # a job that has just arrived, or asks for one processor, still has an order

FIXED, WFP3, UNICEP, PACKER, TETRIS, PRIORITY, CHANCE, SCORED, OWN = range(9)
"""Kinds of orders: a fixed score, each of `MOVING_ORDERS`, `random`, what a scorer makes, and a
moving order of one's own."""

Scores = NDArray[np.float64]
Score = Callable[[Scores, Scores, Scores], Scores]
MovingScore = Callable[[float, float, float], float]

FORMULAS = ("fcfs", "lcfs", "sjf", "ljf", "narrow", "saf", "wspt", "f1", "f2", "f3", "f4")
"""Fixed orders by the number of their formula, see `fixed_score`.

`f1` to `f4` are those of Carastan-Santos and de Camargo (SC 2017); they depend on when the log
began, so that they mean little on generated jobs.
"""

FCFS, LCFS, SJF, LJF, NARROW, SAF, WSPT, F1, F2, F3, F4 = range(len(FORMULAS))

NO_FORMULA = -1
"""Of a fixed order whose scores are known beforehand."""


@njit_inlined
def fixed_score(formula: int, estimate: float, size: float, submit: float, job: int) -> float:
    """The score of a job under one of `FORMULAS`.

    Estimates and submissions are in seconds, the latter of the log's own clock.
    """
    if formula == LCFS:
        return -float(job)
    if formula == SJF:
        return estimate
    if formula == LJF:
        return -estimate
    if formula == NARROW:
        return size
    if formula == SAF:
        return estimate * size
    if formula == WSPT:
        return estimate * max(estimate, float(SHORTEST_S)) * size
    if formula == FCFS:
        return 0.0
    late = math.log10(max(submit, 1.0))
    if formula == F1:
        return math.log10(estimate) * size + 870.0 * late
    if formula == F2:
        return math.sqrt(estimate) * size + 25_600.0 * late
    if formula == F3:
        return estimate * size + 6_860_000.0 * late
    return estimate * math.sqrt(size) + 530_000.0 * late


@njit_kernel
def _fill_scores(formula: int, estimate: Scores, size: Scores, submit: Scores, out: Scores) -> None:
    for job in range(out.size):
        out[job] = fixed_score(formula, estimate[job], size[job], submit[job], job)


def _by_formula(formula: int) -> Score:
    def scores(estimate: Scores, size: Scores, submit: Scores) -> Scores:
        out = np.empty(estimate.size)
        _fill_scores(formula, estimate, size, submit, out)
        return out

    return scores


FIXED_ORDERS: dict[str, Score] = {
    name: _by_formula(formula) for formula, name in enumerate(FORMULAS)
}
"""From estimates (seconds), processors and times of submission (seconds of the log's own clock);
`order` enters another one."""

MOVING_ORDERS: dict[str, int] = {
    "wfp3": WFP3,
    "unicep": UNICEP,
    "packer": PACKER,
    "tetris": TETRIS,
    "priority": PRIORITY,
}
"""`wfp3` and `unicep` are those of Tang et al. (2009); `priority` is a site's weighted sum of age,
size and fair share, see `Weights`. `moving_order` enters another one."""

_OWN: dict[str, Any] = {}  # compiled scores of one's own, by the names of their orders

ORDERS = (*FIXED_ORDERS, *MOVING_ORDERS, "random")


@dataclass(frozen=True)
class Rule:
    """What a simulator can play by itself.

    Attributes:
        order: name of an order, one of `FIXED_ORDERS` or `MOVING_ORDERS`, or ``random``.
        backfilling: what may start before the first job of the order. ``strict``: nothing.
            ``skip``: whatever fits. ``easy``: what fits and does not delay the first job, for
            which a reservation is made from the estimates (Lifka, 1995). ``conservative``: what
            fits and delays no job before it in the order; all get reservations, anew at each
            event (Mu'alem and Feitelson, 2001).
        weights: of `priority`.
    """

    order: str = "fcfs"
    backfilling: str = "easy"
    weights: Weights = field(default_factory=Weights)

    def __post_init__(self) -> None:
        if self.backfilling not in BACKFILLING:
            raise unknown("kind of backfilling", self.backfilling, BACKFILLING)
        orders = (*FIXED_ORDERS, *MOVING_ORDERS, "random")
        if self.order not in orders:
            raise unknown("order", self.order, orders)


class RuleTable(NamedTuple):
    """A rule as compiled code reads it, for the jobs that are loaded."""

    kind: int  # FIXED, which moving order, CHANCE or SCORED
    mode: int  # index in BACKFILLING
    score: NDArray[np.float64]  # (num_jobs,), of a fixed order without a formula
    formula: int  # of a fixed order, in `FORMULAS`, where run times are learned
    submit: NDArray[np.int64]  # (num_jobs,), or of no job where there is no formula
    weights: NDArray[np.float64]  # (3,)
    own: int  # where the score of OWN is, see `address_of`; else 0
    max_wait: int  # seconds after which a job is overdue, 0 for never

    @classmethod
    def of(
        cls,
        rule: Rule,
        estimate: NDArray[np.int32],
        size: NDArray[np.int32],
        submit: NDArray[np.int64],
        max_wait: int = 0,
        learns: bool = False,
    ) -> "RuleTable":
        """A rule for jobs with estimates and submissions in seconds, ``(num_jobs,)`` each.

        Raises:
            InputError: if run times are learned, and somebody else entered the order.
        """
        score = np.zeros(estimate.size)
        weights, formula = rule.weights, NO_FORMULA
        # Fixed orders are worked out here, once; moving ones at each event. Where estimates are
        # learned meanwhile, a job has its score from when it enters the queue.
        if learns and rule.order in FIXED_ORDERS:
            if rule.order not in FORMULAS:
                raise InputError(
                    f"the order '{rule.order}' scores all jobs before any has ended, so it cannot "
                    f"use run times that are learned; take run_times=user, or another order"
                )
            formula = FORMULAS.index(rule.order)
        elif rule.order in FIXED_ORDERS:
            columns = (np.asarray(column, np.float64) for column in (estimate, size, submit))
            score = np.ascontiguousarray(FIXED_ORDERS[rule.order](*columns), np.float64)
        return cls(
            kind=CHANCE if rule.order == "random" else MOVING_ORDERS.get(rule.order, FIXED),
            mode=BACKFILLING.index(rule.backfilling),
            score=score,
            formula=formula,
            submit=submit if formula != NO_FORMULA else submit[:0],
            weights=np.array([weights.age, weights.size, weights.fair_share], np.float64),
            own=address_of(rule.order),
            max_wait=max_wait,
        )


def address_of(order: str) -> int:
    """Where the score of a moving order of one's own is in this process; 0 for other orders."""
    return int(_OWN[order].address) if order in _OWN else 0


@njit_inlined
def of_jobs(rule: RuleTable, first: int, last: int) -> RuleTable:
    """A rule for some of the jobs that are loaded."""
    return RuleTable(
        rule.kind,
        rule.mode,
        rule.score[first:last],
        rule.formula,
        rule.submit[first:last],
        rule.weights,
        rule.own,
        rule.max_wait,
    )


@njit_inlined
def moving_score(
    kind: int,
    waited: float,
    estimate: int,
    demand: NDArray[np.int32],
    free: NDArray[Any],
    capacity: NDArray[np.int64],
    weights: NDArray[np.float64],
    fair_share: float,
    own: int,
) -> float:
    """The score of one waiting job under one of `MOVING_ORDERS`.

    Times are in seconds. The fair share is 1 for a user who has used nothing lately, and near 0 for
    one who used it all. ``own`` is `address_of` the order.
    """
    size = float(demand[0])
    if kind == OWN:
        return call_at(own, float(waited), float(estimate), size)
    # Waiting relative to the estimate, with more weight for wide jobs, or less.
    if kind == WFP3:
        return -((waited / estimate) ** 3) * size
    if kind == UNICEP:
        return -(waited + _NOT_0) / (math.log2(size + _NOT_0) * estimate)
    # A site's weighted sum; a larger one goes first.
    if kind == PRIORITY:
        age = min(waited / AGE_S, 1.0)
        return -(weights[0] * age + weights[1] * size / capacity[0] + weights[2] * fair_share)
    # How well the job's demands go with what is free, as shares of the machine.
    alignment = 0.0
    for r in range(free.size):
        if capacity[r] > 0:  # a partition may have no GPU
            alignment += float(free[r]) / capacity[r] * demand[r] / capacity[r]
    return -alignment if kind == PACKER else -0.5 * (alignment + 1.0 / estimate)


@dataclass(frozen=True)
class RulePolicy:
    """A rule as a policy. It sees the whole queue, where a state shows a part."""

    name: str
    rule: Rule

    def play(self, simulator: Any, keys: NDArray[np.uint64]) -> None:
        """See `cluster_env.core.policy.PlayedPolicy`."""
        simulator.play(self.rule, keys)

    def choose(
        self, simulator: Any, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.ChoosingPolicy`, and `HPCSimulator.choose`."""
        actions: NDArray[np.int32] = simulator.choose(self.rule, rows, uniforms)
        return actions

    def act(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """A rule cannot act on states alone: an `InputError` says what to call."""
        raise InputError(
            f"a state does not show all that the rule '{self.name}' decides by; use "
            f"cluster_env.core.policy.choose with a simulator, env.unwrapped.choose with an "
            f"environment, or cluster_env.evaluation.evaluate for whole episodes"
        )


HEURISTICS: Registry[Heuristic] = Registry("heuristic")


def _ordered(order: str) -> Callable[[Any, str], Policy]:
    def make(world: Any, argument: str) -> Policy:
        name = f"{order}:{argument}" if argument else order
        backfilling = argument or world.backfilling
        if backfilling not in BACKFILLING:
            raise unknown(f"kind of backfilling of '{order}:'", backfilling, BACKFILLING)
        return RulePolicy(name, Rule(order, backfilling, world.priority))

    return make


for _order in ORDERS:
    HEURISTICS.register(_order)(Heuristic(_ordered(_order)))


def order(name: str) -> Callable[[Score], Score]:
    """Returns a decorator that enters a fixed order, and the rules that follow it, under a name."""

    def enter(score: Score) -> Score:
        HEURISTICS.register(name)(Heuristic(_ordered(name)))
        FIXED_ORDERS[name] = score
        return score

    return enter


def moving_order(name: str) -> Callable[[MovingScore], MovingScore]:
    """Returns a decorator that enters an order whose scores change while jobs wait.

    The function is compiled. It gets the seconds for which a job has waited, its estimate in
    seconds and its processors, and returns its score; lower goes first, equals by arrival.

    Raises:
        InputError: if numba cannot compile the function.
    """

    def enter(score: MovingScore) -> MovingScore:
        try:
            compiled = callable_at(score)
        except NumbaError as problem:
            raise InputError(
                f"the order '{name}' cannot be compiled: {shortened(str(problem))}"
            ) from problem
        HEURISTICS.register(name)(Heuristic(_ordered(name)))
        MOVING_ORDERS[name], _OWN[name] = OWN, compiled
        return score

    return enter
