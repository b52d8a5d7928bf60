"""The set scorer acts in DeepRM's world with the bits of its parts."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.networks.sampling import sample_actions
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from tests.rllib_configs.worlds.test_lookup_linear import states_of

WIDTH = 32  # which is compiled already, for as many steps, as that of the presets


def cluster_of(num_classes: int) -> Cluster:
    return Cluster((6, 9), 20, 4, 20, num_classes=num_classes)


def states_for(cluster: Cluster) -> NDArray[np.uint8]:
    """What a random policy meets, and idle clusters, the last of which may no longer wait."""
    layout = StateLayout(cluster)
    special = np.zeros((4, layout.size), np.uint8)
    layout.slots_of(special)[2:, 1] = 1
    special[3, layout.since] = 255
    states = np.concatenate([states_of(cluster, 200), special])
    shown = states[:, layout.classes]
    shown[:] = np.random.default_rng(1).integers(0, cluster.num_classes, shown.shape)
    return states


def network_of(
    cluster: Cluster, *, show_window: bool = False, skip_connection: bool = False
) -> SetScorer:
    """A network all of whose weights matter."""
    options = SetScorerOptions(WIDTH, show_window=show_window, skip_connection=skip_connection)
    network = SetScorer(DeepRM(cluster).feature_names, options, 1)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return network


def weights_of(network: SetScorer) -> dict[str, NDArray[np.float32]]:
    return {name: value.numpy() for name, value in network.state_dict().items()}


def sampler_of(network: SetScorer, world: DeepRM) -> SetScorerSampler:
    """A sampler with the weights of a network, in a network that had none."""
    empty = SetScorer(network.feature_names, network.options)
    return SetScorerSampler(empty, weights_of(network), world)


def composed_logits(
    network: SetScorer, world: DeepRM, states: NDArray[np.uint8]
) -> NDArray[np.float32]:
    """The logits of the network, 0 for the only action of a row, -1e9 for what is forbidden."""
    features = world.features(states)
    with torch.no_grad():
        logits = network.score_items(features)[0].numpy().copy()
    alone = features.allowed.sum(axis=1) == 1
    logits[alone] = np.where(features.allowed[alone], np.float32(0), np.float32(-1e9))
    return logits


def same_bits(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# Classes and the window come together: one compilation for each kind of array takes seconds.
@pytest.mark.parametrize("batch", [1, 40])
@pytest.mark.parametrize("rules", ["paper", "released"])
@pytest.mark.parametrize(
    ("num_classes", "skip_connection", "show_window"),
    [(1, False, False), (1, True, False), (3, False, True), (3, True, True)],
)
def test_bits_are_those_of_the_parts(
    num_classes: int, rules: str, skip_connection: bool, show_window: bool, batch: int
) -> None:
    world = DeepRM(cluster_of(num_classes), rules)
    states = states_for(world.cluster)
    network = network_of(world.cluster, show_window=show_window, skip_connection=skip_connection)
    sampler = sampler_of(network, world)
    num_open = world.features(states).allowed.sum(axis=1)
    assert {1, 2, 3} <= set(num_open.tolist())
    uniforms = np.random.default_rng(0).random(len(states))
    for first in range(0, len(states), batch):
        part = slice(first, first + batch)
        logits = composed_logits(network, world, states[part])
        actions, log_probabilities = sample_actions(logits, uniforms[part])
        drawn = sampler.sample(states[part], uniforms[part])
        assert same_bits(sampler.logits(states[part]), logits)
        assert same_bits(drawn[0], actions)
        assert same_bits(drawn[1], log_probabilities)


def last_start_only(world: DeepRM) -> NDArray[np.uint8]:
    """Three states in which the job in slot 1 is as long as it can be: the horizon or one less.

    It fits now in the first, which is its last start if it lasts as long as the horizon; in the
    second nothing is free now, and the job of one step less fits at its last start alone; in the
    third it could start earlier.
    """
    states = np.zeros((3, world.layout.size), np.uint8)
    jobs, occupied = world.layout.slots_of(states), world.layout.occupied_of(states)
    horizon = world.cluster.horizon
    jobs[:, 0], jobs[:, 1, 1:] = 1, 1
    jobs[:, 1, 0] = (horizon, horizon - 1, horizon - 2)
    occupied[1:, 0] = world.cluster.capacity
    states[:, world.layout.window] = 50
    return states


def test_the_rules_of_the_acting_world_say_what_can_start() -> None:
    """The released code never tries the last start, so a job that fits nowhere else must wait."""
    paper, released = (DeepRM(cluster_of(1), rules) for rules in ("paper", "released"))
    states, network = last_start_only(paper), network_of(cluster_of(1))
    logits = {world.rules: sampler_of(network, world).logits(states) for world in (paper, released)}
    allowed = {rules: found[:, 1] > -1e8 for rules, found in logits.items()}
    assert allowed["paper"].tolist() == [True, False, False]
    assert allowed["released"].tolist() == [False, False, False]
    later = released.feature_names[0].index("starts_later")
    shown = {world.rules: world.features(states).items[:, 1, later] for world in (paper, released)}
    assert shown["paper"].tolist() == [0, 1, 1]
    assert shown["released"].tolist() == [0, 0, 1]
    differs = (logits["paper"] != logits["released"]).any(axis=1)
    assert differs.tolist() == [True, False, False]  # the other rows leave no choice


def test_states_that_are_a_view_or_cannot_be_written() -> None:
    states = states_for(cluster_of(1))
    sampler = sampler_of(network_of(cluster_of(1)), DeepRM(cluster_of(1)))
    expected = sampler.logits(states)
    assert same_bits(sampler.logits(np.asfortranarray(states)), expected)
    states.flags.writeable = False
    assert same_bits(sampler.logits(states), expected)
    assert sampler.logits(states[:0]).shape == (0, cluster_of(1).num_actions)


def test_a_sampler_acts_when_it_comes_out_of_a_store_that_cannot_be_written() -> None:
    """As a policy does that Ray's object store brings to a runner."""
    states = states_for(cluster_of(1))
    sampler = sampler_of(network_of(cluster_of(1)), DeepRM(cluster_of(1)))
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(sampler, protocol=5, buffer_callback=buffers.append)
    arrived = pickle.loads(data, buffers=[bytes(buffer) for buffer in buffers])
    assert same_bits(arrived.logits(states), sampler.logits(states))


def test_states_of_another_cluster_are_refused() -> None:
    sampler = sampler_of(network_of(cluster_of(1)), DeepRM(cluster_of(1)))
    states = states_for(replace(cluster_of(1), num_slots=5))
    for act in (sampler.logits, lambda given: sampler.sample(given, np.zeros(len(given)))):
        with pytest.raises(InputError, match="states of this world"):
            act(states)
