"""Files of policies: what is written is read back, and what is broken is refused."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm import DeepRM
from rllib_configs.config.loading import load_config
from rllib_configs.config.registries import NETWORKS
from rllib_configs.networks.registry import make_sampler
from rllib_configs.networks.set_scorer import SetScorer, SetScorerOptions
from rllib_configs.policy_files import (
    LearnedPolicy,
    check_start,
    load_policy,
    read_weights,
    write_policy,
)

CONFIG = load_config("deeprm-ppo", ["training.skip_connection=true"])


def weights() -> dict[str, np.ndarray]:
    """Those that nobody trained, all of which matter."""
    options = SetScorerOptions.of(CONFIG.training)
    network = SetScorer(CONFIG.task.world.feature_names, options, 0)
    rng = np.random.default_rng(0)
    return {
        f"network.{name}": rng.normal(0, 0.3, tuple(value.shape)).astype(np.float32)
        for name, value in network.state_dict().items()
    }


def test_a_policy_acts_by_the_rules_of_the_world_that_it_is_put_in(tmp_path: Path) -> None:
    write_policy(weights(), CONFIG, tmp_path)
    paper, released = DeepRM(), DeepRM(rules="released")
    states = np.zeros((1, paper.layout.size), np.uint8)
    paper.layout.slots_of(states)[0, :2] = (paper.cluster.horizon, 1, 1), (2, 1, 1)
    policies = [load_policy(tmp_path, world=world)[0] for world in (None, paper, released)]
    trained, same, other = (policy.network.logits(states)[0] for policy in policies)
    assert np.array_equal(trained, same)
    assert trained[0] > -1e8  # as long as the horizon: its last start is now
    assert other[0] == np.float32(-1e9)
    assert other[1] > -1e8


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_whoever_reads_them(
    tmp_path: Path, value: float
) -> None:
    diverged = weights()
    diverged["network.mix.weight"][0, 0] = value
    write_policy(diverged, CONFIG, tmp_path)
    for read in (load_policy, read_weights, lambda path: check_start(CONFIG, path)):
        with pytest.raises(InputError, match=r"NaN or infinite \(network.mix.weight\), as after"):
            read(tmp_path)


def test_weights_of_another_width_are_refused_in_our_words(tmp_path: Path) -> None:
    wider = load_config("deeprm-ppo", ["training.hidden=9", "training.skip_connection=true"])
    plain = load_config("deeprm-ppo")
    for config, sentence in (
        (wider, r"its weights .*context.weight have the shape \(32, 43\), but .* needs \(9, 43\)"),
        (plain, r"it has weights network.skip, but the network of its config has none"),
    ):
        write_policy(weights(), config, tmp_path)
        with pytest.raises(InputError, match=rf"the policy in .* cannot be used: {sentence}"):
            load_policy(tmp_path)
    with pytest.raises(InputError, match="another network than this experiment"):
        check_start(wider, tmp_path)
    check_start(plain, tmp_path)  # a policy may have more than is asked for


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    given = weights()
    del given["network.score.bias"]
    write_policy(given, CONFIG, tmp_path)
    with pytest.raises(InputError, match=r"has weights network.score.bias, but it has none"):
        load_policy(tmp_path)


def test_deeprms_own_network_acts_on_its_cluster_alone_and_cannot_be_adapted() -> None:
    assert NETWORKS.get("set_scorer").scores_items
    assert not NETWORKS.get("deeprm_mlp").scores_items
    config = load_config("deeprm-smoke")
    other = load_config("deeprm-smoke", ["task.world.cluster.capacity=[8, 12]"]).task.world
    with pytest.raises(InputError, match="on the cluster alone that it was trained for"):
        make_sampler(config, {}, other)


def test_void_is_chosen_as_its_bias_says() -> None:
    class Network:
        def logits(self, states: np.ndarray) -> np.ndarray:
            return np.tile(np.array([0.0, 1.0, 1.5], np.float32), (len(states), 1))

        def sample(self, states: np.ndarray, uniforms: np.ndarray) -> None:
            raise NotImplementedError

    states, uniforms = np.zeros((2, 1), np.uint8), np.zeros(2)
    for bias, action in ((0.0, 2), (-0.4, 2), (-0.6, 1), (4.0, 2)):
        policy = LearnedPolicy("biased", Network(), "argmax", void_bias=bias)  # type: ignore[arg-type]
        assert policy.act(states, uniforms).tolist() == [action, action]
