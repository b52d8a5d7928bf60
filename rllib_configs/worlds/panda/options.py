"""The entries of PANDA's world in the registries; needs neither Ray nor PyTorch."""

from rllib_configs.config.registries import NETWORKS, NetworkEntry
from rllib_configs.config.sections import Section


class PairOptions(Section):
    """A central score of pairs of a consumer and some nodes, from 26 numbers, for a search."""


NETWORKS.register("pair_scorer")(
    NetworkEntry(
        PairOptions,
        "rllib_configs.worlds.panda.scorer:NETWORK",
        scores_items=False,
        has_gradient=False,
    )
)
