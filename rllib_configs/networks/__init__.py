"""Policies as networks, chosen by name. Only what RLlib trains them with needs Ray."""

from rllib_configs.networks.registry import (
    Network,
    Shapes,
    Weights,
    make_sampler,
    network_of,
    require_shapes,
)

__all__ = [
    "Network",
    "Shapes",
    "Weights",
    "make_sampler",
    "network_of",
    "require_shapes",
]
