"""From an experiment config to an RLlib algorithm, and from its results to plain metrics."""

import logging
from typing import Any

import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllib_configs.algorithms.batched import METRICS
from rllib_configs.registries import ALGORITHMS, found
from rllib_configs.schema import ExperimentConfig

# Loggers whose warnings say nothing that a user could act on: the new API stack is chosen on
# purpose, the deprecated calls are RLlib's own, and there is no GPU to watch.
_CHATTY = (
    "ray.rllib.algorithms.algorithm_config",
    "ray.tune.utils.util",
    "ray._common.deprecation",
)


def algorithm_config(config: ExperimentConfig) -> AlgorithmConfig:
    """RLlib's config of an experiment."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.ERROR)
    made: AlgorithmConfig = found(ALGORITHMS.get(config.training.algorithm).config)()
    made.experiment = config
    # No seed for RLlib: our algorithms draw from streams of their own, and a
    # seed would make each process import PyTorch's compiler, which takes two seconds.
    made.debugging(log_level="ERROR")
    # `UnitAlgorithm` starts the others: RLlib would wait for them without a limit.
    made.env_runners(num_env_runners=0, num_cpus_per_env_runner=1)
    made.learners(num_learners=0)  # in this process: it takes one step along a sum
    made.fault_tolerance(
        restart_failed_env_runners=True,
        ignore_env_runner_failures=False,
    )
    return made


def build_algorithm(config: ExperimentConfig) -> Algorithm:
    """Builds an algorithm on the Ray that the caller is connected to.

    Runners for which there is no CPU yet come in when there is one.

    Raises:
        InputError: if there are more runners than units of work.
    """
    config.require_units()
    torch.set_num_threads(1)  # batches are small; each process has one CPU
    return algorithm_config(config).build_algo()


def iteration_metrics(result: dict[str, Any]) -> dict[str, float]:
    """Picks the metrics of an iteration from RLlib's result, under flat and stable names."""
    ours = {name: float(value) for name, value in result[METRICS].items()}
    return dict(sorted(ours.items()))
