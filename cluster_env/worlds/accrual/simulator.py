"""Many servers side by side, event by event."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import BatchSimulator
from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.core.schedule import Pieces, Schedule
from cluster_env.worlds.accrual.candidates import apply_candidate, list_candidates, write_header
from cluster_env.worlds.accrual.events import (
    begin_episode,
    has_room,
    next_instant,
    next_project,
)
from cluster_env.worlds.accrual.orders import BEST_FIT, ORDERS, allocate
from cluster_env.worlds.accrual.rules import SCORERS, Rule, learners_for, play_episodes
from cluster_env.worlds.accrual.state import (
    PREEMPTING,
    Options,
    Pool,
    Servers,
    allocate_servers,
    pool_of,
    server_of,
)
from cluster_env.worlds.accrual.td import Learners

RESET, STEP, RESUME = range(3)


@njit_kernel
def step_episodes(
    servers: Servers,
    rows: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
    mode: int,
    order: int,
) -> int:
    """Takes one decision in some episodes, or puts them back to their first one.

    The first decision is at time 0, even if nothing can be chosen.

    The mode is `RESET`; `STEP`; or `RESUME`, if a call before had no room for pieces. Rows and
    actions, which only `STEP` reads, are int32 ``(n,)``; rewards, float64 of at least n elements,
    are written but by `RESET`, which alone reads the order in which jobs start that fit.

    Returns:
        How many of the episodes are active; -1 if `Servers.pieces` has to grow before the step is
        resumed.
    """
    full, num_active = False, 0
    machines = servers.options.machines
    for i in range(rows.size):
        pool = pool_of(servers, np.int64(rows[i]))
        episode = pool.episode
        # Machines that have processors to give away: from `first` up to, not including, `last`.
        first, last = 0, 0
        if mode == RESET:
            begin_episode(pool, order)
            if episode.active and next_instant(pool):
                last = machines
        elif mode == STEP and episode.active:
            server = server_of(pool, episode.turn)
            apply_candidate(server, np.int64(actions[i]))
            first, last = episode.turn, episode.turn + server.machine.acted
            episode.decided = True
        if mode != RESUME:
            episode.paused = episode.active
        # Time passes until a machine has something to decide, or the episode has ended.
        count = 0
        while episode.paused:
            if first < last:
                allocate(pool, first, last)
            if not has_room(pool):
                full = True
                break
            count = list_next_candidates(pool)
            first, last = 0, machines
            episode.paused = count == 0 and (
                next_project(pool) or (mode != RESET and next_instant(pool))
            )
        if not episode.paused:
            # At time 0, and at the end, a state may show that nothing can be decided.
            if (count == 0 and mode != RESUME) or not episode.active:
                write_header(server_of(pool, episode.turn), 0, 0, True)
            if mode != RESET:
                rewards[i] = episode.pending_reward
        num_active += episode.active
    if full:
        return -1
    # Only now: until all rows are through, a step that is resumed pays rewards again.
    if mode != RESET:
        for i in range(rows.size):
            servers.episodes[rows[i]].pending_reward = 0.0
    return num_active


@njit_inlined
def list_next_candidates(pool: Pool) -> int:
    """Writes the state of the next machine on which the project has something to decide.

    Returns how many candidates it has; 0 if there is no such machine.
    """
    episode = pool.episode
    while True:
        count = list_candidates(server_of(pool, episode.turn), True)
        if count > 0 or episode.turn + 1 == pool.options.machines:
            return count
        episode.turn, episode.stage = episode.turn + 1, PREEMPTING


class AccrualSimulator(BatchSimulator):
    """Episodes of a world of utility accrual; see `cluster_env.worlds.accrual.world.Accrual`."""

    def __init__(self, world: Any, options: Options) -> None:
        super().__init__(world)
        self._options = options
        self._servers: Servers

    def allocate(self) -> None:
        """See `BatchSimulator.allocate`."""
        size = int(self.world.state_space.shape[0])
        self._servers = allocate_servers(self.batch, self._options, size)

    def show(self) -> None:
        """See `BatchSimulator.show`."""
        self.states, episodes = self._servers.states, self._servers.episodes
        self.time, self.active = episodes["time"], episodes["active"]
        self.truncated = episodes["truncated"]

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        self._reset(self.episode if rows is None else rows, BEST_FIT)

    def start_in_order(self, rows: NDArray[np.int32], order: str) -> None:
        """Lets jobs that fit start in another of `ORDERS` from now on.

        Episodes in which nothing was decided yet begin again, in that order.
        """
        index, episodes = ORDERS.index(order), self._servers.episodes
        rows = rows[episodes["order"][rows] != index]
        episodes["order"][rows] = index
        self._reset(rows[~episodes["decided"][rows]], index)

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes; see `Simulator.step`."""
        left = int(step_episodes(self._servers, rows, actions, rewards, STEP, BEST_FIT))
        while left < 0:
            self._make_room()
            left = int(step_episodes(self._servers, rows, actions, rewards, RESUME, BEST_FIT))
        return left

    def play(
        self,
        rule: Rule,
        keys: NDArray[np.uint64] | None = None,
        *,
        learners: Learners | None = None,
        learning: bool = False,
    ) -> None:
        """Plays all episodes to their ends; the keys are not used, as nothing is random.

        The rule ``value`` has its functions from `learners`, one for each project on each machine
        of each episode or one for all, who may learn meanwhile, each from what it sees.

        Raises:
            InputError: if there are too few or too many learners.
        """
        learners = learners_for(rule, learners, learning, self._servers.gained.size)
        order, scorer = ORDERS.index(rule.order), SCORERS.index(rule.scorer)
        row, resumed = 0, False
        while row >= 0:
            servers = self._servers._replace(options=rule.restrict(self._options))
            row = play_episodes(servers, order, scorer, learners, learning, row, resumed)
            resumed = True
            if row >= 0:
                self._make_room()

    @property
    def machine_earned(self) -> NDArray[np.float64]:
        """Final utility of what finished on each machine, float64 ``(num_rows, machines)``."""
        earned: NDArray[np.float64] = self._servers.machines["earned"]
        return earned.reshape(-1, self._options.machines)

    @property
    def earned(self) -> NDArray[np.float64]:
        """Final utility of what has finished in each episode, float64 ``(num_rows,)``."""
        return self.machine_earned.sum(axis=1)

    @property
    def busy(self) -> NDArray[np.int64]:
        """Processors x steps that jobs used in each episode that has ended, int64."""
        busy: NDArray[np.int64] = self._servers.machines["busy"]
        return busy.reshape(-1, self._options.machines).sum(axis=1)

    def take_over(
        self, other: "AccrualSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        while self._servers.pieces.shape[1] < other._servers.pieces.shape[1]:
            self._make_room()
        mine, theirs = self._servers, other._servers
        # Where their jobs stand stays as it is.
        fixed = mine.episodes[["first_job", "num_jobs", "place", "window"]][target].copy()
        mine.episodes[target] = theirs.episodes[source]
        mine.episodes[list(fixed.dtype.names or ())][target] = fixed
        # What belongs to jobs, to episodes and to machines.
        columns = [(mine.progress, theirs.progress), (mine.waiting, theirs.waiting)]
        self.batch.copy_places(other.batch, source, target, columns)
        mine.shown[target], mine.states[target] = theirs.shown[source], theirs.states[source]
        numbers = np.arange(self._options.machines)
        here, there = (rows[:, None] * numbers.size + numbers for rows in (target, source))
        mine.machines[here], mine.running[here] = theirs.machines[there], theirs.running[there]
        mine.gained[here] = theirs.gained[there]
        mine.pieces[here, : theirs.pieces.shape[1]] = theirs.pieces[there]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them.

        Where there are several machines, pieces name them as nodes.
        """
        episodes, progress = self._servers.episodes, self._servers.progress
        arrived = episodes["num_arrived"]
        return self.batch.schedule(
            arrived=arrived,
            start=progress["start"],
            finish=progress["finish"],
            end=episodes["time"],
            capacity=[self.world.capacity],
            pieces=self._pieces(self.batch.first_rows(arrived)),
        )

    def _pieces(self, first_rows: NDArray[np.int64]) -> Pieces:
        """What has been held so far; running jobs' last pieces end at the clock."""
        servers, parts = self._servers, []
        for index, machine in enumerate(servers.machines):
            row = index // self._options.machines
            episode = servers.episodes[row]
            running = servers.running[index, : machine["num_running"]]
            own = servers.progress[episode["place"] + running]
            until = np.full(running.size, episode["time"])
            last = np.stack([running, own["since"], until, own["held"]], axis=1)
            ended = servers.pieces[index, : machine["num_pieces"]]
            part = np.concatenate([ended, last[own["since"] < until]])
            part[:, 0] += first_rows[row]  # a job is named by its row in the schedule
            parts.append(part)
        job, begin, end, units = np.concatenate(parts).astype(np.int32).T
        numbers = np.arange(len(parts), dtype=np.int32) % self._options.machines
        node = np.repeat(numbers, [len(part) for part in parts])
        several = self._options.machines > 1
        return Pieces(job, begin, end, units[:, None], node if several else None)

    def _reset(self, rows: NDArray[np.int32], order: int) -> None:
        step_episodes(self._servers, rows, rows, np.empty(0), RESET, order)

    def _make_room(self) -> None:
        """Twice the room for pieces."""
        pieces = self._servers.pieces
        self._servers = self._servers._replace(pieces=np.concatenate([pieces, pieces], axis=1))
