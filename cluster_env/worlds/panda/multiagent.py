"""The world as an environment of many agents by name, as PettingZoo has it."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.observation import flattened
from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.worlds.panda.state import COMING, DONE, WAITING
from cluster_env.worlds.panda.world import Panda

try:
    from pettingzoo import ParallelEnv
except ModuleNotFoundError:  # an extra: without it, this is no ParallelEnv, and works all the same
    ParallelEnv = object

Observation = dict[str, NDArray[Any]]


class PandaParallelEnv(ParallelEnv):  # type: ignore[misc]  # it is not typed
    """The consumers of one jobset, each with an agent that lives until its consumer departs.

    Agents come while the episode is under way; `possible_agents` are those of the present jobset,
    in the order in which they come. Jobsets without a consumer are passed over.

    **Observation.** A dict of ``observation``, float32 from 0 to 1, the items of the world's
    features one after the other and then the context; and ``action_mask``, int8, what makes sense
    at present: nothing while the consumer runs.

    **Action.** Zeros and ones, see `Panda`; forbidden ones do nothing, nor do agents that are left
    out. A step lasts until some agent has something to decide.

    **Reward.** At a decision minus what the consumer costs until the next one, at a start for the
    whole run ahead; 0 while it runs.

    **End.** An agent is terminated when its consumer departs, and truncated at the world's end of
    time. In that step it gets its last observation and reward.

    Args:
        task: a world of this kind, a workload and an objective.
        seed: of the jobsets, one after the other from the training split.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "panda_v0", "render_modes": []}
    render_mode = None

    def __init__(self, task: Task, seed: int = 0) -> None:
        world: Any = task.world
        self._world: Panda = world
        self._task, self._seed, self._index = task, seed, -1
        items, context = world.feature_names
        size = (world.observed + world.held) * len(items) + len(context)
        self._observation_space = spaces.Dict(
            {
                "observation": spaces.Box(0.0, 1.0, (size,), np.float32),
                "action_mask": spaces.MultiBinary(world.num_actions),
            }
        )
        self._action_space = spaces.MultiBinary(world.num_actions)
        self.simulator = world.simulator()
        self.agents: list[str] = []
        self.jobset: JobSet
        self._load()

    def observation_space(self, agent: str) -> spaces.Dict:
        """The same for all agents."""
        return self._observation_space

    def action_space(self, agent: str) -> spaces.MultiBinary:
        """The same for all agents."""
        return self._action_space

    @property
    def deciding(self) -> list[str]:
        """Agents that have something to decide."""
        return _names(np.flatnonzero(self.simulator.active))

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begins the next jobset, or the first one of a seed; infos are empty."""
        if seed is not None:
            self._seed, self._index = seed, -1
        self._load()
        self.agents = self._present()
        return self._observe(self.agents), {name: {} for name in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Takes the decisions of agents by name; who is left out does nothing.

        The results are of all agents that were or are now there, see `agents`; infos are empty.
        """
        simulator = self.simulator
        # All agents that wait decide at once; zeros do nothing.
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        bits = np.zeros((rows.size, self._world.num_actions), np.int32)
        for place, name in enumerate(_names(rows)):
            if name in actions:
                bits[place] = actions[name]
        paid = np.zeros(rows.size)
        if rows.size:
            simulator.step(rows, bits, paid)
        # Who departs in this step gets a last observation and reward.
        present = self._present()
        names = list(dict.fromkeys([*self.agents, *present]))
        rewards = dict.fromkeys(names, 0.0)
        rewards |= {name: float(reward) for name, reward in zip(_names(rows), paid, strict=True)}
        cut = dict(zip(names, simulator.truncated[_rows(names)].tolist(), strict=True))
        ended = {name: name not in present and not cut[name] for name in names}
        self.agents = present
        return self._observe(names), rewards, ended, cut, {name: {} for name in names}

    def _load(self) -> None:
        while True:
            self._index += 1
            task = Task(self._world, self._task.workload, self._task.objective, seed=self._seed)
            (self.jobset,) = task.jobsets(Split.TRAIN, [self._index])
            if self.jobset.num_jobs:
                break
        self.simulator.load([self.jobset], self._task.objective)
        self.possible_agents = _names(range(self.jobset.num_jobs))

    def _present(self) -> list[str]:
        """Agents whose consumers have arrived and not departed, unless the time is over."""
        stage = self.simulator.agents["stage"]
        here = (stage != COMING) & (stage != DONE) & ~self.simulator.truncated
        return _names(np.flatnonzero(here))

    def _observe(self, names: list[str]) -> dict[str, Observation]:
        rows = _rows(names)
        features = self._world.features(self.simulator.states[rows])
        # Who runs sees its last state, in which there is nothing to do.
        flat = flattened(features)
        mask = features.allowed & (self.simulator.agents["stage"][rows] == WAITING)[:, None]
        return {
            name: {"observation": flat[k].clip(0, 1), "action_mask": mask[k].astype(np.int8)}
            for k, name in enumerate(names)
        }


def _names(rows: Sequence[int] | NDArray[np.integer[Any]]) -> list[str]:
    return [f"consumer_{row}" for row in rows]


def _rows(names: list[str]) -> NDArray[np.int64]:
    return np.array([int(name.rpartition("_")[2]) for name in names], np.int64)
