"""PANDA's world as PettingZoo has environments of several agents; ``pip install pettingzoo``."""

from gymnasium.spaces import Dict, MultiBinary
from pettingzoo import ParallelEnv

from rllib_configs.worlds.panda.multi_agent import PandaMultiAgentEnv


class PandaParallelEnv(ParallelEnv):
    """Shows every agent that is there what it sees; see `PandaMultiAgentEnv`."""

    metadata = {"name": "panda_v0", "render_modes": []}  # noqa: RUF012  PettingZoo reads it so
    render_mode = None

    def __init__(self, task, seed=0):
        self._env = PandaMultiAgentEnv({"task": task, "seed": seed})
        self.possible_agents, self.agents = self._env.possible_agents, []
        self._action_space = MultiBinary(task.world.num_actions)
        seen = self._env.observation_spaces[self.possible_agents[0]]
        self._space = Dict({"observation": seen, "action_mask": self._action_space})

    def observation_space(self, agent):
        return self._space

    def action_space(self, agent):
        return self._action_space

    def reset(self, seed=None, options=None):
        self._env.reset(seed=seed)
        self.agents = list(self._env.agents)
        return self._show(self.agents), {name: {} for name in self.agents}

    def step(self, actions):
        _, rewards, ended, cut, _ = self._env.step(actions)
        names, self.agents = list(rewards), list(self._env.agents)
        return (
            self._show(names),
            rewards,
            {name: name in ended for name in names},
            {name: name in cut for name in names},
            {name: {} for name in names},
        )

    def _show(self, names):
        seen, mask = self._env.observe(names)
        return {
            name: {"observation": seen[k], "action_mask": mask[k].astype("int8")}
            for k, name in enumerate(names)
        }
