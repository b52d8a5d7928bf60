"""Many clusters side by side, event by event."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import BatchSimulator
from cluster_env.core.compiled import njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.core.objective import Objective
from cluster_env.core.schedule import Pieces, Schedule
from cluster_env.worlds.graphs.events import begin_episode
from cluster_env.worlds.graphs.rounds import act, action_for, assign, next_decision, write_state
from cluster_env.worlds.graphs.rules import Rule, decide
from cluster_env.worlds.graphs.state import Clusters, allocate_clusters, episode_of

_RESET, _STEP, _PLAY = range(3)
_NO_WEIGHTS = np.zeros((0, 0))


@njit_kernel
def run_episodes(
    clusters: Clusters,
    rows: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
    mode: int,
    rule: int,
    weights: NDArray[np.float64],
) -> int:
    """Takes one decision in some episodes, puts them back to their first one, or plays them.

    The mode is `_RESET`, `_STEP` or `_PLAY`. Rows are int32 ``(n,)``; actions, likewise, and
    rewards, float64 of at least n elements, belong to `_STEP`, rule and weights to `_PLAY`; see
    `decide`. Returns how many of the episodes are active.
    """
    num_active = 0
    for i in range(rows.size):
        episode = episode_of(clusters, rows[i])
        record = episode.record
        if mode != _STEP:
            begin_episode(episode)
        elif record.active:
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
    clusters: Clusters,
    rows: NDArray[np.int32],
    rule: int,
    weights: NDArray[np.float64],
    actions: NDArray[np.int32],
) -> None:
    """Writes the action that a rule takes in each of some active episodes."""
    for i in range(rows.size):
        episode = episode_of(clusters, rows[i])
        target, count = decide(episode, rule, weights)
        actions[i] = action_for(episode, target, count)


class GraphsSimulator(BatchSimulator):
    """Episodes of the world of task graphs; see `cluster_env.worlds.graphs.world.Graphs`."""

    _clusters: Clusters

    def require(self, objective: Objective) -> None:
        """Refuses objectives of jobs with time-utility functions."""
        if objective.utility_gain:
            raise InputError(
                f"task graphs have no utility that decays, but the objective '{objective.name}' "
                "rewards it; take another one, such as completion_time"
            )

    def allocate(self) -> None:
        """See `BatchSimulator.allocate`."""
        self._clusters = allocate_clusters(self.batch, self.world.options, self.world.library)

    def show(self) -> None:
        """See `BatchSimulator.show`."""
        self.states, episodes = self._clusters.states, self._clusters.episodes
        self.time, self.active = episodes["time"], episodes["active"]
        self.truncated = episodes["truncated"]

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        rows = self.episode if rows is None else rows
        run_episodes(self._clusters, rows, rows, np.empty(0), _RESET, 0, _NO_WEIGHTS)

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes; see `Simulator.step`."""
        return int(run_episodes(self._clusters, rows, actions, rewards, _STEP, 0, _NO_WEIGHTS))

    def play(self, rule: Rule) -> None:
        """Plays all episodes to their ends by a rule."""
        rows = self.episode
        run_episodes(self._clusters, rows, rows, np.empty(0), _PLAY, rule.number, rule.weights)

    def choose(self, rule: Rule, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """The actions that a rule takes in active rows, int32 ``(m,)``, as in `play`."""
        actions = np.empty(rows.size, np.int32)
        choose_actions(self._clusters, rows, rule.number, rule.weights, actions)
        return actions

    def take_over(
        self, other: "GraphsSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        mine, theirs = self._clusters, other._clusters
        for name in ("episodes", "executors", "events", "promises", "states"):
            getattr(mine, name)[target] = getattr(theirs, name)[source]
        for there, here in zip(source.tolist(), target.tolist(), strict=True):
            for name, room in self._rooms(here).items():
                getattr(mine, name)[room] = getattr(theirs, name)[other._rooms(there)[name]]

    def _rooms(self, row: int) -> dict[str, slice]:
        """Where what belongs to the jobs of an episode stands."""
        _, place, task = self._clusters.begins[row].tolist()
        record, span = self._clusters.episodes[row], self.world.options.span
        jobs, stage = slice(place, place + int(record.num_jobs)), place * span + row
        return {
            "jobs": jobs,
            "here": jobs,
            "stages": slice(stage, stage + int(record.num_jobs) * span + 1),
            "tasks": slice(task, task + int(record.num_tasks)),
        }

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode; each task is a piece on an executor."""
        episodes, jobs = self._clusters.episodes, self._clusters.jobs
        arrived = episodes["num_arrived"].astype(np.int64)
        return self.batch.schedule(
            arrived=arrived,
            start=jobs["start"],
            finish=jobs["finish"],
            end=episodes["time"],
            capacity=[self.world.executors],
            pieces=self._pieces(self.batch.first_rows(arrived)),
        )

    def _pieces(self, first_rows: NDArray[np.int64]) -> Pieces:
        """Tasks that have begun; those that run end at the clock."""
        batch, tasks = self.batch, self._clusters.tasks
        sizes = self._clusters.jobs["num_tasks"]
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
