"""Utility accrual's entries in the registries; needs neither Ray nor PyTorch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from rllib_configs.config.registries import ALGORITHMS, NETWORKS, Algorithm, NetworkEntry
from rllib_configs.config.sections import Count, Positive, Section

One = Annotated[float, Field(ge=1, le=1)]


class StateValuesOptions(Section):
    """Values of server states, of each server its own; acts by their mean. For fuzzy_td alone."""

    values: Literal["rulebase", "network"] = "rulebase"
    """Form of the value function: the paper's eight fuzzy rules (rulebase) or a small neural
    network (network)."""


class FuzzyTDOptions(Section):
    """Average-reward TD(0) of each server by itself (Vengerov, section 3.4)."""

    iterations: Count = 25
    """Episodes per server; each begins with an empty server."""
    jobsets: Count = 50
    """Number of servers; in each iteration, every server learns from a jobset of its own."""
    episodes_per_jobset: Annotated[int, Field(ge=1, le=1)] = 1
    """Must be 1: a server processes each jobset once."""
    jobsets_per_unit: Count = 10
    """Servers that are simulated side by side, as one unit of work; results do not depend on it."""
    MORE_UNITS: ClassVar[str] = "set training.jobsets_per_unit lower"

    @property
    def num_units(self) -> int:
        """Pieces of work of an iteration."""
        return -(-self.jobsets // self.jobsets_per_unit)

    gamma: One = 1.0
    """Must be 1: an average reward is not discounted."""
    lr: Positive = 0.01
    """Initial learning rate of the parameters."""
    rho_rate: Annotated[float, Field(gt=0, le=1)] = 0.01
    """Initial learning rate of the average reward."""
    half: Positive = 300.0
    """Number of updates after which both learning rates have halved."""
    per_time: bool = False
    """Whether an update accounts for the time since the last one; the paper's does not."""


ALGORITHMS.register("fuzzy_td")(
    Algorithm(
        FuzzyTDOptions,
        "rllib_configs.worlds.accrual.fuzzy_td:FuzzyTDConfig",
        prepare="rllib_configs.worlds.accrual.state_values:prepare",
    )
)
NETWORKS.register("state_values")(
    NetworkEntry(StateValuesOptions, "rllib_configs.worlds.accrual.state_values:NETWORK")
)
