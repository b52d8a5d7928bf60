"""The multilayer perceptron on an observation: Cunha's agents in the four formulations."""

import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns

from cluster_env.core.errors import InputError
from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import make_sampler
from rllib_configs.runners.episodes import spaces_of
from rllib_configs.runners.sampling import UnitSampler, iteration_units

SIZES = ("training.jobsets=2", "training.jobsets_per_unit=2", "training.episodes_per_jobset=2")


def module_of(config: ExperimentConfig):
    spec = algorithm_config(config).get_default_rl_module_spec()
    spec.observation_space, spec.action_space = spaces_of(config.task.world)
    return spec.build()


@pytest.mark.parametrize("observation", ["image", "compact"])
@pytest.mark.parametrize("reward", ["base", "sparse", "reduced", "options"])
def test_what_samples_and_what_learns_are_the_same_in_each_formulation(
    observation: str, reward: str
) -> None:
    settings = [f"task.world.reward={reward}", f"training.observation={observation}"]
    if reward != "base":
        settings.append("task.world.every_step=false")
    config = load_config("hpc-base", [*SIZES, "task.workload.window=9", *settings])
    module = module_of(config)
    weights = {name: np.array(value) for name, value in module.get_state().items()}
    sampler = make_sampler(config, weights)
    rollouts = UnitSampler(config)(iteration_units(config, 0)[0], sampler)
    states, world = rollouts.states, config.task.world
    allowed = world.features(states).allowed
    assert allowed[np.arange(len(states)), rollouts.actions].all()
    assert not rollouts.outcome["num_unfinished"].any()
    found = module.forward_train({Columns.OBS: torch.from_numpy(states)})
    assert torch.equal(found[Columns.ACTION_DIST_INPUTS], torch.from_numpy(sampler.logits(states)))
    shown, mask = module.observe(states)
    kept = module.forward_train({Columns.OBS: torch.from_numpy(shown), "allowed": mask})
    assert torch.equal(found[Columns.VF_PREDS], kept[Columns.VF_PREDS])
    assert np.array_equal(mask, allowed)


def test_numbers_of_an_observation_vary_alike() -> None:
    """Under random actions; the image stays as it is."""
    module = module_of(load_config("hpc-base", SIZES))
    mean, deviation = module.network.spread.numpy()
    assert (deviation >= 0.01).all()
    assert mean.min() >= 0
    assert mean.max() <= 1
    assert not hasattr(module_of(load_config("deeprm-a2c", SIZES)).network, "spread")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["task.world.horizon=0", "task.world.horizon_step=0"], "set task.world.horizon=20"),
        (["training.observation=features"], "take image or compact"),
        (["training.observation=imgae"], "did you mean 'image'"),
    ],
)
def test_observations_that_it_cannot_take_are_refused(changes: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        module_of(load_config("hpc-base", changes))
