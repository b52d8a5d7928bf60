"""The world as RLlib's environment of many agents, which come and go."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.observation import flattened
from cluster_env.core.seeding import Split
from cluster_env.envs.setup import require_reward_scale
from cluster_env.task import Task
from cluster_env.worlds.panda.state import COMING, DONE, WAITING
from cluster_env.worlds.panda.world import Panda


class PandaMultiAgentEnv(MultiAgentEnv):
    """The consumers of one jobset, each with an agent that lives until its consumer departs.

    Agents come while the episode is under way. Jobsets without a consumer are passed over. Only
    agents that have something to decide are shown what they see, and those whose consumers depart.
    `tests/extensions/parallel_env.py` makes PettingZoo's environment of it.

    **Observation.** A row, float32 from 0 to 1: the items of the world's features one after the
    other and then the context. With ``mask_in_observation`` a dict of that, ``observations``, and
    ``action_mask``, int8 ``(2 * num_actions,)``, of the two logits that RLlib has for each bit of
    an action: it masks what sets a bit that makes no sense.

    **Action.** Zeros and ones, see `Panda`; forbidden ones do nothing, nor do agents that are left
    out. A step lasts until some agent has something to decide.

    **Reward.** At a decision minus what the consumer costs until the next one, at a start for the
    whole run ahead; 0 while it runs.

    **End.** An agent is terminated when its consumer departs, and truncated at the world's end of
    time. In that step it gets its last observation and reward.

    Args:
        config: ``task``, a `Task` of this world; ``seed`` of the jobsets, which come one after the
            other from the training split, 0 if not given; ``reward_scale``, a factor of all
            rewards; ``mask_in_observation``; and ``agents``, the most consumers of a jobset, 512 if
            not given: RLlib asks for their spaces before it knows any.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self._task: Task = config["task"]
        world: Any = self._task.world
        self._world: Panda = world
        self._seed, self._index = int(config.get("seed", 0)), -1
        self._reward_scale = require_reward_scale(config.get("reward_scale", 1.0))
        self._masked = bool(config.get("mask_in_observation", False))
        items, context = world.feature_names
        size = (world.observed + world.held) * len(items) + len(context)
        space: spaces.Space[Any] = spaces.Box(0.0, 1.0, (size,), np.float32)
        if self._masked:
            mask = spaces.Box(0, 1, (2 * world.num_actions,), np.int8)
            space = spaces.Dict({"action_mask": mask, "observations": space})
        # RLlib has no distribution for MultiBinary; this is the two-way softmax of each bit.
        bits = spaces.MultiDiscrete(np.full(world.num_actions, 2))
        self.possible_agents = _names(range(int(config.get("agents", 512))))
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = dict.fromkeys(self.possible_agents, bits)
        self.simulator = world.simulator()
        self.agents: list[str] = []
        self.jobset: JobSet

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins the next jobset, or the first one of a seed.

        Raises:
            InputError: if it has more consumers than there can be agents.
        """
        if seed is not None:
            self._seed, self._index = seed, -1
        task = Task(self._world, self._task.workload, self._task.objective, seed=self._seed)
        while True:
            self._index += 1
            (self.jobset,) = task.jobsets(Split.TRAIN, [self._index])
            if self.jobset.num_jobs:
                break
        if self.jobset.num_jobs > len(self.possible_agents):
            raise InputError(
                f"the jobset has {self.jobset.num_jobs} consumers, but there can be "
                f"{len(self.possible_agents)} agents; set agents higher"
            )
        self.simulator.load([self.jobset], self._task.objective)
        self.agents = self._present()
        return self._show(self.agents), {}

    def step(
        self, action_dict: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Takes the decisions of the agents that wait; who is left out does nothing."""
        simulator = self.simulator
        # All agents that wait decide at once; zeros do nothing.
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        bits = np.zeros((rows.size, self._world.num_actions), np.int32)
        for place, name in enumerate(_names(rows)):
            if name in action_dict:
                bits[place] = action_dict[name]
        paid = np.zeros(rows.size)
        if rows.size:
            simulator.step(rows, bits, paid)
        # Who departs in this step gets a last observation and reward.
        present = self._present()
        names = list(dict.fromkeys([*self.agents, *present]))
        rewards = dict.fromkeys(names, 0.0)
        rewards |= {name: float(reward) for name, reward in zip(_names(rows), paid, strict=True)}
        departed = [name for name in names if name not in present]
        cut = {name for name in departed if simulator.truncated[_row(name)]}
        self.agents = present
        deciding = _names(np.flatnonzero(simulator.active))
        shown = [name for name in names if name in {*departed, *deciding}]
        over = not present  # nobody comes any more, either: a step lasts until somebody does
        return (
            self._show(shown),
            {name: self._reward_scale * reward for name, reward in rewards.items()},
            {name: True for name in departed if name not in cut} | {"__all__": over},
            dict.fromkeys(cut, True) | {"__all__": False},
            {},
        )

    def observe(self, names: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """What agents see and which bits make sense, float32 and bool ``(len(names), size)``.

        Who runs sees its last state, in which there is nothing to do.
        """
        rows = np.array([_row(name) for name in names], np.int64)
        features = self._world.features(self.simulator.states[rows])
        mask = features.allowed & (self.simulator.agents["stage"][rows] == WAITING)[:, None]
        return flattened(features).clip(0, 1), mask

    def _show(self, names: Sequence[str]) -> dict[str, Any]:
        """What agents see, in the form of their spaces."""
        seen, allowed = self.observe(names)
        if not self._masked:
            return dict(zip(names, seen, strict=True))
        mask = np.ones((len(names), allowed.shape[1], 2), np.int8)  # a bit may always be 0
        mask[:, :, 1] = allowed
        return {
            name: {"action_mask": mask[k].ravel(), "observations": seen[k]}
            for k, name in enumerate(names)
        }

    def _present(self) -> list[str]:
        """Agents whose consumers have arrived and not departed, unless the time is over."""
        stage = self.simulator.agents["stage"]
        here = (stage != COMING) & (stage != DONE) & ~self.simulator.truncated
        return _names(np.flatnonzero(here))


def _names(rows: Sequence[int] | NDArray[np.integer[Any]]) -> list[str]:
    return [f"consumer_{row}" for row in rows]


def _row(name: str) -> int:
    return int(name.rpartition("_")[2])
