"""From an experiment config to an RLlib algorithm, and from its results to plain metrics."""

from typing import Any

import torch
from ray.rllib.algorithms.algorithm import Algorithm

from rllib_configs.algorithms.batched import METRICS
from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.config.schema import ExperimentConfig


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
