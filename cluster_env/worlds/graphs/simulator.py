"""Many clusters side by side, event by event."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import BatchSimulator
from cluster_env.core.compiled import njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.core.objective import Objective
from cluster_env.core.schedule import Pieces, Schedule
from cluster_env.worlds.graphs.rounds import act, action_for, assign, next_decision, write_state
from cluster_env.worlds.graphs.rules import Rule, decide
from cluster_env.worlds.graphs.state import Episode, episode_of, first_episodes

_RESET, _STEP, _PLAY = range(3)
_NO_WEIGHTS = np.zeros((0, 0))


@njit_kernel
def run_episodes(
    episodes: Episode,
    rows: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
    mode: int,
    rule: int,
    weights: NDArray[np.float64],
) -> int:
    """Takes one decision in some episodes, or none, or plays them to their ends.

    The mode is `_STEP`, `_RESET` or `_PLAY`. Rows are int32 ``(n,)``; actions, likewise, and
    rewards, float64 of at least n elements, belong to `_STEP`, rule and weights to `_PLAY`; see
    `decide`. Returns how many of the episodes are active.
    """
    num_active = 0
    for i in range(rows.size):
        episode = episode_of(episodes, rows[i])
        record = episode.record
        if mode == _STEP and record.active:
            act(episode, np.int64(actions[i]))
        while next_decision(episode) and mode == _PLAY:
            target, count = decide(episode, rule, weights)
            assign(episode, target, count)
        write_state(episode)
        if mode == _STEP:
            rewards[i] = record.pending_reward
        # What comes before the first decision is of no decision, but belongs to the return.
        if mode != _RESET:
            record.pending_reward = 0.0
        num_active += record.active
    return num_active


@njit_kernel
def choose_actions(
    episodes: Episode,
    rows: NDArray[np.int32],
    rule: int,
    weights: NDArray[np.float64],
    actions: NDArray[np.int32],
) -> None:
    """Writes the action that a rule takes in each of some active episodes."""
    for i in range(rows.size):
        episode = episode_of(episodes, rows[i])
        target, count = decide(episode, rule, weights)
        actions[i] = action_for(episode, target, count)


class GraphsSimulator(BatchSimulator):
    """Episodes of the world of task graphs; see `cluster_env.worlds.graphs.world.Graphs`."""

    _first: Episode  # with a row for each jobset
    _episodes: Episode

    def require(self, objective: Objective) -> None:
        """Refuses objectives of jobs with time-utility functions."""
        if objective.utility_gain:
            raise InputError(
                f"task graphs have no utility that decays, but the objective '{objective.name}' "
                "rewards it; take another one, such as completion_time"
            )

    def allocate(self) -> None:
        """See `BatchSimulator.allocate`."""
        self._first = first_episodes(self.batch, self.world.options, self.world.library)
        rows = self.batch.num_episodes
        own = [np.empty_like(one, shape=(rows, *one.shape[1:])) for one in _arrays(self._first)]
        self._episodes = Episode._make((*self._first[: -len(own)], *own))

    def show(self) -> None:
        """See `BatchSimulator.show`."""
        self.states, record = self._episodes.state, self._episodes.record
        self.time, self.active = record["time"], record["active"]
        self.truncated = record["truncated"]

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        rows = self.episode if rows is None else rows
        self._begin(rows)
        run_episodes(self._episodes, rows, rows, np.empty(0), _RESET, 0, _NO_WEIGHTS)

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes; see `Simulator.step`."""
        return int(run_episodes(self._episodes, rows, actions, rewards, _STEP, 0, _NO_WEIGHTS))

    def play(self, rule: Rule) -> None:
        """Plays all episodes to their ends by a rule."""
        rows = self.episode
        self._begin(rows)
        run_episodes(self._episodes, rows, rows, np.empty(0), _PLAY, rule.number, rule.weights)

    def _begin(self, rows: NDArray[np.int32]) -> None:
        """Puts some episodes back to where nothing has happened."""
        jobset = self.batch.jobset[rows]
        for own, first in zip(_arrays(self._episodes), _arrays(self._first), strict=True):
            _bytes(own)[rows] = _bytes(first)[jobset]

    def choose(self, rule: Rule, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """The actions that a rule takes in active rows, int32 ``(m,)``, as in `play`."""
        actions = np.empty(rows.size, np.int32)
        choose_actions(self._episodes, rows, rule.number, rule.weights, actions)
        return actions

    def take_over(
        self, other: "GraphsSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        # Other jobsets of a batch may make its rows longer, and begin elsewhere among all jobs.
        mine, theirs = (_arrays(one._episodes)[1:] for one in (self, other))
        for own, others in zip(mine, theirs, strict=True):
            room = min(own.shape[1:2], others.shape[1:2])
            part = tuple(map(slice, room))
            own[target, *part] = others[source, *part]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode; each task is a piece on an executor."""
        record, jobs = self._episodes.record, self._episodes.jobs
        arrived = record["num_arrived"].astype(np.int64)
        jobs = jobs[_leading(self.batch.num_jobs, jobs)]
        return self.batch.schedule(
            arrived=arrived,
            start=jobs["start"],
            finish=jobs["finish"],
            end=record["time"],
            capacity=[self.world.executors],
            pieces=self._pieces(self.batch.first_rows(arrived), jobs["num_tasks"]),
        )

    def _pieces(self, first_rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> Pieces:
        """Tasks that have begun, of jobs with so many; those that run end at the clock."""
        batch, tasks = self.batch, self._episodes.tasks
        tasks = tasks[_leading(self._episodes.record["num_tasks"], tasks)]
        episode = np.repeat(np.arange(batch.num_episodes), batch.num_jobs)
        row = np.arange(batch.num_places) - batch.place[episode] + first_rows[episode]
        job, clock = np.repeat(row, sizes), np.repeat(self.time[episode], sizes)
        end = np.minimum(tasks[:, 1], clock)
        begun = (tasks[:, 1] >= 0) & (tasks[:, 0] < end)
        return Pieces(
            job=job[begun].astype(np.int32),
            begin=tasks[begun, 0],
            end=end[begun].astype(np.int32),
            units=np.ones((int(begun.sum()), 1), np.int32),
            node=tasks[begun, 2],
        )


def _arrays(episodes: Episode) -> tuple[Any, ...]:
    """The arrays that have a row for each episode."""
    return tuple(episodes[Episode._fields.index("first_job") :])


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """The same memory, ``(len(values), num_bytes)``: records are copied ten times as fast so."""
    return np.asarray(values).view(np.uint8).reshape(len(values), -1)


def _leading(count: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Marks so many first values of each row."""
    return np.arange(values.shape[1]) < count[:, None]
