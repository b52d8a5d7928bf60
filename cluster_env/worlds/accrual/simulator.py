"""Many servers side by side, event by event."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.objectives import Objective
from cluster_env.worlds.accrual.arrays import BEST_FIT, Costs, Jobs, Machine, Rows
from cluster_env.worlds.accrual.history import schedule_of
from cluster_env.worlds.accrual.joining import joined_costs, joined_jobs, new_rows, with_more_room
from cluster_env.worlds.accrual.play import ORDERS, SCORERS, Rule, learners_for, play_rows
from cluster_env.worlds.accrual.step import RESET, RESUME, STEP, step_rows
from cluster_env.worlds.accrual.td import Learners


class AccrualSimulator:
    """One machine for each episode; jobs may be squeezed and preempted, and keep what they did.

    A job on n of the K processors that it asks for does n units of its K L units of work in a step.
    At one instant jobs finish, then jobs arrive, squeezed jobs get free processors, and waiting
    jobs start that fit. If jobs still wait, one of them may be started by preemption, and then one
    squeezed into what is free. Actions choose which; void and all others choose none.

    The first decision of an episode is at time 0, even if nothing can be chosen. The reward of a
    decision is what jobs gained and cost that finished until the next one.

    Args:
        machine: the server and its rules.
        state_size: of a state.
        check: raises `InputError` for a jobset that cannot run.
    """

    def __init__(self, machine: Machine, state_size: int, check: Callable[[JobSet], None]) -> None:
        self._machine, self._state_size, self._check = machine, state_size, check
        self._jobsets: tuple[JobSet, ...] = ()
        self._jobs: Jobs
        self._costs: Costs
        self._rows: Rows
        self._all = np.empty(0, np.int32)

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets; see `Simulator.load`."""
        if not jobsets:
            raise InputError("at least one jobset is needed")
        for jobset in jobsets:
            self._check(jobset)
        self._jobsets = tuple(jobsets)
        self._jobs = joined_jobs(jobsets, objective)
        self._costs = joined_costs(jobsets, objective)
        each = np.repeat(np.arange(len(jobsets), dtype=np.int32), episodes_per_jobset)
        self._all = np.arange(each.size, dtype=np.int32)
        self._rows = new_rows(each, jobsets, self._machine, self._state_size)
        self.reset()

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        which = self._all if rows is None else rows
        self._step(which, which, np.empty(0), RESET)

    @property
    def processors(self) -> int:
        """Of the machine."""
        return self._machine.processors

    @property
    def num_rows(self) -> int:
        """Number of episodes: one agent decides in each."""
        return int(self._all.size)

    @property
    def episode(self) -> NDArray[np.int32]:
        """Index of each row's episode, its own, int32 ``(num_rows,)``."""
        return self._all

    @property
    def states(self) -> NDArray[np.int32]:
        """The states of all episodes, int32 ``(num_rows, state_size)``: a view that changes."""
        return self._rows.states

    @property
    def time(self) -> NDArray[np.int64]:
        """The clock of each episode in steps, int64 ``(num_rows,)``: a view that changes."""
        return self._rows.of["time"]

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which episodes go on, bool ``(num_rows,)``: a view that changes."""
        return self._rows.of["active"]

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which episodes were cut at `max_time`, bool ``(num_rows,)``: a view that changes."""
        return self._rows.of["truncated"]

    @property
    def earned(self) -> NDArray[np.float64]:
        """Final utility of what has finished in each episode, float64 ``(num_rows,)``: a view."""
        return self._rows.of["earned"]

    @property
    def busy(self) -> NDArray[np.int64]:
        """Processors x steps that jobs used in each episode that has ended, int64: a view."""
        return self._rows.of["busy"]

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes; see `Simulator.step`."""
        left = self._step(rows, actions, rewards, STEP)
        while left < 0:
            self._make_room()
            left = self._step(rows, actions, rewards, RESUME)
        return left

    def play(
        self,
        rule: Rule,
        keys: NDArray[np.uint64] | None = None,
        *,
        learners: Learners | None = None,
        learning: bool = False,
    ) -> None:
        """Plays all episodes to their ends.

        Args:
            rule: what decides.
            keys: not used; nothing is random.
            learners: value functions of the rule ``value``, one for each row, or one for all.
            learning: whether they learn meanwhile, each from its own row.
        """
        playing = learners_for(rule, learners, learning, self.num_rows)
        machine = rule.on(self._machine)
        row, resumed = 0, False
        while row >= 0:
            row = play_rows(
                *(machine, self._jobs, self._costs, self._rows),
                *(ORDERS.index(rule.order), SCORERS.index(rule.scorer)),
                *(playing, learning, row, resumed),
            )
            resumed = True
            if row >= 0:
                self._make_room()

    def take_over(
        self, other: "AccrualSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        mine, theirs = self._rows, other._rows
        while self._rows.pieces.shape[1] < theirs.pieces.shape[1]:
            self._make_room()
            mine = self._rows
        fixed = mine.of[["jobset", "first", "count", "place", "window"]][target].copy()
        mine.of[target] = theirs.of[source]
        for name in fixed.dtype.names or ():
            mine.of[name][target] = fixed[name]
        for here, there in zip(target, source, strict=True):
            begin, before, count = (
                mine.of["place"][here],
                theirs.of["place"][there],
                mine.of["count"][here],
            )
            mine.job[begin : begin + count] = theirs.job[before : before + count]
            mine.waiting[begin : begin + count] = theirs.waiting[before : before + count]
        mine.pieces[target, : theirs.pieces.shape[1]] = theirs.pieces[source]
        for own, others in ((mine.running, theirs.running), (mine.shown, theirs.shown)):
            own[target] = others[source]
        mine.states[target] = theirs.states[source]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        return schedule_of(self._machine, self._jobsets, self._jobs, self._rows)

    def _step(
        self,
        rows: NDArray[np.int32],
        actions: NDArray[np.int32],
        rewards: NDArray[np.float64],
        mode: int,
    ) -> int:
        return int(
            step_rows(
                *(self._machine, self._jobs, self._costs, BEST_FIT, self._rows),
                *(rows, actions, rewards, mode),
            )
        )

    def _make_room(self) -> None:
        self._rows = with_more_room(self._rows)
