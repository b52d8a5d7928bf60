"""Short trainings, and what must be the same of two, however each was run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.schema import ExperimentConfig
from tests.rllib_configs.dying import end_in_round

Trained = tuple[dict[str, Any], list[dict[str, Any]]]
"""Weights after the last iteration, and the metrics of each."""


def train(config: ExperimentConfig, iterations: int, *, keep: Path | None = None) -> Trained:
    """Trains from the first weights on.

    Args:
        config: of the experiment.
        iterations: how many.
        keep: where to write a checkpoint before the last two.
    """
    algorithm = build_algorithm(config)
    metrics = []
    try:
        for k in range(iterations):
            if keep is not None and k == iterations - 2:
                algorithm.save_to_path(keep)
            metrics.append(iteration_metrics(algorithm.train()))
        return module_weights(algorithm), metrics
    finally:
        algorithm.stop()


def go_on_and_lose_a_runner(config: ExperimentConfig, checkpoint: Path, number: int) -> Trained:
    """Two iterations after a checkpoint, in the second of which a runner is killed.

    Args:
        config: of the experiment.
        checkpoint: folder.
        number: of the round that it is killed in, see `end_in_round`.
    """
    algorithm = build_algorithm(config)
    try:
        algorithm.restore_from_path(checkpoint)
        metrics = [iteration_metrics(algorithm.train())]
        end_in_round(algorithm, number)
        metrics.append(iteration_metrics(algorithm.train()))
        assert metrics[-1]["workers/healthy"] == config.resources.num_runners - 1
        return module_weights(algorithm), metrics
    finally:
        algorithm.stop()


def assert_equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Weights of the same names, bit for bit."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.array_equal(found[name], value), name


def assert_same_numbers(
    found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]
) -> None:
    """All metrics but times and workers."""
    for row, wanted in zip(found, expected, strict=True):
        names = [name for name in wanted if not name.startswith(("time/", "workers/"))]
        assert {name: row[name] for name in names} == {name: wanted[name] for name in names}
