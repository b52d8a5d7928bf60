"""The entries of task graphs in the registries; needs neither Ray nor PyTorch."""

from rllib_configs.config.registries import NETWORKS, NetworkEntry
from rllib_configs.config.sections import Section


class StageScorerOptions(Section):
    """A score of each stage and a share of each job, from 11 numbers, for a search."""

    in_context: bool = False
    """Whether the numbers depend on the size of recent jobs and on how bursty they came, which
    makes them 33. Such a scorer can start from one without."""


NETWORKS.register("stage_scorer")(
    NetworkEntry(
        StageScorerOptions,
        "rllib_configs.worlds.graphs.scorer:NETWORK",
        scores_items=False,
        has_gradient=False,
    )
)
