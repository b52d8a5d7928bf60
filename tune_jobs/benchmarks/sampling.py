"""Decisions that a policy network samples in RLlib on one core: our runner against RLlib's own."""

import logging
import warnings
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.algorithms.bc import BCConfig
from ray.rllib.algorithms.bc.torch.default_bc_torch_rl_module import DefaultBCTorchRLModule
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.config.loading import load_config
from rllib_configs.networks.registry import make_sampler
from rllib_configs.runners.sampling import UnitSampler, iteration_units
from rllib_configs.runners.unit_runner import UnitEnvRunner
from rllib_configs.worlds.panda.multi_agent import PandaMultiAgentEnv
from tune_jobs.benchmarks.measuring import Entry, Work, rate, rates

HIDDEN = 20
NUM_ENVS = (1, 16, 64, 256)
STEPS = 20  # of each environment between two results; 50 and 200 are not faster
AGENT_STEPS = 40  # the same of the environment of many agents
PRESET = "panda-small"
EPISODES = ("training.jobsets=16", "training.jobsets_per_unit=16", "training.episodes_per_jobset=4")
"""64 episodes of many agents side by side."""


@dataclass(frozen=True)
class Sampled:
    """What one entry samples: our runner for a preset, RLlib's in an environment."""

    name: str
    preset: str
    overrides: tuple[str, ...]
    environment: str
    shown: str  # what its observation is, flat


SAMPLED = (
    Sampled("sampling.deeprm_mlp", "deeprm", (), "DeepRM-v0", "the image"),
    Sampled("sampling.slot_scorer", "deeprm-ppo", (), "DeepRM-v0", "the image"),
    Sampled(
        "sampling.hpc",
        "hpc-smoke",
        (
            *("task.world.queue=64", "task.workload.jobs=256", "training.jobsets=16"),
            *("training.jobsets_per_unit=16", "training.episodes_per_jobset=8"),
        ),
        "HPC-v0",
        "the features of 64 waiting jobs and of the machine",
    ),
)


def measure(seconds: float) -> list[Entry]:
    """Measures ours against RLlib's runner, at its best number of environments."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.getLogger("ray").setLevel(logging.ERROR)
    best_of_rllib = cache(partial(_best_of_rllib, seconds=seconds / 4))
    entries = []
    try:
        with warnings.catch_warnings(action="ignore"):
            for sampled in SAMPLED:
                number, work = best_of_rllib(sampled.environment)
                ours, theirs = rates(unit_work(sampled.preset, *sampled.overrides), work, seconds)
                reference = (
                    f"RLlib's SingleAgentEnvRunner over {number} Gymnasium copies of "
                    f"{sampled.environment} (the best of {', '.join(map(str, NUM_ENVS))}) with "
                    f"{sampled.shown} and an MLP of {HIDDEN} units, measured here"
                )
                entries.append(
                    Entry(sampled.name, "decisions/s on one core", ours, reference, theirs)
                )
            ours, theirs = rates(unit_work(PRESET, *EPISODES), _work_of_rllib_agents(), seconds)
    finally:
        torch.set_num_threads(threads)
    reference = (
        "RLlib's MultiAgentEnvRunner with the same task as one environment, whose agents share an "
        f"MLP of {HIDDEN} units, measured here"
    )
    unit = "decisions of agents/s on one core"
    return [*entries, Entry("sampling.panda", unit, ours, reference, theirs)]


def unit_work(preset: str, *overrides: str) -> Work:
    """One unit of an iteration of a preset, sampled as training does it."""
    config = load_config(preset, ["resources.num_runners=0", *overrides])
    runner = UnitEnvRunner(config=algorithm_config(config), worker_index=0)
    weights = {name: np.array(value) for name, value in runner.module.get_state().items()}
    sample, policy = UnitSampler(config), make_sampler(config, weights)
    unit = iteration_units(config, 0)[0]

    def work() -> float:
        return float(sample(unit, policy).num_rows)

    return work


def _best_of_rllib(environment: str, seconds: float) -> tuple[int, Work]:
    """The number of environments with which RLlib's runner is fastest, and its work."""
    works = {num_envs: _work_of_rllib(environment, num_envs) for num_envs in NUM_ENVS}
    speeds = {}
    for num_envs, work in works.items():
        work()
        speeds[num_envs] = rate(work, seconds)
    best = max(speeds, key=lambda num_envs: speeds[num_envs])
    return best, works[best]


def _work_of_rllib(environment: str, num_envs: int) -> Work:
    """RLlib's runner, sampling a few steps of each environment at a time."""
    config = BCConfig().environment(partial(_make_env, environment)).framework("torch")
    config.env_runners(
        num_env_runners=0, num_envs_per_env_runner=num_envs, rollout_fragment_length=STEPS
    )
    config.rl_module(
        rl_module_spec=RLModuleSpec(
            module_class=DefaultBCTorchRLModule,
            model_config={"fcnet_hiddens": [HIDDEN], "fcnet_activation": "relu"},
        )
    )
    runner = SingleAgentEnvRunner(config=config)

    def work() -> float:
        episodes = runner.sample(num_timesteps=STEPS * num_envs, random_actions=False)
        runner.get_metrics()
        return float(sum(len(episode) for episode in episodes))

    return work


def _make_env(environment: str, context: Any) -> gym.Env[Any, Any]:
    """An environment with its observation as the flat float vector that RLlib's MLP takes."""
    env: gym.Env[Any, Any] = gym.wrappers.FlattenObservation(gym.make(environment))
    shape = env.observation_space.shape
    space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)
    return gym.wrappers.TransformObservation(env, lambda seen: seen.astype(np.float32), space)


def _work_of_rllib_agents() -> Work:
    """RLlib's runner of many agents, which share a module, in the environment of the same task."""
    env_config = {"task": load_config(PRESET).task.build()}
    config = PPOConfig().framework("torch").environment(PandaMultiAgentEnv, env_config=env_config)
    config.multi_agent(
        policies={"shared"}, policy_mapping_fn=lambda agent, episode, **kwargs: "shared"
    )
    config.env_runners(num_env_runners=0)
    config.rl_module(model_config={"fcnet_hiddens": [HIDDEN], "fcnet_activation": "relu"})
    runner = MultiAgentEnvRunner(config=config)

    def work() -> float:
        episodes = runner.sample(num_timesteps=AGENT_STEPS, random_actions=False)
        runner.get_metrics()
        return float(sum(episode.agent_steps() for episode in episodes))

    return work
