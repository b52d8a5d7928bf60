"""DeepRM's cluster as a world: its options, and what a network sees of it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import outputs, require_option_types, require_states
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.world import Features
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.features import (
    IDLE_PATIENCE,
    context_feature_names,
    slot_feature_names,
    write_allowed,
    write_context,
    write_slots,
)
from cluster_env.worlds.deeprm.rules import RULES, Rules
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
from cluster_env.worlds.deeprm.state import StateLayout

DEFAULT_MAX_TIME = 1000
LONGEST_TIME = 1_000_000_000


@dataclass(frozen=True)
class DeepRM:
    """One cluster with a horizon, in which decisions take no time (Mao et al., 2016, section 3).

    Attributes:
        cluster: resources, horizon, and what a policy sees of the queue.
        rules: ``paper``, ``released``, another name in `RULES`, or any `Rules`.
        max_time: clock after which an episode is truncated, in time steps, at least 1.
    """

    kind: ClassVar[str] = "deeprm"

    cluster: Cluster = field(default_factory=Cluster)
    rules: str | Rules = "paper"
    max_time: int = DEFAULT_MAX_TIME

    def __post_init__(self) -> None:
        require_option_types(self)
        if not 1 <= self.max_time <= LONGEST_TIME:
            raise InputError(
                f"max_time must lie in 1..{LONGEST_TIME}, but {self.max_time} was given"
            )
        if isinstance(self.rules, str):
            RULES.get(self.rules)
        else:  # two ways to say the same are equal, and configs hold the name
            named = [name for name in RULES.names() if RULES.get(name) == self.rules]
            object.__setattr__(self, "rules", named[0] if named else self.rules)

    @cached_property
    def switches(self) -> Rules:
        """The rules themselves, whether or not they have a name."""
        return RULES.get(self.rules) if isinstance(self.rules, str) else self.rules

    @cached_property
    def layout(self) -> StateLayout:
        """Where the parts of a state lie."""
        return StateLayout(self.cluster)

    @property
    def state_space(self) -> spaces.Box:
        """Bytes, see `StateLayout`."""
        return self.layout.space

    @property
    def num_actions(self) -> int:
        """One for each slot, and void."""
        return self.cluster.num_actions

    @cached_property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `cluster_env.worlds.deeprm.features`."""
        return slot_feature_names(self.cluster), context_feature_names(self.cluster)

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can run on the empty cluster and arrives before the end.

        Raises:
            InputError: if one cannot, or jobs may arrive after `max_time`.
        """
        self.cluster.check(jobset)
        self.check_window(jobset.window)

    def check_window(self, window: int) -> None:
        """Makes sure that episodes last as long as jobs may arrive.

        Raises:
            InputError: if jobs may arrive after `max_time`.
        """
        if self.max_time < window:
            raise InputError(
                f"max_time is {self.max_time}, but jobs may arrive for {window} steps; give more "
                f"than that, so that the last jobs can finish"
            )

    def simulator(self) -> DeepRMSimulator:
        """A new simulator, with nothing loaded."""
        return DeepRMSimulator(self)

    def features(self, states: NDArray[np.uint8], out: Features | None = None) -> Features:
        """What a network sees: the slots, the cluster, and the actions of the mask ``live``.

        Args:
            states: uint8 ``(n, state_size)``.
            out: written if given.

        Raises:
            InputError: if an array has the wrong shape or type.
        """
        require_states(states, self.state_space)
        n, (of_slot, of_context) = states.shape[0], map(len, self.feature_names)
        items, context, allowed = outputs(
            out,
            ((n, self.cluster.num_slots, of_slot), np.float32),
            ((n, of_context), np.float32),
            ((n, self.num_actions), np.bool_),
        )
        shape, try_last_start = self.layout.shape, self.switches.try_last_start
        write_slots(states, shape, try_last_start, items)
        write_context(states, shape, context)
        write_allowed(states, shape, try_last_start, 0, IDLE_PATIENCE, allowed)
        return Features(items, context, allowed)
