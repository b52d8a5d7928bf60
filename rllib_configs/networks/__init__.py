"""Policies as networks, chosen by name. Only what RLlib trains them with needs Ray."""

from rllib_configs.networks.registry import (
    Network,
    Weights,
    make_sampler,
    network_of,
    network_spec,
)

__all__ = ["Network", "Weights", "make_sampler", "network_of", "network_spec"]
