"""HPC's entries in the registries; needs neither Ray nor PyTorch."""

from typing import Literal

from rllib_configs.config.registries import (
    CONVERSIONS,
    NETWORKS,
    RANGES,
    ConditionOption,
    NetworkEntry,
)


class ScorerOptions(ConditionOption):
    """A score of each waiting job from a few features of it, of the queue and of the machine."""

    mode: Literal["strict", "skip", "easy"] = "easy"
    """Which jobs may start: only the first in order (strict), any that fits (skip), or any that
    does not delay the first (easy)."""
    run_times: Literal["user", "mixed"] = "user"
    """Run times that the scorer expects while jobs wait: those of the world (user), or half way
    between the users' estimates and what jobs that have ended took (mixed). Reservations go by the
    users' estimates."""
    bilinear: bool = False
    """Whether the weights of a job's features depend on the queue and the machine: 121 weights
    instead of 21."""


NETWORKS.register("hpc_scorer")(
    NetworkEntry(ScorerOptions, "rllib_configs.worlds.hpc.scorer:NETWORK", has_gradient=False)
)
RANGES.register("hpc")("rllib_configs.worlds.hpc.ranges:HPCRanges")
CONVERSIONS.register("hpc_scorer to set_scorer")(
    "rllib_configs.worlds.hpc.warm_start:as_set_scorer"
)
