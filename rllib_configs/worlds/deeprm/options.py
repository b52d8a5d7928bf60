"""DeepRM's entries in the registries; needs neither Ray nor PyTorch."""

from rllib_configs.registries import (
    CONVERSIONS,
    FAST_PATHS,
    NETWORKS,
    PLAIN_EPISODES,
    RANGES,
    NetworkEntry,
)
from rllib_configs.sections import Count, Section, Width


class MLPOptions(Section):
    """DeepRM's network on the image."""

    hidden: Width = 20
    """Units of each hidden layer."""
    since_column: bool = False
    """Whether the image shows the time since the last arrival, as in the released code."""


class BilinearOptions(Section):
    """A score of each job from 144 numbers, for a search."""

    ahead: Count = 5
    """Time steps ahead of which the free units are looked at, beside those of now."""
    books: bool = True
    """Whether jobs may be booked for later, which frees their slots for jobs of the backlog."""


NETWORKS.register("deeprm_mlp")(NetworkEntry(MLPOptions, "rllib_configs.worlds.deeprm.mlp:NETWORK"))
NETWORKS.register("bilinear_scorer")(
    NetworkEntry(
        BilinearOptions, "rllib_configs.worlds.deeprm.bilinear:NETWORK", has_gradient=False
    )
)
CONVERSIONS.register("bilinear_scorer to set_scorer")(
    "rllib_configs.worlds.deeprm.imitation:as_set_scorer"
)
RANGES.register("deeprm")("rllib_configs.worlds.deeprm.ranges:DeepRMRanges")
PLAIN_EPISODES.register("deeprm")("rllib_configs.worlds.deeprm.plain:plain_episode")
FAST_PATHS.register("deeprm")("rllib_configs.worlds.deeprm.set_scorer:DeepRMFastPath")
