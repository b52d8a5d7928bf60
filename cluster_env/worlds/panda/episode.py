"""One episode with its agents by name, for libraries of several agents."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.worlds.panda.arrays import COMING, DONE, WAITING
from cluster_env.worlds.panda.world import Panda

Observation = dict[str, NDArray[Any]]


class AgentEpisode:
    """The consumers of one jobset, each with an agent that lives until its consumer departs.

    Observation: a dict of ``observation``, float32 from 0 to 1, the items of the world's features
    row by row and then the context; and ``action_mask``, int8, what makes sense at present: nothing
    while the consumer runs. Action: zeros and ones, see `Panda`; forbidden ones do nothing.

    Reward: at a decision minus what the consumer costs until the next one, at a start for the whole
    run ahead; 0 while it runs. An agent is terminated when its consumer departs, and truncated at
    the world's end of time. A step lasts until some agent has something to decide.

    Args:
        task: a world of this kind, a workload and an objective.
        seed: of the jobsets, one after the other from the training split.
    """

    def __init__(self, task: Task, seed: int = 0) -> None:
        world: Any = task.world
        self._world: Panda = world
        self._task, self._seed, self._index = task, seed, -1
        items, context = self._world.feature_names
        size = (self._world.observed + self._world.held) * len(items) + len(context)
        self.seen = spaces.Dict(
            {
                "observation": spaces.Box(0.0, 1.0, (size,), np.float32),
                "action_mask": spaces.MultiBinary(self._world.num_actions),
            }
        )
        self.done_by = spaces.MultiBinary(self._world.num_actions)
        self._simulator = self._world.simulator()
        self.alive: list[str] = []
        self.jobset: JobSet
        self._load()

    @property
    def names(self) -> list[str]:
        """All agents of the episode, in the order in which they come."""
        return [f"consumer_{row}" for row in range(self._simulator.num_rows)]

    @property
    def waiting(self) -> list[str]:
        """Agents that have something to decide."""
        return [f"consumer_{row}" for row in np.flatnonzero(self._simulator.active)]

    @property
    def time(self) -> int:
        """The clock, in steps."""
        return int(self._simulator.time[0])

    def restart(self, seed: int | None = None) -> dict[str, Observation]:
        """Begins the next jobset, or the first one of a seed; what its first agents see."""
        if seed is not None:
            self._seed, self._index = seed, -1
        self._load()
        self.alive = self._present()
        return self._look(self.alive)

    def advance(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], set[str]
    ]:
        """Takes the decisions of all agents that wait.

        Args:
            actions: of agents by name; who is left out does nothing.

        Returns:
            Observations, rewards, and whether they are terminated and truncated, of all agents that
            were or are now there; and the names of those that are.
        """
        rows = np.flatnonzero(self._simulator.active).astype(np.int32)
        bits = np.zeros((rows.size, self._world.num_actions), np.int32)
        for place, row in enumerate(rows):
            given = actions.get(f"consumer_{row}")
            if given is not None:
                bits[place] = given
        paid = np.zeros(rows.size)
        if rows.size:
            self._simulator.step(rows, bits, paid)
        now = self._present()
        told = list(dict.fromkeys([*self.alive, *now]))
        rewards = dict.fromkeys(told, 0.0)
        rewards |= {f"consumer_{row}": float(paid[k]) for k, row in enumerate(rows)}
        cut = {name: bool(self._simulator.truncated[_row(name)]) for name in told}
        ended = {name: name not in now and not cut[name] for name in told}
        seen = self._look(told)
        self.alive = now
        return seen, rewards, ended, cut, set(now)

    def _load(self) -> None:
        while True:
            self._index += 1
            task = Task(self._world, self._task.workload, self._task.objective, seed=self._seed)
            (self.jobset,) = task.jobsets(Split.TRAIN, [self._index])
            if self.jobset.num_jobs:
                break
        self._simulator.load([self.jobset], self._task.objective)

    def _present(self) -> list[str]:
        """Agents whose consumers have arrived and not departed, unless the time is over."""
        stage = self._simulator.agents["stage"]
        here = (stage != COMING) & (stage != DONE) & ~self._simulator.truncated
        return [f"consumer_{row}" for row in np.flatnonzero(here)]

    def _look(self, names: list[str]) -> dict[str, Observation]:
        rows = np.array([_row(name) for name in names], np.int64)
        features = self._world.features(self._simulator.states[rows])
        flat = np.hstack([features.items.reshape(rows.size, -1), features.context])
        mask = features.allowed & (self._simulator.agents["stage"][rows] == WAITING)[:, None]
        return {
            name: {"observation": flat[k].clip(0, 1), "action_mask": mask[k].astype(np.int8)}
            for k, name in enumerate(names)
        }


def _row(name: str) -> int:
    return int(name.rpartition("_")[2])
