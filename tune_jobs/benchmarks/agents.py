"""Decisions of many agents on one core: our runner against RLlib's own."""

from typing import Any

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner

from rllib_configs.loading import load_config
from rllib_configs.worlds.panda.multi_agent import PandaMultiAgentEnv
from tune_jobs.benchmarks.measuring import Work

PRESET = "panda-small"
EPISODES = ("training.jobsets=16", "training.jobsets_per_unit=16", "training.episodes_per_jobset=4")
"""64 episodes side by side."""
ENV_STEPS = 40  # between two results


def rllib_agents(hidden: int) -> Work:
    """RLlib's runner of many agents, which share a module, in the environment of the same task.

    Args:
        hidden: units of the module.
    """
    env_config = {"task": load_config(PRESET).task.build()}
    config = PPOConfig().framework("torch").environment(PandaMultiAgentEnv, env_config=env_config)
    config.multi_agent(policies={"shared"}, policy_mapping_fn=_shared)
    config.env_runners(num_env_runners=0, env_to_module_connector=_flatten)
    config.rl_module(model_config={"fcnet_hiddens": [hidden], "fcnet_activation": "relu"})
    runner = MultiAgentEnvRunner(config=config)

    def work() -> float:
        episodes = runner.sample(num_timesteps=ENV_STEPS, random_actions=False)
        runner.get_metrics()
        return float(sum(episode.agent_steps() for episode in episodes))

    return work


def _shared(agent: str, episode: Any, **kwargs: Any) -> str:
    return "shared"


def _flatten(*args: Any, **kwargs: Any) -> FlattenObservations:
    return FlattenObservations(multi_agent=True)
