"""A network of one's own: a linear score of each item's features, and a number for void.

Known to every command with METASCHED_IMPORTS=own_network in the environment:
metasched train deeprm-ppo --set training.network=linear --set training.void=-1
"""

import torch
from torch import nn

from rllib_configs.config.registries import NETWORKS, NetworkEntry
from rllib_configs.config.sections import Section
from rllib_configs.networks.own import network_of_features


class LinearOptions(Section):
    """What ``training`` may say of it."""

    void: float = 0.0
    """Score of void at the start."""


class Linear(nn.Module):
    """Any PyTorch module from items and context to logits."""

    def __init__(self, training, world):
        super().__init__()
        self.score = nn.Linear(len(world.feature_names[0]), 1)
        self.void = nn.Parameter(torch.tensor([training.void]))

    def forward(self, items, context):
        scores = self.score(items).squeeze(2)
        return torch.cat([scores, self.void.expand(len(items), 1)], dim=1)


NETWORKS.register("linear")(NetworkEntry(LinearOptions, network_of_features(Linear)))
