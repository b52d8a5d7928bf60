"""The compiled set scorer computes what PyTorch does, row by row, and its gradient."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import functional_call

from cluster_env.core.world import Features
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from tests.rllib_configs.worlds.test_lookup_linear import states_of
from tests.waiting import run_python

CLUSTERS = [Cluster(), Cluster((6, 9, 4), 16, 4, 20, num_classes=3)]
WIDTH = 32  # which is compiled already, as that of the presets


def network_of(cluster: Cluster, *, critic: bool = False, double: bool = False) -> SetScorer:
    """A network all of whose weights matter, with a skip_connection on the second cluster."""
    options = SetScorerOptions(WIDTH, critic, skip_connection=cluster == CLUSTERS[1])
    network = SetScorer(DeepRM(cluster).feature_names, options, seed=1)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return network.double() if double else network


def varied_states(cluster: Cluster, count: int = 150) -> np.ndarray:
    """What a random policy meets, empty clusters, and clusters with one job in one slot."""
    layout = StateLayout(cluster)
    special = np.zeros((10, layout.size), np.uint8)
    layout.slots_of(special)[5:, cluster.num_slots // 2] = 1
    return np.ascontiguousarray(np.concatenate([states_of(cluster, count), special])[::-1])


def varied_features(cluster: Cluster, mask: str = "live") -> Features:
    """Under the usual mask, or one that allows empty slots and forbids all of some rows."""
    features = DeepRM(cluster).features(varied_states(cluster))
    if mask == "live":
        return features
    anything = np.random.default_rng(0).random(features.allowed.shape) < 0.5
    anything[:3] = False
    return features._replace(allowed=anything)


def of_rows(features: Features, rows: object) -> Features:
    return Features(*(array[rows] for array in features))


def loss_of(network: SetScorer, features: Features) -> torch.Tensor:
    """Something of which no part of either result can be left out."""
    logits, pooled = network.score_items(features)
    rows = torch.arange(logits.shape[0]).unsqueeze(1)
    loss = (torch.log_softmax(logits, 1) * torch.cos(rows + torch.arange(logits.shape[1]))).sum()
    if hasattr(network, "critic"):
        loss = loss + (network.value(pooled) * torch.sin(rows.squeeze(1))).sum()
    return loss


@pytest.mark.parametrize("mask", ["live", "anything"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_logits_are_those_of_double_precision(cluster: Cluster, mask: str) -> None:
    features = varied_features(cluster, mask)
    with torch.no_grad():
        logits, pooled = network_of(cluster).score_items(features)
        expected = network_of(cluster, double=True).score_items(features)
    assert ((logits == -1e9) == torch.from_numpy(~features.allowed)).all()
    assert torch.allclose(logits.double(), expected[0], rtol=1e-5, atol=1e-5)
    assert torch.allclose(pooled.double(), expected[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mask", ["live", "anything"])
@pytest.mark.parametrize("critic", [False, True])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_gradients_are_those_of_double_precision(
    cluster: Cluster, critic: bool, mask: str, compiled: bool
) -> None:
    features = varied_features(cluster, mask)
    network, exact = (network_of(cluster, critic=critic, double=double) for double in (False, True))
    network.compiled = compiled
    for each in (network, exact):
        loss_of(each, features).backward()
    expected = {name: parameter.grad for name, parameter in exact.named_parameters()}
    for name, parameter in network.named_parameters():
        found, largest = parameter.grad, expected[name].abs().max()
        assert largest > 0, name
        assert (found.double() - expected[name]).abs().max() < 2e-5 * largest, name


@pytest.mark.parametrize("change", ["one slot", "no row"])
def test_gradients_at_the_edges(change: str) -> None:
    cluster = Cluster(num_slots=1) if change == "one slot" else Cluster()
    features = of_rows(varied_features(cluster), slice(0 if change == "no row" else None))
    networks = network_of(cluster), network_of(cluster, double=True)
    for network in networks:
        logits, pooled = network.score_items(features)
        (logits.clamp(min=-1).sum() + pooled.sum()).backward()
    for found, expected in zip(*(network.parameters() for network in networks), strict=True):
        assert torch.allclose(found.grad.double(), expected.grad, rtol=1e-4, atol=1e-3)


def test_results_of_a_row_do_not_depend_on_the_others() -> None:
    cluster = Cluster()
    states, network, world = varied_states(cluster), network_of(cluster), DeepRM(cluster)
    features = world.features(states)
    whole = network.score_items(features)
    assert whole[0].requires_grad
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    sampler = SetScorerSampler(network_of(cluster), weights, world)
    open_rows = features.allowed.sum(axis=1) > 1
    order = np.random.default_rng(0).permutation(states.shape[0])
    for size in (1, 7, 64, states.shape[0]):
        for first in range(0, states.shape[0], size):
            part = order[first : first + size]
            with torch.no_grad():
                logits, pooled = network.score_items(of_rows(features, part))
            assert torch.equal(logits, whole[0][part])
            assert torch.equal(pooled, whole[1][part])
            drawn = sampler.logits(states[part])[open_rows[part]]
            assert np.array_equal(drawn, logits.numpy()[open_rows[part]])


def test_gradients_have_the_same_bits_again() -> None:
    features, network = varied_features(Cluster()), network_of(Cluster())
    first, second = (
        torch.autograd.grad(loss_of(network, features), list(network.parameters()))
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def stepped(network: SetScorer, features: Features, *, create_graph: bool) -> torch.Tensor:
    """The loss on some rows after a gradient step on others."""
    parameters = dict(network.named_parameters())
    some, others = (of_rows(features, slice(first, None, 2)) for first in (0, 1))
    inner = functional_call(network, parameters, (some,)).log_softmax(1)[:, -1].mean()
    slopes = torch.autograd.grad(inner, list(parameters.values()), create_graph=create_graph)
    after = {
        name: parameter - 0.1 * slope
        for (name, parameter), slope in zip(parameters.items(), slopes, strict=True)
    }
    return functional_call(network, after, (others,)).log_softmax(1)[:, -1].mean()


def test_gradients_at_parameters_that_are_results_of_a_step() -> None:
    features = varied_features(Cluster())
    features = of_rows(features, features.allowed.sum(axis=1) > 1)
    network, exact = network_of(Cluster()), network_of(Cluster(), double=True)
    for each in (network, exact):
        stepped(each, features, create_graph=False).backward()
    for found, expected in zip(network.parameters(), exact.parameters(), strict=True):
        scale = expected.grad.abs().max()
        assert (found.grad.double() - expected.grad).abs().max() < 1e-4 * scale


def test_functional_gradient() -> None:
    features, network = varied_features(Cluster()), network_of(Cluster())
    parameters = {name: value.detach() for name, value in network.named_parameters()}

    def loss(given: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional_call(network, given, (features,)).log_softmax(1)[:, -1].mean()

    found = torch.func.grad(loss)(parameters)
    network.compiled = False
    for name, expected in torch.func.grad(loss)(parameters).items():
        assert torch.allclose(found[name], expected, rtol=1e-4, atol=1e-6), name


def linear(network: SetScorer, features: Features) -> torch.Tensor:
    """Its gradient by the logits is constant, so nothing but the network knows of a second one."""
    return network(features)[:, -1].sum()


def curved(network: SetScorer, features: Features) -> torch.Tensor:
    return network(features).log_softmax(1)[:, -1].sum()


@pytest.mark.parametrize("loss", [linear, curved])
def test_second_derivatives_are_refused(
    loss: Callable[[SetScorer, Features], torch.Tensor],
) -> None:
    features, network = varied_features(Cluster()), network_of(Cluster())
    features = of_rows(features, features.allowed[:, -1])

    def second() -> torch.Tensor:
        parameters = list(network.parameters())
        slopes = torch.autograd.grad(loss(network, features), parameters, create_graph=True)
        squared = sum((slope**2).sum() for slope in slopes)
        return torch.autograd.grad(squared, network.job.weight)[0]

    with pytest.raises(RuntimeError, match="first derivatives only; set compiled = False"):
        second()
    with pytest.raises(RuntimeError, match="first derivatives only"):
        stepped(network, features, create_graph=True).backward()
    network.compiled = False
    assert second().abs().max() > 0


def test_weights_that_changed_since_are_noticed() -> None:
    network = network_of(Cluster())
    loss = linear(network, varied_features(Cluster()))
    with torch.no_grad():
        network.mix.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_broken_weight_is_not_hidden() -> None:
    network, features = network_of(Cluster()), varied_features(Cluster())
    with torch.no_grad():
        network.context.bias[3] = torch.nan
    logits = network(features)
    assert logits[logits != -1e9].isnan().all()
    logits.log_softmax(1).sum().backward()
    assert network.context.bias.grad[3].isnan()


def test_a_value_is_that_of_double_precision() -> None:
    features = varied_features(Cluster())
    network, exact = (network_of(Cluster(), critic=True, double=d) for d in (False, True))
    with torch.no_grad():
        found, expected = network.value_of(features), exact.value_of(features)
    assert torch.allclose(found.double(), expected, rtol=1e-5, atol=1e-5)


_SUMS = """
import os, sys
import numpy as np
from cluster_env.core.world import Features
from cluster_env.worlds.deeprm import DeepRM
from rllib_configs.networks.set_scorer.kernels import pack, scores
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
def say(width):
    rng = np.random.default_rng(0)
    slots, context = rng.random((5, 10, 13), np.float32), rng.random((5, 44), np.float32)
    network = SetScorer(DeepRM().feature_names, SetScorerOptions(width), 0)
    features = Features(slots, context, np.ones((5, 11), np.bool_))
    weights = [value.detach().numpy() for value in network.compiled_parameters()]
    logits, pooled = scores(pack(weights), features)
    print(width, float(np.abs(logits).sum()), float(np.abs(pooled).sum()), flush=True)
for widths in sys.argv[1:]:
    if not (child := os.fork()):
        for width in widths.split(","):
            say(int(width))
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.slow
def test_widths_from_the_cache_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process compiles one; the next finds it in the cache, and makes another of its own."""
    monkeypatch.setattr(sys, "argv", [""])
    exec(_SUMS, own := {})
    for width in (4, 32, 4):
        own["say"](width)
    done = run_python("-c", _SUMS, "4", "32,4", NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout == capsys.readouterr().out, done.stderr
