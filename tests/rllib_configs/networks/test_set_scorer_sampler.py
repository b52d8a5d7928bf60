"""The sampler's one compiled call gives the bits of the parts that it is made of."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.masks import live_mask
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.networks.sampling import sample_actions
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from tests.rllib_configs.worlds.test_lookup_linear import states_of

WIDTH = 8


def cluster_of(num_classes: int) -> Cluster:
    return Cluster((6, 9), 16, 4, 20, num_classes=num_classes)


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


def network_of(cluster: Cluster, *, shows_window: bool, skip_connection: bool) -> SetScorer:
    """A network all of whose weights matter."""
    network = SetScorer(
        cluster, WIDTH, 1, shows_window=shows_window, skip_connection=skip_connection
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return network


def sampler_of(network: SetScorer) -> SetScorerSampler:
    """A sampler with the weights of a network, in a network that had none."""
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    options = {"shows_window": network.shows_window, "skip_connection": bool(network.skip_names)}
    return SetScorerSampler(SetScorer(network.layout.cluster, WIDTH, None, **options), weights)


def composed_logits(network: SetScorer, states: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The logits of the network, 0 for the only action of a row, -1e9 for what is forbidden."""
    allowed = live_mask(states, network.layout)
    with torch.no_grad():
        logits = network.score_slots(states, allowed)[0].numpy().copy()
    alone = allowed.sum(axis=1) == 1
    logits[alone] = np.where(allowed[alone], np.float32(0), np.float32(-1e9))
    return logits


def same_bits(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("batch", [1, 40])
@pytest.mark.parametrize("shows_window", [False, True])
@pytest.mark.parametrize("skip_connection", [False, True])
@pytest.mark.parametrize("num_classes", [1, 3])
def test_bits_are_those_of_the_parts(
    num_classes: int, skip_connection: bool, shows_window: bool, batch: int
) -> None:
    states = states_for(cluster_of(num_classes))
    network = network_of(
        cluster_of(num_classes), shows_window=shows_window, skip_connection=skip_connection
    )
    sampler = sampler_of(network)
    num_open = live_mask(states, network.layout).sum(axis=1)
    assert {1, 2, 3} <= set(num_open.tolist())
    uniforms = np.random.default_rng(0).random(len(states))
    for first in range(0, len(states), batch):
        part = slice(first, first + batch)
        logits = composed_logits(network, states[part])
        actions, log_probabilities = sample_actions(logits, uniforms[part])
        drawn = sampler.sample(states[part], uniforms[part])
        assert same_bits(sampler.logits(states[part]), logits)
        assert same_bits(drawn[0], actions)
        assert same_bits(drawn[1], log_probabilities)


def test_codes_that_are_a_view_or_cannot_be_written() -> None:
    states = states_for(cluster_of(1))
    sampler = sampler_of(network_of(cluster_of(1), shows_window=False, skip_connection=False))
    expected = sampler.logits(states)
    assert same_bits(sampler.logits(np.asfortranarray(states)), expected)
    states.flags.writeable = False
    assert same_bits(sampler.logits(states), expected)
    assert sampler.logits(states[:0]).shape == (0, cluster_of(1).num_actions)


def test_codes_of_another_cluster_are_refused() -> None:
    sampler = sampler_of(network_of(cluster_of(1), shows_window=False, skip_connection=False))
    states = states_for(replace(cluster_of(1), num_slots=5))
    for act in (sampler.logits, lambda given: sampler.sample(given, np.zeros(len(given)))):
        with pytest.raises(InputError, match="states of this cluster"):
            act(states)
