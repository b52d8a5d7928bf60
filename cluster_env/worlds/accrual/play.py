"""Whole episodes under a rule, which may learn meanwhile."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.worlds.accrual.arrays import (
    CANDIDATE,
    HEADER,
    MILLION,
    PREEMPTING,
    Costs,
    Jobs,
    Machine,
    Rows,
)
from cluster_env.worlds.accrual.events import begin_episode, has_room, next_instant, settle
from cluster_env.worlds.accrual.offers import offer, server_state, take
from cluster_env.worlds.accrual.td import Learners, function_of, learn, new_learners
from cluster_env.worlds.accrual.values import RULEBASE, RULES, value_of

ORDERS = ("best_fit", "edf", "density", "dasa", "lbesa")
SCORERS = ("none", "aggressive", "value")
_NONE, _AGGRESSIVE, _VALUE = range(3)
_AT, _SIZE = len(HEADER), len(CANDIDATE)


@dataclass(frozen=True)
class Rule:
    """What decides, of the kind that the simulator plays by itself.

    Attributes:
        order: in which waiting jobs start that fit, one of `ORDERS`.
        scorer: ``none`` takes no candidate; ``aggressive`` always takes the smallest job; ``value``
            the candidate of the highest value, if it is above that of the server as it is.
        preempt: whether it preempts, where the world has it.
        squeeze: whether it squeezes.
    """

    order: str = "best_fit"
    scorer: str = "none"
    preempt: bool = True
    squeeze: bool = True

    def __post_init__(self) -> None:
        for name, given, known in (
            ("order", self.order, ORDERS),
            ("scorer", self.scorer, SCORERS),
        ):
            if given not in known:
                raise unknown(name, given, known)
        if self.order != "best_fit" and self.scorer == "value":
            raise InputError("values belong with the order best_fit, the paper's")

    def on(self, machine: Machine) -> Machine:
        """A machine with what the rule wants of its preemption and squeezing."""
        decides = self.scorer != "none"
        return machine._replace(
            preempt=machine.preempt and self.preempt and decides,
            squeeze=machine.squeeze and self.squeeze and decides,
        )


def learners_for(rule: Rule, learners: Learners | None, learning: bool, num_rows: int) -> Learners:
    """The learners that rows play with.

    Args:
        rule: that they play.
        learners: one for each row; or for all if nobody learns; or None, if no value is asked for.
        learning: whether they learn.
        num_rows: number of rows.

    Raises:
        InputError: if there are too few or too many.
    """
    if learners is None:
        if rule.scorer == "value":
            raise InputError("a rule that goes by values needs value functions")
        learners = new_learners(RULEBASE, np.zeros((1, len(RULES))), 0.0, 0.0, 1.0, False)
        learning = False
    if learners.of.size == 1 and not learning:
        return learners._replace(of=np.repeat(learners.of, num_rows))
    if learners.of.size != num_rows:
        raise InputError(
            f"{num_rows} servers need as many learners, or one for all where nobody learns, not "
            f"{learners.of.size}"
        )
    return learners


@njit_inlined
def choose(
    scorer: int,
    kind: int,
    p: NDArray[np.float64],
    processors: int,
    longest: int,
    state: NDArray[np.int32],
) -> int:
    """The candidate that a rule takes, -1 for none.

    Args:
        scorer: index in `SCORERS`.
        kind: of the value function.
        p: its parameters.
        processors: of the machine.
        longest: MaxJobLength.
        state: int32 ``(state_size,)``.
    """
    best, best_score, best_worth = -1, -np.inf, -1
    if scorer == _NONE:
        return best
    if scorer == _VALUE:
        best_score = _value(kind, p, processors, longest, state, 1)
    for k in range((state.size - _AT) // _SIZE):
        at = _AT + k * _SIZE
        if state[at] == 0:
            break
        if scorer == _VALUE:
            score, worth = _value(kind, p, processors, longest, state, at + 1), 0
        else:
            score, worth = -float(state[at + 5]), state[at + 4]
        tie = scorer == _AGGRESSIVE and score == best_score and worth > best_worth
        if score > best_score or tie:
            best, best_score, best_worth = k, score, worth
    return best


@njit_inlined
def _value(
    kind: int,
    p: NDArray[np.float64],
    processors: int,
    longest: int,
    state: NDArray[np.int32],
    at: int,
) -> float:
    x1, x2, x3 = state[at] / MILLION, min(state[at + 1] / longest, 1.0), state[at + 2] / processors
    return value_of(kind, p, x1, x2, x3)


@njit_kernel
def choose_all(
    scorer: int,
    preempt: bool,
    squeeze: bool,
    kind: int,
    p: NDArray[np.float64],
    processors: int,
    longest: int,
    states: NDArray[np.int32],
    actions: NDArray[np.int32],
) -> None:
    """Actions of a rule in several states; see `choose`."""
    for i in range(states.shape[0]):
        wanted = preempt if states[i, 0] == PREEMPTING + 1 else squeeze
        k = choose(scorer, kind, p, processors, longest, states[i]) if wanted else -1
        actions[i] = k if k >= 0 else (states.shape[1] - _AT) // _SIZE


@njit_kernel
def play_rows(
    m: Machine,
    jobs: Jobs,
    costs: Costs,
    rows: Rows,
    order: int,
    scorer: int,
    it: Learners,
    learning: bool,
    begin: int,
    resumed: bool,
) -> int:
    """Plays episodes to their ends, one after the other.

    Args:
        m: the machine, with what the rule wants of preemption and squeezing.
        jobs: of all jobsets.
        costs: the objective.
        rows: all episodes.
        order: index in `ORDERS`.
        scorer: index in `SCORERS`.
        it: a learner for each row.
        learning: whether they learn.
        begin: first row.
        resumed: whether that row is under way.

    Returns:
        The row for which `Rows.pieces` has to grow before it is resumed, -1 if all have ended.
    """
    for r in range(begin, rows.of.size):
        of = function_of(it, r)
        going = True
        if not (resumed and r == begin):
            begin_episode(m, jobs, rows, r)
            going = bool(rows.of[r].active)
        while going:
            if not has_room(m, rows, r, 1):
                return r
            if rows.of[r].stage >= 0 and offer(m, jobs, rows, r, False) > 0:
                k = choose(scorer, it.kind, it.p[of], m.processors, m.longest, rows.states[r])
                take(m, jobs, costs, rows, r, k if k >= 0 else m.candidates)
                unsettled = rows.of[r].made
            else:
                if learning and rows.of[r].stage >= 0:
                    learn_at(m, rows, r, it)
                going = unsettled = next_instant(m, jobs, costs, rows, r)
            if unsettled:
                settle(m, jobs, costs, order, rows, r)
    return -1


@njit_inlined
def learn_at(m: Machine, rows: Rows, r: int, it: Learners) -> None:
    """Learns at the end of an instant, if it is one of those of section 3.4.

    These are when a job was preempted or squeezed, and when a job finished or started after there
    was something to decide and nothing was done. Preemption and squeezing at one instant make one
    update, of the state after both.
    """
    if rows.of[r].made or (it.of[r].armed and rows.of[r].changed):
        x1, soonest, idle = server_state(rows, r)
        x2, x3 = min(soonest / m.longest, 1.0), idle / m.processors
        learn(it, r, x1, x2, x3, rows.of[r].earned, rows.of[r].time)
        it.of[r].armed = False
    if rows.of[r].considered and not rows.of[r].made:
        it.of[r].armed = True
