"""Decisions that a policy network samples in RLlib on one core: our runner against RLlib's own."""

import logging
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.algorithms.bc import BCConfig
from ray.rllib.algorithms.bc.torch.default_bc_torch_rl_module import DefaultBCTorchRLModule
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from cluster_env.envs.registration import register_environments
from rllib_configs.algorithms.batched import iteration_units
from rllib_configs.builders import algorithm_config
from rllib_configs.loading import load_config
from rllib_configs.runners.batched import BatchedEnvRunner, SampleRequest
from tune_jobs.benchmarks.measuring import Entry, Sample, Work, rate, rates

HIDDEN = 20
NUM_ENVS = (1, 16, 64, 256)
STEPS = 20  # of each environment between two results; 50 and 200 are not faster


def measure(seconds: float) -> list[Entry]:
    """Measures ours against RLlib's runner, at its best number of environments."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            best, work = best_of_rllib(seconds / 4)
            ours, theirs = rates(batched_work(), work, seconds)
    finally:
        torch.set_num_threads(threads)
    return [_entry(best, ours, theirs)]


def _entry(best: int, ours: Sample, theirs: Sample) -> Entry:
    return Entry(
        "sampling.deeprm_mlp",
        "decisions/s on one core",
        ours,
        f"RLlib's SingleAgentEnvRunner over {best} Gymnasium copies of DeepRM-v0 (the best of "
        f"{', '.join(map(str, NUM_ENVS))}) with the image and an MLP of {HIDDEN} units, measured "
        "here",
        theirs,
    )


def batched_work() -> Work:
    """One unit of an iteration of the preset ``deeprm``, in the runner that training uses."""
    config = load_config("deeprm", ["resources.num_runners=0"])
    runner = BatchedEnvRunner(config=algorithm_config(config), worker_index=0)
    weights = {name: np.array(value) for name, value in runner.module.get_state().items()}
    request = SampleRequest(tuple(iteration_units(config, 0)[:1]), weights, 0)

    def work() -> float:
        result = runner.sample(request=request)
        if result.error:
            raise RuntimeError(result.error)
        return float(sum(rollouts.num_rows for rollouts in result.answers.values()))

    return work


def best_of_rllib(seconds: float) -> tuple[int, Work]:
    """The number of environments with which RLlib's runner is fastest, and its work."""
    found: dict[int, tuple[float, Work]] = {}
    for num_envs in NUM_ENVS:
        work = rllib_work(num_envs)
        work()
        found[num_envs] = rate(work, seconds), work
    best = max(found, key=lambda num_envs: found[num_envs][0])
    return best, found[best][1]


def rllib_work(num_envs: int) -> Work:
    """RLlib's runner, sampling a few steps of each environment at a time."""
    config = BCConfig().environment(_make_env).framework("torch")
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


def _make_env(context: Any) -> gym.Env:
    """DeepRM with its image as the flat float vector that RLlib's MLP takes."""
    register_environments()
    env: gym.Env = gym.wrappers.FlattenObservation(gym.make("DeepRM-v0"))
    space = gym.spaces.Box(0, 1, env.observation_space.shape, np.float32)
    return gym.wrappers.TransformObservation(env, lambda image: image.astype(np.float32), space)
