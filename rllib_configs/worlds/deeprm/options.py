"""DeepRM's entries in the registries; needs neither Ray nor PyTorch."""

from rllib_configs.config.registries import (
    NETWORKS,
    RANGES,
    ConditionOption,
    NetworkEntry,
)
from rllib_configs.config.sections import Count, Positive, Section, Width


class MLPOptions(Section):
    """DeepRM's network on the image."""

    hidden: Width = 20
    """Units per hidden layer."""
    since_column: bool = False
    """Whether the image shows the time since the last arrival, as in DeepRM's released code."""


class BilinearOptions(ConditionOption):
    """A score of each job from 144 numbers, for a search or to be adapted."""

    ahead: Count = 5
    """The network sees the units that are free now and this many time steps ahead."""
    books: bool = True
    """Whether jobs may be booked for later; their slots are then free for jobs of the backlog."""
    draw_temperature: Positive = 0.4
    """What scores are divided by where actions are drawn, which maml does. Lower values draw the
    action with the highest score more often; a search always takes it."""


NETWORKS.register("deeprm_mlp")(NetworkEntry(MLPOptions, "rllib_configs.worlds.deeprm.mlp:NETWORK"))
NETWORKS.register("bilinear_scorer")(
    NetworkEntry(
        BilinearOptions,
        "rllib_configs.worlds.deeprm.bilinear:NETWORK",
        scores_items=True,
        has_gradient=False,
        has_score_gradient=True,
    )
)
RANGES.register("deeprm")("rllib_configs.worlds.deeprm.ranges:DeepRMRanges")
