"""Classes, conditions and gradients of a bilinear scorer, which `meta` adapts."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm import DeepRM
from rllib_configs.conditioned import ConditionedWorld
from rllib_configs.config.loading import load_config
from rllib_configs.networks.registry import network_of
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyLoss
from rllib_configs.policy_files import read_weights
from rllib_configs.worlds.deeprm.bilinear_weights import TOLD_GAIN
from tests.rllib_configs.worlds.test_deeprm_set_scorer import cluster_of, states_for

CONFIG = load_config("deeprm-maml-operation")
NETWORK = network_of(CONFIG)
CLUSTER = cluster_of(2)
WORLD = ConditionedWorld(DeepRM(CLUSTER), (("one", 0.5), ("two", -2.0)))
TEMPERATURE = CONFIG.training.draw_temperature


def drawn_weights(seed: int = 0) -> dict[str, np.ndarray]:
    network = NETWORK.scorer(CONFIG.training, WORLD.feature_names)
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(size=tuple(value.shape)).astype(np.float32)
        for name, value in network.state_dict().items()
    }


def logits_of(weights: dict[str, np.ndarray], states: np.ndarray) -> np.ndarray:
    sampler = NETWORK.scorer_sampler(CONFIG.training, weights, WORLD)
    return sampler.logits(states).astype(np.float64) / TEMPERATURE  # type: ignore[attr-defined]


def test_the_gradient_is_that_of_finite_differences_in_every_block() -> None:
    states = states_for(CLUSTER)
    weights = drawn_weights()
    logits = logits_of(weights, states)
    some = np.flatnonzero((logits > -1e8).sum(axis=1) > 1)[:40]
    states, logits = states[some], logits[some]
    rng = np.random.default_rng(1)
    actions = np.array([rng.choice(np.flatnonzero(row > -1e8)) for row in logits], np.int32)
    advantages = rng.normal(size=len(actions)).astype(np.float32)
    nothing = np.zeros(len(actions), np.float32)
    bounds = np.array([0, 15, len(actions)])
    network = NETWORK.scorer(CONFIG.training, WORLD.feature_names)
    flat = network.flat_form(WORLD)
    choices = Choices(flat.show(states), actions, nothing, advantages, bounds)
    vector = np.concatenate([weights[name].ravel() for name in flat.names])
    parts, entropy = flat.gradient(vector, choices, PolicyLoss(ratio=False))
    found = flat.by_name(parts.sum(axis=0))
    assert entropy > 0
    assert set(found) == {"job", "classes", "void", "told_features"}

    def loss(changed: dict[str, np.ndarray]) -> float:
        scores = logits_of(changed, states)
        rest = np.log(np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1))
        chosen = scores[np.arange(len(actions)), actions] - scores.max(axis=1) - rest
        return float(-(chosen * advantages).mean())

    for name, gradient in found.items():
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        step = 0.05
        ends = []
        for sign in (1, -1):
            moved = {key: value.copy() for key, value in weights.items()}
            moved[name][place] += sign * step
            ends.append(loss(moved))
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=0.05), name


def test_classes_and_conditions_move_the_scores_of_their_jobs() -> None:
    states, weights = states_for(CLUSTER), drawn_weights()
    before = logits_of(weights, states)
    moved = {name: value.copy() for name, value in weights.items()}
    constant = -1  # of the features of the state
    moved["classes"][1, constant] += TEMPERATURE
    gains = logits_of(moved, states) - before
    classes = states[:, DeepRM(CLUSTER).layout.classes]
    allowed = before[:, :-1] > -1e8
    assert np.allclose(gains[:, :-1][allowed], classes[allowed] == 1, atol=1e-4)
    assert set(classes[allowed].tolist()) == {0, 1}
    # What the scorer is conditioned on counts like a feature of the state with that value.
    told = {name: value.copy() for name, value in weights.items()}
    told["told_features"][-1, 1] += TEMPERATURE
    waits = before[:, -1] > -1e8
    gains = (logits_of(told, states) - before)[waits & allowed.any(axis=1), -1]
    assert np.allclose(gains, -2.0 * TOLD_GAIN, atol=1e-3)
    in_context = NETWORK.in_context(told, np.array([0.5, -2.0]))
    zero = replace(WORLD, condition=(("one", 0.0), ("two", 0.0)))
    sampler = NETWORK.scorer_sampler(CONFIG.training, in_context, zero)
    found = sampler.logits(states)  # type: ignore[attr-defined]
    assert np.allclose(found / TEMPERATURE, logits_of(told, states), rtol=1e-4, atol=1e-3)


def test_a_policy_without_classes_acts_the_same_with_room_for_them() -> None:
    weights, config = read_weights("deeprm-operation")
    world = DeepRM(CLUSTER)
    wide, more = network_of(config).widened(config, weights, world)
    assert np.array_equal(more["network.classes"], np.zeros((4, 9)))
    states = states_for(CLUSTER)
    own, room = (
        network_of(config).sampler(one, these, world).logits(states)
        for one, these in ((config, weights), (wide, more))
    )
    assert np.array_equal(own, room)
    with pytest.raises(InputError, match="was trained with 2 classes of jobs, but the world has 3"):
        network_of(config).shapes(wide, DeepRM(cluster_of(3)))


def test_derivatives_of_second_order_need_another_network() -> None:
    from rllib_configs.config.schema import prepare

    with pytest.raises(InputError, match="order=second needs the network set_scorer"):
        prepare(load_config("deeprm-maml-operation", ["training.order=second"]))
