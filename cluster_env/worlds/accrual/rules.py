"""Rules that a simulator plays by itself: whole episodes, in which value functions may learn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.worlds.accrual.candidates import apply_candidate, list_candidates, machine_state
from cluster_env.worlds.accrual.events import (
    begin_episode,
    has_room,
    next_instant,
    next_project,
)
from cluster_env.worlds.accrual.orders import ORDERS, allocate
from cluster_env.worlds.accrual.state import (
    BEGINNING,
    CANDIDATE,
    HEADER,
    MILLION,
    PREEMPTING,
    Options,
    Server,
    Servers,
    candidate_of,
    pool_of,
    server_of,
)
from cluster_env.worlds.accrual.td import Learners, function_of, learn, new_learners
from cluster_env.worlds.accrual.values import RULEBASE, RULES, value_of

SCORERS = ("none", "aggressive", "value")
_NONE, _AGGRESSIVE, _VALUE = range(len(SCORERS))


@dataclass(frozen=True)
class Rule:
    """What decides, of the kind that the simulator plays by itself.

    Attributes:
        order: in which waiting jobs start that fit, one of `ORDERS`.
        scorer: ``none`` takes no candidate; ``aggressive`` always takes the smallest job; ``value``
            the candidate of the highest value, if it is above that of the machine as it is.
        preempt: whether it preempts, where the world has it.
        squeeze: whether it squeezes.
    """

    order: str = "best_fit"
    scorer: str = "none"
    preempt: bool = True
    squeeze: bool = True

    def __post_init__(self) -> None:
        for name, value, known in (("order", self.order, ORDERS), ("scorer", self.scorer, SCORERS)):
            if value not in known:
                raise unknown(name, value, known)
        if self.order != "best_fit" and self.scorer == "value":
            raise InputError("values belong with the order best_fit, the paper's")

    def restrict(self, options: Options) -> Options:
        """The options of a world, with preemption and squeezing only where the rule has them."""
        decides = self.scorer != "none"
        return options._replace(
            preempt=options.preempt and self.preempt and decides,
            squeeze=options.squeeze and self.squeeze and decides,
        )


def learners_for(
    rule: Rule, learners: Learners | None, learning: bool, num_learners: int
) -> Learners:
    """The learners to play with: one for each project on each machine, or one if nobody learns.

    A rule that does not go by values needs none.

    Raises:
        InputError: if there are too few or too many.
    """
    if learners is None:
        if rule.scorer == "value":
            raise InputError("a rule that ranks by values needs value functions")
        learners = new_learners(RULEBASE, np.zeros((1, len(RULES))), 0.0, 0.0, 1.0, False)
        learning = False
    if learners.memory.size == 1 and not learning:
        return learners._replace(memory=np.repeat(learners.memory, num_learners))
    if learners.memory.size != num_learners:
        raise InputError(
            f"{num_learners} servers need as many learners, or one for all where nobody learns, "
            f"not {learners.memory.size}"
        )
    return learners


@njit_inlined
def choose_candidate(
    options: Options, scorer: int, kind: int, p: NDArray[np.float64], state: NDArray[np.int32]
) -> int:
    """The candidate that a rule takes, -1 for none; ``p`` are the value function's parameters."""
    best, best_score, best_utility = -1, -np.inf, -1
    if scorer == _NONE:
        return best
    # A candidate has to be worth more than the machine as it is.
    if scorer == _VALUE:
        best_score = _value_of_columns(options, kind, p, state, HEADER.unit_utility)
    for k in range(options.candidates):
        candidate = candidate_of(state, k)
        if candidate[CANDIDATE.present] == 0:
            break
        # The highest value; or the smallest job, of equally large ones the one worth most.
        if scorer == _VALUE:
            score = _value_of_columns(options, kind, p, candidate, CANDIDATE.unit_utility)
            utility = 0
        else:
            score, utility = -float(candidate[CANDIDATE.size]), candidate[CANDIDATE.job_utility]
        tie = scorer == _AGGRESSIVE and score == best_score and utility > best_utility
        if score > best_score or tie:
            best, best_score, best_utility = k, score, utility
    return best


