"""The looked-up layer is the dense layer on the image, and so are its gradients."""

import numpy as np
import pytest
import torch

from cluster_env.core.seeding import Split, episode_keys
from cluster_env.core.spec import get_heuristic
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.image import image
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.networks.sampling import sample_actions
from rllib_configs.runners.rollout import rollout
from rllib_configs.worlds.deeprm.lookups import LookupLayout
from rllib_configs.worlds.deeprm.mlp import DeepRMSampler
from rllib_configs.worlds.deeprm.module import DeepRMModule, LookupLinear

CLUSTERS = [
    Cluster(),
    Cluster(capacity=(6, 9, 4), horizon=16, num_slots=4, backlog_view=20),
]


class Sampler:
    """A heuristic with the interface of a learned policy."""

    def __init__(self, cluster: Cluster) -> None:
        self.policy = get_heuristic("random", DeepRM(cluster))

    def sample(self, states, uniforms):
        return self.policy.act(states, uniforms), np.zeros(states.shape[0], np.float32)


def states_of(cluster: Cluster, count: int) -> np.ndarray:
    """States that a random policy meets."""
    workload = BimodalWorkload(load=1.2, cluster=cluster)
    jobsets = sample_jobsets(workload, 0, Split.TRAIN, range(8))
    rollouts = rollout(
        DeepRM(cluster),
        Sampler(cluster),
        jobsets,
        get_objective("slowdown"),
        4,
        episode_keys(0, 1, count=32),
    )
    return rollouts.states[np.linspace(0, rollouts.num_rows - 1, count).astype(int)]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("since_column", [False, True])
def test_layer_and_gradients_equal_the_dense_layer(cluster: Cluster, since_column: bool) -> None:
    layout = StateLayout(cluster)
    lookup_layout = LookupLayout(layout, since_column)
    rows = 2000
    states = states_of(cluster, rows)
    torch.manual_seed(0)
    weight = (torch.randn(lookup_layout.num_inputs, 20) * 0.1).requires_grad_()
    bias = torch.randn(20, requires_grad=True)
    upstream = torch.randn(rows, 20)

    pixels = torch.from_numpy(image(layout, states)).reshape(rows, -1).double()
    if since_column:
        since = torch.from_numpy(np.minimum(states[:, layout.since], 10) / 10)
        pixels = torch.cat([pixels, since[:, None].expand(-1, cluster.horizon)], dim=1)
    dense_weight = weight.detach().double().requires_grad_()
    dense_bias = bias.detach().double().requires_grad_()
    dense = pixels @ dense_weight + dense_bias
    dense.backward(upstream.double())

    lookups = torch.from_numpy(lookup_layout.lookups(states))
    looked_up = LookupLinear.apply(weight, bias, lookups, lookup_layout)
    looked_up.backward(upstream)

    assert torch.allclose(looked_up.double(), dense, rtol=0, atol=1e-5)
    for found, expected in ((weight.grad, dense_weight.grad), (bias.grad, dense_bias.grad)):
        scale = expected.abs().max()
        assert torch.allclose(found.double() / scale, expected / scale, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("since_column", "expected"), [(False, 89_451), (True, 89_851)])
def test_network_has_the_papers_number_of_parameters(since_column: bool, expected: int) -> None:
    config = {"world": DeepRM(), "hidden": 20, "seed": 0, "since_column": since_column}
    module = DeepRMModule(model_config=config)
    assert sum(parameter.numel() for parameter in module.parameters()) == expected


def test_sampler_is_the_module() -> None:
    module = DeepRMModule(model_config={"world": DeepRM(), "hidden": 20, "seed": 5})
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    weights = {name: value.detach().numpy() for name, value in module.named_parameters()}
    states = states_of(Cluster(), 500)
    with torch.no_grad():
        expected = module._forward({"obs": torch.from_numpy(states)})["action_dist_inputs"]
    assert np.allclose(
        DeepRMSampler(module.lookup_layout, weights).logits(states),
        expected.numpy(),
        rtol=0,
        atol=1e-4,
    )


def test_same_seed_same_weights_and_other_seed_other_weights() -> None:
    def first_weight(seed: int) -> torch.Tensor:
        config = {"world": DeepRM(), "hidden": 20, "seed": seed}
        return DeepRMModule(model_config=config).hidden_weight

    assert torch.equal(first_weight(1), first_weight(1))
    assert not torch.equal(first_weight(1), first_weight(2))


def test_sampled_actions_follow_the_softmax() -> None:
    logits = np.tile(np.array([[0.5, -1.0, 2.0]], np.float32), (20_000, 1))
    uniforms = (np.arange(20_000) + 0.5) / 20_000
    actions, log_probabilities = sample_actions(logits, uniforms)
    expected = np.exp(logits[0]) / np.exp(logits[0]).sum()
    assert np.allclose(np.bincount(actions) / 20_000, expected, atol=1e-4)
    assert np.allclose(log_probabilities, np.log(expected)[actions], atol=1e-6)
