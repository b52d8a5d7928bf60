"""What ``training`` may say of the policy advisor; needs neither Ray nor PyTorch."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import field_validator

from rllib_configs.config.registries import (
    ALGORITHMS,
    CONVERSIONS,
    NETWORKS,
    Algorithm,
    NetworkEntry,
)
from rllib_configs.config.sections import Count, Positive, Section, Share, Width

if TYPE_CHECKING:
    from cluster_env.worlds.panda.world import Panda


class AdvisorOptions(Section):
    """Small actors whose weights an advisor makes from the specifications of their consumers."""

    hidden: Width = 16
    """Units of an actor's hidden layer."""
    actor: Literal["nodes", "plans"] = "nodes"
    """What an actor scores: each node by itself, with a hidden layer (nodes), or with 26 weights
    the sets of nodes that the supervisor proposes for its consumer (plans)."""
    advisor: Literal["tree", "flat", "unclustered", "none"] = "tree"
    """Structure of the advisor: units follow the dendrogram of the consumers (tree), all serve
    every specification (flat), or follow a tree without clustering (unclustered). none: no advisor,
    all agents share one actor."""
    classes: Count = 8
    """Largest number of leaves of the advisor's tree; a larger dendrogram is cut higher."""
    units: Width = 8
    """Units of the advisor per node of its tree. A flat advisor has as many in total as the tree
    has room for."""
    hybrid: Share = 0.0
    """Share of the clocks at which the static scheduler decides for all agents in the first
    iteration. It changes linearly to task.world.hybrid in the last one; 0: task.world.hybrid
    throughout."""

    if TYPE_CHECKING:
        iterations: int

    def world_at(self, world: "Panda", iteration: int | None) -> "Panda":
        """The world with the share of an iteration (PANDA, section 5: the hybrid approach).

        It depends on nothing else, so that runners and resumed runs have the same. Policies are
        measured in the task's own world, where the iteration is None.
        """
        if iteration is None or not self.hybrid:
            return world
        gone = min(iteration / max(self.iterations - 1, 1), 1.0)
        return replace(world, hybrid=(1.0 - gone) * self.hybrid + gone * world.hybrid)


class OfflineOptions(Section):
    """An advisor from records of consumers alone, with Adam; nothing is played in training."""

    @property
    def num_units(self) -> int:
        """There is one piece of work: all records."""
        return 1

    records: Path | None = None
    """Parquet file that `metasched.record` has written; runners on other machines need it in a
    shared folder. Relative paths start at the current directory."""
    steps: Count = 20
    """Gradient steps per iteration, each on 1,024 consumers."""
    sharpness: Positive = 1.0
    """How strongly better consumers count more: each counts exp(sharpness x advantage). The
    advantage is its reward above that in other episodes of the jobset, in standard deviations."""

    @field_validator("records")
    @classmethod
    def _make_records_absolute(cls, path: Path | None) -> Path | None:
        """Lets a run be resumed from elsewhere."""
        return None if path is None else path.expanduser().absolute()


ALGORITHMS.register("offline")(
    Algorithm(
        OfflineOptions,
        "meta.panda.offline_algorithm:OfflineConfig",
        prepare="meta.panda.offline:prepare",
    )
)
NETWORKS.register("policy_advisor")(
    NetworkEntry(AdvisorOptions, "meta.panda.entry:NETWORK", scores_items=False)
)
CONVERSIONS.register("policy_advisor to policy_advisor")("meta.panda.entry:begin_as_shared")
