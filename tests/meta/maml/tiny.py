"""A cluster and a network so small that finite differences over all parameters take a second."""

from dataclasses import replace

import numpy as np
import torch

from cluster_env.core.seeding import Split, episode_keys
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from meta.maml.decisions import Decisions, decisions_of
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from rllib_configs.runners.rollout import Rollouts, rollout

CLUSTER = Cluster((4, 4), 5, 3, 5)
WORLD = DeepRM(CLUSTER, max_time=60)


def tiny_rollouts(seed: int, objective: str = "slowdown", width: int = 3) -> Rollouts:
    """Two jobsets, three episodes each, by a network of random weights."""
    workload = BimodalWorkload(
        cluster=CLUSTER, load=0.9, window=8, small_duration=(1, 2), large_duration=(3, 4)
    )
    network = SetScorer(WORLD.feature_names, SetScorerOptions(width), seed)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    return rollout(
        WORLD,
        SetScorerSampler(network, weights, WORLD),
        sample_jobsets(workload, seed, Split.TRAIN, range(2)),
        get_objective(objective),
        3,
        episode_keys(seed, 0, count=6),
    )


def tiny_decisions(seed: int) -> Decisions:
    """In float64."""
    decisions = decisions_of(tiny_rollouts(seed), gamma=1.0, floor=0.03)
    return replace(
        decisions,
        log_probabilities=decisions.log_probabilities.astype(np.float64),
        advantages=decisions.advantages.astype(np.float64),
    )


def tiny_network(seed: int, width: int = 3) -> SetScorer:
    """In float64, whatever its features come in, with weights that all matter."""
    network = SetScorer(WORLD.feature_names, SetScorerOptions(width), seed).double()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += torch.from_numpy(rng.normal(0, 0.3, tuple(parameter.shape)))
    for layer in network.children():
        layer.register_forward_pre_hook(lambda _, given: tuple(x.double() for x in given))
    return network


def leaves(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies that gradients can be taken for."""
    return {name: value.detach().clone().requires_grad_() for name, value in tensors.items()}