@njit_inlined
def _value_of_columns(
    options: Options, kind: int, p: NDArray[np.float64], columns: NDArray[np.int32], first: int
) -> float:
    """The value of x1, x2 and x3, which stand beside each other from a column on."""
    x1 = columns[first] / MILLION
    x2 = min(columns[first + 1] / options.longest, 1.0)
    return value_of(kind, p, x1, x2, columns[first + 2] / options.processors)


@njit_kernel
def choose_actions(
    options: Options,
    scorer: int,
    kind: int,
    p: NDArray[np.float64],
    states: NDArray[np.int32],
    actions: NDArray[np.int32],
) -> None:
    """Writes the actions of a rule in several states; see `choose_candidate`."""
    for i in range(states.shape[0]):
        # A rule that only squeezes lets a stage of preemption pass, and the other way round.
        preempts = states[i, HEADER.stage] == PREEMPTING + 1
        k = -1
        if options.preempt if preempts else options.squeeze:
            k = choose_candidate(options, scorer, kind, p, states[i])
        actions[i] = k if k >= 0 else options.candidates


@njit_kernel
def play_episodes(
    servers: Servers,
    order: int,
    scorer: int,
    learners: Learners,
    learning: bool,
    begin: int,
    resumed: bool,
) -> int:
    """Plays episodes to their ends, one after the other from a row on.

    There is a learner for each project on each machine. Returns the row for which `Servers.pieces`
    has to grow before it is resumed, -1 if all have ended.
    """
    options = servers.options
    for row in range(begin, servers.episodes.size):
        pool = pool_of(servers, row)
        episode = pool.episode
        if not (resumed and row == begin):
            begin_episode(pool, order)
        while episode.active:
            # Whoever calls makes room, and comes back to this episode.
            if not has_room(pool):
                return row
            server = server_of(pool, episode.turn)
            index = (pool.first_machine + episode.turn) * options.projects + episode.project
            first, last = episode.turn, episode.turn + 1
            if episode.stage != BEGINNING and list_candidates(server, False) > 0:
                # A machine decides; if it acts, it may have processors to give away.
                p = learners.p[function_of(learners, index)]
                k = choose_candidate(options, scorer, learners.kind, p, pool.state)
                apply_candidate(server, k)
                if not server.machine.acted:
                    continue
            else:
                # It has nothing more to decide: the next machine does, or the next project, or
                # time passes.
                if learning and episode.stage != BEGINNING:
                    learn_at_end(server, learners, index)
                if episode.turn + 1 < options.machines:
                    episode.turn, episode.stage = episode.turn + 1, PREEMPTING
                    continue
                if not next_project(pool) and not next_instant(pool):
                    break
                first, last = 0, options.machines
            allocate(pool, first, last)
    return -1


@njit_inlined
def learn_at_end(server: Server, learners: Learners, index: int) -> None:
    """Lets a project's learner of a machine learn after its turn, if section 3.4 has it learn then.

    These are when a job was preempted or squeezed, and when a job finished or started after there
    was something to decide and nothing was done. Preemption and squeezing at one instant make one
    update, of the state after both. What it sees and earns is of its project and higher ones.
    """
    options, machine, memory = server.pool.options, server.machine, learners.memory[index]
    if machine.acted or (memory.awaits_change and machine.changed):
        x1, soonest, idle = machine_state(server)
        x2, x3 = min(soonest / options.longest, 1.0), idle / options.processors
        earned = machine.earned
        if options.projects > 1:
            project = server.pool.episode.project
            earned = server.pool.gained[index // options.projects, project:].sum()
        learn(learners, index, x1, x2, x3, earned, server.pool.episode.time)
        memory.awaits_change = False
    # A decision that was considered but not made: the next change of the machine counts.
    if machine.considered and not machine.acted:
        memory.awaits_change = True
