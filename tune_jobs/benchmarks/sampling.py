"""Decisions that a policy network samples in RLlib on one core: our runner against RLlib's own."""

import logging
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.algorithms.bc import BCConfig
from ray.rllib.algorithms.bc.torch.default_bc_torch_rl_module import DefaultBCTorchRLModule
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from rllib_configs.builders import algorithm_config
from rllib_configs.loading import load_config
from rllib_configs.networks import make_sampler
from rllib_configs.runners.sampling import UnitSampler, iteration_units
from rllib_configs.runners.unit_runner import UnitEnvRunner
from tune_jobs.benchmarks.agents import EPISODES, PRESET, rllib_agents
from tune_jobs.benchmarks.measuring import Entry, Work, rate, rates

HIDDEN = 20
NUM_ENVS = (1, 16, 64, 256)
STEPS = 20  # of each environment between two results; 50 and 200 are not faster


@dataclass(frozen=True)
class Sampled:
    """What one entry samples.

    Attributes:
        name: of the entry.
        preset: what our runner samples for.
        overrides: of the preset.
        environment: what RLlib's runner samples in, its observation flat.
        shown: what that observation is.
    """

    name: str
    preset: str
    overrides: tuple[str, ...]
    environment: str
    shown: str


SAMPLED = (
    Sampled("sampling.deeprm_mlp", "deeprm", (), "DeepRM-v0", "the image"),
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
    try:
        with warnings.catch_warnings(action="ignore"):
            return [*(_measure(sampled, seconds) for sampled in SAMPLED), _agents(seconds)]
    finally:
        torch.set_num_threads(threads)


def _measure(sampled: Sampled, seconds: float) -> Entry:
    best, work = best_of_rllib(sampled.environment, seconds / 4)
    ours, theirs = rates(batched_work(sampled.preset, *sampled.overrides), work, seconds)
    return Entry(
        sampled.name,
        "decisions/s on one core",
        ours,
        f"RLlib's SingleAgentEnvRunner over {best} Gymnasium copies of {sampled.environment} (the "
        f"best of {', '.join(map(str, NUM_ENVS))}) with {sampled.shown} and an MLP of {HIDDEN} "
        "units, measured here",
        theirs,
    )


def _agents(seconds: float) -> Entry:
    ours, theirs = rates(batched_work(PRESET, *EPISODES), rllib_agents(HIDDEN), seconds)
    return Entry(
        "sampling.panda",
        "decisions of agents/s on one core",
        ours,
        "RLlib's MultiAgentEnvRunner with the same task as one environment, whose agents share an "
        f"MLP of {HIDDEN} units, measured here",
        theirs,
    )


def batched_work(preset: str, *overrides: str) -> Work:
    """One unit of an iteration of a preset, sampled as training does it."""
    config = load_config(preset, ["resources.num_runners=0", *overrides])
    runner = UnitEnvRunner(config=algorithm_config(config), worker_index=0)
    weights = {name: np.array(value) for name, value in runner.module.get_state().items()}
    sample, policy = UnitSampler(config), make_sampler(config, weights)
    unit = iteration_units(config, 0)[0]

    def work() -> float:
        return float(sample(unit, policy).num_rows)

    return work


def best_of_rllib(environment: str, seconds: float) -> tuple[int, Work]:
    """The number of environments with which RLlib's runner is fastest, and its work."""
    found: dict[int, tuple[float, Work]] = {}
    for num_envs in NUM_ENVS:
        work = rllib_work(environment, num_envs)
        work()
        found[num_envs] = rate(work, seconds), work
    best = max(found, key=lambda num_envs: found[num_envs][0])
    return best, found[best][1]


def rllib_work(environment: str, num_envs: int) -> Work:
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


def _make_env(environment: str, context: Any) -> gym.Env:
    """An environment with its observation as the flat float vector that RLlib's MLP takes."""
    env: gym.Env = gym.wrappers.FlattenObservation(gym.make(environment))
    shape = env.observation_space.shape
    space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)
    return gym.wrappers.TransformObservation(env, lambda seen: seen.astype(np.float32), space)
