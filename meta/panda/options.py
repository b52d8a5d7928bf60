"""What ``training`` may say of the policy advisor; needs neither Ray nor PyTorch."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import field_validator

from rllib_configs.registries import ALGORITHMS, CONVERSIONS, NETWORKS, Algorithm, NetworkEntry
from rllib_configs.sections import Count, Positive, Section, Share, Width

if TYPE_CHECKING:
    from cluster_env.worlds.panda.world import Panda


class AdvisorOptions(Section):
    """Small actors whose weights an advisor makes from the specifications of their consumers."""

    hidden: Width = 16
    """Units of an actor's hidden layer."""
    actor: Literal["nodes", "plans"] = "nodes"
    """Whether an actor scores each node by itself, with a hidden layer, or the plans that the
    supervisor proposes, sets of nodes that would satisfy its consumer, with 26 weights."""
    advisor: Literal["tree", "flat", "unclustered", "none"] = "tree"
    """Whether the advisor's units follow the dendrogram of the consumers (trunk, branches and
    leaves, on where a specification belongs), are all on for every specification, follow a tree
    that no clustering has made, or there is no advisor, so that all agents share one actor."""
    classes: Count = 8
    """Leaves of the advisor's tree at most; a dendrogram with more is cut higher."""
    units: Width = 8
    """Units of the advisor for each node of the tree; a flat one has as many in all as a tree has
    room for."""
    hybrid: Share = 0.0
    """Share of the clocks at which the static scheduler decides for all agents in the first
    iteration; it goes evenly to the task's own share, task.world.hybrid, in the last one. 0 for the
    task's own from the beginning."""

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
    """Parquet file of records, as metasched record writes it; with runners on other machines, in a
    folder that all share. A relative path counts from where the config is made."""
    steps: Count = 20
    """Steps of an iteration, each on 1,024 consumers."""
    sharpness: Positive = 1.0
    """How much more the weights count that did well: each consumer's count exp(sharpness x its
    reward, in standard deviations above that in other episodes of the jobset)."""

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
