"""What a site is: its nodes, partitions, limits and calendar, in the terms of slurm.conf.

A `Site` is an option of the world `HPC`. Jobs refer to its parts by numbers: see `Site`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_option_types
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import LARGEST
from cluster_env.core.registry import unknown
from cluster_env.sites.parts import (
    LIMIT_KINDS,
    Limit,
    NodeGroup,
    Outage,
    Partition,
    as_tuples,
    hosts_of,
    require_once,
    require_range,
)
from cluster_env.sites.weights import Weights
from cluster_env.workloads.slurm.hosts import MOST_HOSTS

__all__ = ["Limit", "NodeGroup", "Outage", "Partition", "Site"]

RESOURCES = ("processors", "memory", "gpus")
PLACEMENTS = ("best", "order", "consecutive")
WHEN_NODE_FAILS = ("requeue", "lost")
MOST_FEATURES = 62
"""Features are bits of a job's int64 masks."""

_PARTS: dict[str, type[Any]] = {
    "nodes": NodeGroup,
    "partitions": Partition,
    "limits": Limit,
    "calendar": Outage,
    "not_simulated": str,
}

WEEK_S = 7 * 24 * 3600


@dataclass(frozen=True)
class Site:
    """A machine of several nodes, who may use which of them, and when they are there.

    Jobs have these attributes, one value each; where one is absent its default holds:

    =============  ================================================================================
    partition      place in `partitions`; by default `default_partition`
    qos            place in `qos_names`, the limits of kind ``qos``; -1 for none
    account        place in `account_names`; larger numbers are other accounts, -1 none
    user           place in `user_names`; larger numbers are other users
    nodes          exact number of nodes; 0 for as many as it takes
    exclusive      whether it has its nodes for itself, 0 or 1
    features       bits of `feature_names`, all of which its nodes need
    any_features   bits of `feature_names`, one of which its nodes need; 0 for none
    array          number of its array; -1 for none
    throttle       most jobs of its array that run at once; 0 for no limit
    job_id         a number that no other job of the log has
    after          `job_id` of the jobs that must have ended before; -1 for none
    after_ok       whether these must have succeeded, 0 or 1
    think_s        seconds from their end until it enters the queue
    failed         whether it ends in a failure, 0 or 1
    reservation    place in `calendar`; -1 for none
    =============  ================================================================================

    Attributes:
        nodes: the node groups, at least one.
        partitions: by default one of all nodes.
        limits: of QOS, accounts and users.
        calendar: outages and reservations.
        placement: ``best`` takes nodes with the fewest free processors first, ``order`` the first
            in the order of nodes, ``consecutive`` the tightest run of consecutive nodes, as Slurm
            does without a topology; all after their weights.
        when_node_fails: whether jobs on a failed node are run again (``requeue``) or ``lost``.
        half_life_s: in which the usage of users fades by half in the order `priority`.
        max_age_s: waiting time from which age gains nothing more there (PriorityMaxAge).
        most_bookings: waiting jobs that a pass books ahead, the first in the queue, as Slurm's
            bf_max_job_test; the others start only where they delay none of these. 0 books all, and
            refuses to play where there is no room for that many.
        rule: that the site plays, such as ``priority:conservative``; empty if nobody says it.
        weights: of the site in the order `priority`; none if nobody says them.
        not_simulated: what is known of the site, and is not simulated.

    Raises:
        InputError: for a name that nothing has, or a number out of range.
    """

    nodes: tuple[NodeGroup, ...]
    partitions: tuple[Partition, ...] = (Partition("all"),)
    limits: tuple[Limit, ...] = ()
    calendar: tuple[Outage, ...] = ()
    placement: str = "best"
    when_node_fails: str = "requeue"
    half_life_s: int = WEEK_S
    max_age_s: int = WEEK_S
    most_bookings: int = 0
    rule: str = ""
    weights: Weights | None = None
    not_simulated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, of in _PARTS.items():
            as_tuples(self, (name,), of)
        require_option_types(self)
        for name in ("nodes", "partitions"):
            if not getattr(self, name):
                raise InputError(f"a site needs {name}, at least one")
        if not isinstance(self.weights, Weights | None):
            raise InputError(
                f"weights must be a table of weights, but {shortened(repr(self.weights))} was given"
            )
        if self.placement not in PLACEMENTS:
            raise unknown("placement", self.placement, PLACEMENTS)
        if self.when_node_fails not in WHEN_NODE_FAILS:
            raise unknown("when_node_fails", self.when_node_fails, WHEN_NODE_FAILS)
        require_range(self, "a site", ("half_life_s", "max_age_s"), 1)
        require_range(self, "a site", ("most_bookings",), 0)
        require_once("partition", self.partition_names)
        for kind in LIMIT_KINDS:
            require_once(kind, self._limits(kind))
        self._check_nodes()
        for partition in self.partitions:
            self.indices(partition.nodes, f"the partition {partition.name}")
            if partition.qos and partition.qos not in self.qos_names:
                raise unknown(
                    f"QOS of the partition {partition.name}", partition.qos, self.qos_names
                )
        for outage in self.calendar:
            self.indices(outage.nodes, f"the outage {outage.name or f'at {outage.start:,}'}")

    def _check_nodes(self) -> None:
        count = sum(group.num_nodes for group in self.nodes)
        if count > MOST_HOSTS:
            raise InputError(f"a site has at most {MOST_HOSTS:,} nodes, but {count:,} were given")
        require_once("node", self.node_names)
        totals = zip(RESOURCES, self._all_units.sum(axis=0).tolist(), strict=True)
        for name, total in totals:
            if total > LARGEST:
                raise InputError(
                    f"a site has at most {LARGEST:,} units of {name}, but its nodes have {total:,}"
                )
        if len(self.feature_names) > MOST_FEATURES:
            raise InputError(
                f"a site has at most {MOST_FEATURES} features, but its nodes have "
                f"{len(self.feature_names)}"
            )

    @property
    def num_nodes(self) -> int:
        """Nodes of all groups."""
        return len(self.node_names)

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes, in the order of the groups."""
        return tuple(name for group in self.nodes for name in group.node_names)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Resources that any node has, processors first, as `HPC.resources`."""
        totals = zip(RESOURCES, self.totals, strict=True)
        return tuple(name for name, total in totals if total)

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """What each node has of each of `resources`, int64 ``(num_nodes, num_resources)``."""
        kept = [RESOURCES.index(name) for name in self.resources]
        return np.ascontiguousarray(self._all_units[:, kept])

    @cached_property
    def totals(self) -> tuple[int, int, int]:
        """Processors, memory and GPUs of all nodes."""
        processors, memory, gpus = self._all_units.sum(axis=0).tolist()
        return processors, memory, gpus

    @property
    def capacity(self) -> tuple[int, ...]:
        """Units of all nodes of each of `resources`, as `HPC.capacity`."""
        return tuple(total for total in self.totals if total)

    @cached_property
    def node_weights(self) -> NDArray[np.int64]:
        """Weight of each node, int64 ``(num_nodes,)``; lower ones are taken first."""
        return self._by_node([group.weight for group in self.nodes])

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Features of any node in the order of the alphabet: bit k of a mask is the k-th."""
        return tuple(sorted({name for group in self.nodes for name in group.features}))

    @cached_property
    def node_features(self) -> NDArray[np.int64]:
        """Features of each node as a bit mask, int64 ``(num_nodes,)``."""
        return self._by_node([self.feature_mask(group.features) for group in self.nodes])

    @cached_property
    def partition_names(self) -> tuple[str, ...]:
        """Names of the partitions."""
        return tuple(partition.name for partition in self.partitions)

    @cached_property
    def default_partition(self) -> int:
        """Place of the partition of jobs without one."""
        marked = [k for k, partition in enumerate(self.partitions) if partition.default]
        return marked[0] if marked else 0

    @cached_property
    def qos_names(self) -> tuple[str, ...]:
        """Names of the limits of kind ``qos``: a job's QOS is a place in it."""
        return self._limits("qos")

    @cached_property
    def account_names(self) -> tuple[str, ...]:
        """Accounts that have limits, then those that have reservations."""
        reserved = (name for outage in self.calendar for name in outage.accounts)
        return tuple(dict.fromkeys((*self._limits("account"), *reserved)))

    @cached_property
    def user_names(self) -> tuple[str, ...]:
        """Users that have limits, then those that have reservations."""
        reserved = (name for outage in self.calendar for name in outage.users)
        return tuple(dict.fromkeys((*self._limits("user"), *reserved)))

    def feature_mask(self, names: Iterable[str]) -> int:
        """Bits of some features.

        Raises:
            InputError: if no node has one.
        """
        mask = 0
        for name in names:
            if name not in self.feature_names:
                raise unknown("feature", name, self.feature_names)
            mask |= 1 << self.feature_names.index(name)
        return mask

    def node_set(
        self,
        partition: int,
        features: int = 0,
        any_features: int = 0,
        reservation: int = -1,
    ) -> NDArray[np.bool_]:
        """Which nodes a job may use, bool ``(num_nodes,)``.

        Args:
            partition: place in `partitions`.
            features: bits that its nodes need all of.
            any_features: bits that its nodes need one of; 0 for none.
            reservation: place in `calendar`; -1 for none.
        """
        nodes = self._partition_nodes[partition] & ((self.node_features & features) == features)
        if any_features:
            nodes = nodes & ((self.node_features & any_features) != 0)
        if reservation >= 0:
            nodes = nodes & self.outage_nodes[reservation]
        return np.asarray(nodes, np.bool_)

    def only(self, name: str) -> "Site":
        """The nodes of one partition and what holds for them, as if the others had no jobs.

        Raises:
            InputError: if there is no such partition.
        """
        if name not in self.partition_names:
            raise unknown("partition of the site", name, self.partition_names)
        place = self.partition_names.index(name)
        inside = self._partition_nodes[place]
        names = np.array(self.node_names)
        groups = []
        for group, places in zip(self.nodes, self._group_places.values(), strict=True):
            kept = names[places][inside[places]].tolist()
            whole = len(kept) == len(places)
            groups += [group if whole else replace(group, name=",".join(kept), count=1)] * any(kept)
        calendar = [
            replace(outage, nodes=tuple(names[mask & inside].tolist()))
            for outage, mask in zip(self.calendar, self.outage_nodes, strict=True)
            if (mask & inside).any()
        ]
        partition = replace(self.partitions[place], nodes=(), default=True)
        return replace(self, nodes=tuple(groups), partitions=(partition,), calendar=tuple(calendar))

    def without(self, resources: Collection[str]) -> "Site":
        """The same site where memory or GPUs do not count."""
        nothing: dict[str, Any] = dict.fromkeys(resources, 0)
        return replace(self, nodes=tuple(replace(group, **nothing) for group in self.nodes))

    @cached_property
    def outage_nodes(self) -> tuple[NDArray[np.bool_], ...]:
        """Nodes of each entry of the calendar, bool ``(num_nodes,)``."""
        return tuple(self._mask(outage.nodes, "an outage") for outage in self.calendar)

    def indices(self, names: Sequence[str], owner: str = "it") -> NDArray[np.int64]:
        """Places of nodes, rising, from names of groups or lists of hosts; all nodes for none.

        Raises:
            InputError: if the site has no such node; it names the owner.
        """
        if not names or any(name.upper() == "ALL" for name in names):
            return np.arange(self.num_nodes)
        places: set[int] = set()
        for name in names:
            places |= set(self._places_of(name, owner))
        return np.array(sorted(places), np.int64)

    def has_nodes(self, name: str) -> bool:
        """Whether a name of a group or a list of hosts names nothing but nodes of the site."""
        try:
            self.indices([name])
        except InputError:
            return False
        return True

    def _places_of(self, name: str, owner: str) -> Iterable[int]:
        if name in self._group_places:
            return self._group_places[name]
        hosts = hosts_of(name, owner)
        missing = next((host for host in hosts if host not in self._places), None)
        if missing is not None:
            raise InputError(
                f"{owner} has the node {shortened(missing)}, but the site's nodes are "
                f"{shortened(', '.join(group.name or 'n' for group in self.nodes))}"
            )
        return [self._places[host] for host in hosts]

    @cached_property
    def _partition_nodes(self) -> tuple[NDArray[np.bool_], ...]:
        return tuple(self._mask(partition.nodes, partition.name) for partition in self.partitions)

    def _mask(self, names: Sequence[str], owner: str) -> NDArray[np.bool_]:
        mask = np.zeros(self.num_nodes, np.bool_)
        mask[self.indices(names, owner)] = True
        return mask

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.node_names)}

    @cached_property
    def _group_places(self) -> dict[str, range]:
        found, first = {}, 0
        for group in self.nodes:
            found[group.name or "n"] = range(first, first + len(group.node_names))
            first += len(group.node_names)
        return found

    @cached_property
    def _all_units(self) -> NDArray[np.int64]:
        """Processors, memory and GPUs of each node, int64 ``(num_nodes, 3)``."""
        of_groups = [[getattr(group, name) for name in RESOURCES] for group in self.nodes]
        return self._by_node(of_groups)

    def _by_node(self, of_groups: Sequence[Any]) -> NDArray[np.int64]:
        counts = [len(group.node_names) for group in self.nodes]
        return np.repeat(np.array(of_groups, np.int64), counts, axis=0)

    def _limits(self, kind: str) -> tuple[str, ...]:
        return tuple(limit.name for limit in self.limits if limit.kind == kind)
