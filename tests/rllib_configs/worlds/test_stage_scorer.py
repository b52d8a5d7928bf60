"""The scorer of stages, as a search finds it."""

from pathlib import Path

import numpy as np

from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import starting_weights, write_policy

SMALL = (
    *("task.world.executors=4", "task.workload.jobs=3", "training.iterations=2"),
    *("training.jobsets=1", "training.episodes_per_jobset=4", "training.validation_jobsets=1"),
)
SCORE, CONTEXT = "network.score", "network.told_context"


def config_with(*settings: str) -> ExperimentConfig:
    return load_config("graphs", [*SMALL, *settings])


def first_weights(config: ExperimentConfig) -> dict[str, np.ndarray]:
    start = network_of(config).model_config(config, config.task.world)["start"]
    return {name: value + np.float32(0.25) for name, value in start.items()}


def test_a_conditioned_scorer_starts_from_one_that_is_not(tmp_path: Path) -> None:
    plain = config_with()
    begin = first_weights(plain)
    write_policy(begin, plain, tmp_path)
    conditioned = config_with("training.in_context=true")
    own = {name: np.zeros_like(value) for name, value in first_weights(conditioned).items()}
    start = {**own, **starting_weights(conditioned, tmp_path, own)}
    assert start[SCORE].tolist() == begin[SCORE].tolist()
    assert start[CONTEXT].shape == (2, 11)
    assert not start[CONTEXT].any()
