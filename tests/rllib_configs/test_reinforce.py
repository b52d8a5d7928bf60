"""The algorithm on RLlib: same numbers however it is spread, resumed or disturbed."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.workloads import sample_jobsets
from rllib_configs.builders import build_algorithm
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.policies import learned_policy, save_policy
from rllib_configs.policy_files import load_policy
from rllib_configs.runners.sampling import iteration_units
from tests.rllib_configs.training import (
    assert_equal,
    assert_same_numbers,
    go_on_and_lose_a_runner,
    train,
)

pytestmark = pytest.mark.usefixtures("local_ray")


def config_of(*overrides: str) -> ExperimentConfig:
    """Six jobsets in three units."""
    sizes = ["training.jobsets=6", "training.jobsets_per_unit=2", "training.episodes_per_jobset=4"]
    return load_config("deeprm-smoke", [*sizes, *overrides])


def test_numbers_depend_neither_on_runners_nor_on_a_resume_nor_on_a_kill(tmp_path: Path) -> None:
    """Three units and two runners, one of which is killed."""
    weights, metrics = train(config_of(), 3, keep=tmp_path / "checkpoint")
    two = config_of("resources.num_runners=2")
    found, same = go_on_and_lose_a_runner(two, tmp_path / "checkpoint", 1)
    assert_equal(found, weights)
    assert_same_numbers(same, metrics[1:])


def test_more_runners_than_cpus_is_said_at_once() -> None:
    with pytest.raises(InputError, match="runners"):
        build_algorithm(config_of("resources.num_runners=64"))


def test_nothing_is_written_to_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """RLlib made a folder in ``~/ray_results``, and failed where it could not."""
    from ray.tune.trainable import trainable

    monkeypatch.setattr(trainable, "DEFAULT_STORAGE_PATH", "/dev/null/ray_results")
    algorithm = build_algorithm(config_of())
    assert algorithm.logdir is None
    algorithm.stop()


def test_saved_policy_acts_like_the_trained_one(tmp_path: Path) -> None:
    config = config_of()
    algorithm = build_algorithm(config)
    algorithm.train()
    save_policy(algorithm, config, tmp_path / "policy")
    trained = learned_policy(algorithm)
    algorithm.stop()
    loaded, found = load_policy(tmp_path)
    assert found == config
    world = config.task.world
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
