"""A set scorer that begins as a bilinear scorer does mostly what that one does."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split, episode_keys
from meta.adaptation import untrained_policy
from rllib_configs.loading import load_config
from rllib_configs.networks.registry import network_of
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.policy_files import check_start, read_weights, starting_weights
from rllib_configs.runners.rollout import rollout
from rllib_configs.schema import ExperimentConfig
from rllib_configs.worlds.deeprm import imitation

NAME = "deeprm-operation"


def config_of(*overrides: str) -> ExperimentConfig:
    settings = ("task.world.rules=released", "task.workload.load=1.3", f"training.start={NAME}")
    return load_config("deeprm-ppo", [*settings, *overrides])


@pytest.fixture(scope="module")
def made() -> dict[str, np.ndarray]:
    config = config_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imitation, "JOBSETS", 15)
        return starting_weights(config, NAME, untrained_policy(config, 0).weights)


def test_most_decisions_are_those_of_the_scorer(made: dict[str, np.ndarray]) -> None:
    config = config_of()
    own = untrained_policy(config, 0).weights
    task, world = config.task.build(), config.task.world
    given, source = read_weights(NAME)
    theirs = network_of(source).sampler(source, given, world)
    jobsets = task.jobsets(Split.HELD_OUT, range(10))
    keys = episode_keys(0, Split.HELD_OUT, count=10)
    ours = network_of(config).sampler(config, made, world)
    states = rollout(world, ours, jobsets, task.objective, 1, keys).states
    states = states[world.features(states).allowed.sum(axis=1) > 1]
    wanted = theirs.logits(states).argmax(axis=1)
    before = network_of(config).sampler(config, own, world).logits(states).argmax(axis=1)
    after = ours.logits(states).argmax(axis=1)
    assert len(states) > 300
    assert np.mean(after == wanted) > 0.75 > 0.5 > np.mean(before == wanted)


def test_the_same_seed_gives_the_same_weights_and_leaves_a_critic_alone() -> None:
    config = config_of("training.critic=true")
    options = SetScorerOptions.of(config.training)
    state = SetScorer(config.task.world.feature_names, options, seed=0).state_dict()
    own = {f"network.{name}": value.numpy() for name, value in state.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imitation, "JOBSETS", 2)
        first, second = (starting_weights(config, NAME, own) for _ in range(2))
    assert {name: value.shape for name, value in first.items()} == {
        name: value.shape for name, value in own.items()
    }
    assert all(np.array_equal(first[name], second[name]) for name in own)
    same = {name for name in own if np.array_equal(first[name], own[name])}
    assert same == {name for name in own if "critic" in name}
    assert same


def test_what_cannot_be_is_refused_before_anything_is_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(imitation, "rollout")
    check_start(config_of(), NAME)
    with pytest.raises(InputError, match=r"a set_scorer with training\.conditioned_on"):
        check_start(load_config("deeprm-conditioned", [f"training.start={NAME}"]), NAME)
    hpc = load_config("hpc-smoke", [f"training.start={NAME}"])
    with pytest.raises(InputError, match="bilinear_scorer scores jobs of the world deeprm"):
        check_start(hpc, NAME)
