"""The world as RLlib's environment of many agents, which come and go."""

from typing import Any

import numpy as np
from gymnasium import spaces
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from cluster_env.core.errors import InputError
from cluster_env.core.task import Task
from cluster_env.envs.setup import require_reward_scale
from cluster_env.worlds.panda.multiagent import PandaParallelEnv


class PandaMultiAgentEnv(MultiAgentEnv):
    """See `PandaParallelEnv`; only agents that have something to decide are shown what they see.

    An agent gets its last observation and reward in the step in which its consumer departs. An
    observation is a row, float32 from 0 to 1. With ``mask_in_observation`` it is a dict of that,
    ``observations``, and ``action_mask``, int8 ``(2 * num_actions,)``, of the two logits that
    RLlib has for each bit of an action: it masks what sets a bit that makes no sense.

    Args:
        config: ``task``, a `Task` of this world; ``seed`` of the jobsets, 0 if not given;
            ``reward_scale``, a factor of all rewards; ``mask_in_observation``; and ``agents``, the
            most consumers of a jobset, 512 if not given: RLlib asks for their spaces before it
            knows any.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        task: Task = config["task"]
        self._env = PandaParallelEnv(task, int(config.get("seed", 0)))
        most = int(config.get("agents", 512))
        self.possible_agents = [f"consumer_{number}" for number in range(most)]
        self._reward_scale = require_reward_scale(config.get("reward_scale", 1.0))
        self._masked = bool(config.get("mask_in_observation", False))
        space: spaces.Space[Any] = self._env.observation_space("")["observation"]
        if self._masked:
            mask = spaces.Box(0, 1, (2 * task.world.num_actions,), np.int8)
            space = spaces.Dict({"action_mask": mask, "observations": space})
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        # RLlib has no distribution for MultiBinary; this is the two-way softmax of each bit.
        bits = spaces.MultiDiscrete(np.full(task.world.num_actions, 2))
        self.action_spaces = dict.fromkeys(self.possible_agents, bits)
        self.agents: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins the next jobset, or the first one of a seed.

        Raises:
            InputError: if it has more consumers than there can be agents.
        """
        observations, _ = self._env.reset(seed)
        if len(self._env.possible_agents) > len(self.possible_agents):
            raise InputError(
                f"the jobset has {len(self._env.possible_agents)} consumers, but there can be "
                f"{len(self.possible_agents)} agents; set agents higher"
            )
        self.agents = list(observations)
        return {name: self._show(one) for name, one in observations.items()}, {}

    def step(
        self, action_dict: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Takes the decisions of the agents that wait."""
        observations, rewards, ended, cut, _ = self._env.step(action_dict)
        self.agents = list(self._env.agents)
        departed = set(observations) - set(self.agents)
        shown = departed | set(self._env.deciding)
        over = not self.agents  # nobody comes any more, either: a step lasts until somebody does
        return (
            {name: self._show(one) for name, one in observations.items() if name in shown},
            {name: self._reward_scale * reward for name, reward in rewards.items()},
            {name: value for name, value in ended.items() if value} | {"__all__": over},
            {name: value for name, value in cut.items() if value} | {"__all__": False},
            {},
        )

    def _show(self, seen: dict[str, Any]) -> Any:
        if not self._masked:
            return seen["observation"]
        mask = np.ones((seen["action_mask"].size, 2), np.int8)  # a bit may always be 0
        mask[:, 1] = seen["action_mask"]
        return {"action_mask": mask.ravel(), "observations": seen["observation"]}
