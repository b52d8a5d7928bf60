"""The algorithm on RLlib: same numbers however it is spread, resumed or disturbed."""

import time
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.workloads import sample_jobsets
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.loading import load_config
from rllib_configs.policies import learned_policy, load_policy, save_policy
from rllib_configs.runners.sampling import iteration_units
from rllib_configs.schema import ExperimentConfig
from tests.rllib_configs.dying import end_in_unit
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("local_ray")


def config_of(*overrides: str) -> ExperimentConfig:
    """Six jobsets in three units."""
    sizes = ["training.jobsets=6", "training.jobsets_per_unit=2", "training.episodes_per_jobset=4"]
    return load_config("deeprm-smoke", [*sizes, *overrides])


def train(config: ExperimentConfig, iterations: int) -> tuple[dict, list[dict]]:
    """Weights after some iterations, and the metrics of each."""
    algorithm = build_algorithm(config)
    try:
        metrics = [iteration_metrics(algorithm.train()) for _ in range(iterations)]
        return module_weights(algorithm), metrics
    finally:
        algorithm.stop()


@pytest.fixture(scope="module")
def reference(local_ray: None) -> tuple[dict, list[dict]]:
    """Three iterations in the driver alone."""
    return train(config_of(), 3)


def assert_equal(found: dict, expected: dict) -> None:
    """Bit for bit."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.array_equal(found[name], value), name


def test_number_of_runners_changes_no_number(reference: tuple[dict, list[dict]]) -> None:
    """Two, with two units and one; a single one resumes below."""
    weights, metrics = train(config_of("resources.num_runners=2"), 3)
    assert_equal(weights, reference[0])
    for found, expected in zip(metrics, reference[1], strict=True):
        for name in ("train/return_mean", "train/slowdown", "train/entropy", "total/decisions"):
            assert found[name] == expected[name], name


def test_resumed_run_ends_with_the_same_weights(
    tmp_path: Path, reference: tuple[dict, list[dict]]
) -> None:
    first = build_algorithm(config_of())
    first.train()
    first.save_to_path(tmp_path / "checkpoint")
    first.train()  # goes on after the checkpoint, which must not show below
    first.stop()
    second = build_algorithm(config_of("resources.num_runners=1"))
    second.restore_from_path(tmp_path / "checkpoint")
    metrics = [iteration_metrics(second.train()) for _ in range(2)]
    weights = module_weights(second)
    second.stop()
    assert_equal(weights, reference[0])
    assert metrics[-1]["train/return_mean"] == reference[1][-1]["train/return_mean"]
    assert metrics[-1]["total/decisions"] == reference[1][-1]["total/decisions"]


def test_runner_killed_while_it_samples_costs_no_more_than_time() -> None:
    units = "training.jobsets=8"  # four units, two for each runner
    expected, _ = train(config_of(units), 2)
    algorithm = build_algorithm(config_of(units, "resources.num_runners=2"))
    try:
        algorithm.train()
        end_in_unit(algorithm, 2)
        metrics = iteration_metrics(algorithm.train())
        assert metrics["workers/healthy"] == 1
        assert_equal(module_weights(algorithm), expected)
        deadline = time.monotonic() + PATIENCE_S
        while metrics["workers/healthy"] < 2 and time.monotonic() < deadline:
            metrics = iteration_metrics(algorithm.train())
        assert metrics["workers/restarts"] == 1
        assert metrics["workers/healthy"] == 2
    finally:
        algorithm.stop()


def test_more_runners_than_cpus_is_said_at_once() -> None:
    with pytest.raises(InputError, match="runners"):
        build_algorithm(config_of("resources.num_runners=64"))


def test_saved_policy_acts_like_the_trained_one(tmp_path: Path) -> None:
    config = config_of()
    algorithm = build_algorithm(config)
    algorithm.train()
    save_policy(algorithm, config, tmp_path / "policy")
    trained = learned_policy(algorithm)
    algorithm.stop()
    loaded, found = load_policy(tmp_path)
    assert found == config
    world = config.task.build_world()
    jobsets = sample_jobsets(config.task.build_workload(), 0, Split.VALIDATION, range(3))
    schedules = [evaluate(policy, jobsets, world) for policy in (trained, loaded)]
    assert np.array_equal(schedules[0].start, schedules[1].start)

    weights = tmp_path / "policy" / "weights.pt"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InputError, match="broken"):
        load_policy(tmp_path)
    with pytest.raises(InputError, match="no trained policy"):
        load_policy(tmp_path / "elsewhere")


def test_units_cover_the_jobsets_and_fresh_ones_never_repeat() -> None:
    fixed, fresh = config_of(), config_of("training.fresh_jobsets=true")
    seen = [i for unit in iteration_units(fixed, 7) for i in unit.jobsets]
    assert seen == list(range(6))
    drawn = [i for k in range(3) for unit in iteration_units(fresh, k) for i in unit.jobsets]
    assert drawn == list(range(18))
