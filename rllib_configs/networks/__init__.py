"""Policies as networks, chosen by name. Only what RLlib trains them with needs Ray."""

import rllib_configs.networks.set_scorer
import rllib_configs.worlds  # noqa: F401  both enter their networks
from rllib_configs.networks.registry import (
    NETWORKS,
    Network,
    Weights,
    make_sampler,
    network_spec,
)

__all__ = ["NETWORKS", "Network", "Weights", "make_sampler", "network_spec"]
