"""Values that are fitted to a stage explain what its returns differ in."""

import hashlib

import numpy as np

from cluster_env.core.seeding import Split, episode_keys
from cluster_env.core.world import World
from meta.maml.values import fitted_values
from meta.tasks import TaskSplit, get_distribution
from rllib_configs.config.loading import load_config
from rllib_configs.learning.advantages import advantages_by_clock
from rllib_configs.networks.registry import network_of
from rllib_configs.runners.rollout import Rollouts, rollout
from tests.waiting import run_python


def played() -> tuple[World, Rollouts]:
    """A world, and what an untrained policy does in two jobsets of it."""
    config = load_config("deeprm-maml-operation")
    task = TaskSplit(get_distribution("priorities"), 0, Split.VALIDATION).task(0)
    network = network_of(config).scorer(config.training, task.world.feature_names, 0)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    sampler = network_of(config).scorer_sampler(config.training, weights, task.world)
    jobsets = task.jobsets(Split.TRAIN, range(2))
    keys = episode_keys(0, Split.TRAIN, 0, count=20)
    return task.world, rollout(task.world, sampler, jobsets, task.objective, 10, keys)


def test_values_explain_most_of_what_a_discounted_return_differs_in() -> None:
    world, rollouts = played()
    values = fitted_values(world, rollouts, 0.9, "time_unit")
    # At the same time of the same jobset, states differ in value nearly as their returns do.
    places = (rollouts.row, rollouts.time, rollouts.row_jobset)
    nothing = np.zeros(rollouts.num_rows)
    returns, _ = advantages_by_clock(rollouts.rewards, nothing, *places, 0.9, 1.0, "time_unit")
    moments = rollouts.row_jobset[rollouts.row] * 10_000 + rollouts.time
    _, moment = np.unique(moments, return_inverse=True)
    count = np.bincount(moment)
    centered = [each - (np.bincount(moment, each) / count)[moment] for each in (values, returns)]
    assert np.corrcoef(*centered)[0, 1] > 0.6


def digest() -> str:
    values = fitted_values(*played(), 0.9, "time_unit")
    return hashlib.sha256(values.tobytes()).hexdigest()


def test_no_bit_depends_on_the_number_of_cores_or_on_how_the_library_multiplies() -> None:
    told = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "OPENBLAS_CORETYPE": "Prescott"}
    done = run_python("-c", f"from {__name__} import digest; print(digest())", **told)
    assert done.stdout.strip() == digest(), done.stderr
