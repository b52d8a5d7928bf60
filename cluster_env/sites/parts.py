"""The parts of a site: groups of nodes, partitions, limits, outages; see `description`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

from cluster_env.core.checks import require_option_types
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import LARGEST
from cluster_env.core.registry import unknown
from cluster_env.workloads.slurm.hosts import MOST_HOSTS, host_names, num_hosts

T = TypeVar("T")

LIMIT_KINDS = ("qos", "account", "user")
OUTAGE_KINDS = ("planned", "failure", "reservation")


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that are alike, a line ``NodeName``.

    Attributes:
        name: a list of hosts such as ``n[01-04]``, or a word: nodes are then called ``word1`` to
            ``wordN``, or only by the word where `count` is 1. By default ``n``.
        count: number of nodes; a list of hosts has its own.
        processors: of each node.
        memory: MiB of each node; 0 where memory is not counted.
        gpus: of each node.
        features: which jobs can ask for.
        weight: nodes of lower weight are taken first.
    """

    name: str = ""
    count: int = 1
    processors: int = 1
    memory: int = 0
    gpus: int = 0
    features: tuple[str, ...] = ()
    weight: int = 1

    def __post_init__(self) -> None:
        as_tuples(self, ("features",))
        require_option_types(self)
        what = f"the nodes {shortened(self.name) or 'without a name'}"
        require_range(self, what, ("count",), 1, MOST_HOSTS)
        require_range(self, what, ("processors",), 1)
        require_range(self, what, ("memory", "gpus", "weight"), 0)
        if self.count > 1 and self._num_listed not in (1, self.count):
            raise InputError(
                f"{what}: the list has {self._num_listed:,} hosts, but the count is {self.count:,}"
            )

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """Names of its nodes."""
        hosts = self._hosts
        if self.count == 1 or len(hosts) > 1:
            return hosts
        return tuple(f"{hosts[0]}{number}" for number in range(1, self.count + 1))

    @property
    def num_nodes(self) -> int:
        """How many nodes it has, without names for them."""
        return max(self.count, self._num_listed)

    @cached_property
    def _num_listed(self) -> int:
        return named_hosts(num_hosts, self.name or "n", "the nodes")

    @cached_property
    def _hosts(self) -> tuple[str, ...]:
        return hosts_of(self.name or "n", "the nodes")


@dataclass(frozen=True)
class Partition:
    """A line ``PartitionName``.

    Attributes:
        name: as jobs have it.
        nodes: names of node groups, or lists of hosts such as ``n[1-4]``; by default all nodes.
        max_time_s: longest estimate of its jobs; 0 for no limit.
        min_nodes: fewest nodes of a job; 0 for no limit.
        max_nodes: most nodes of a job; 0 for no limit.
        tier: PriorityTier: jobs of a higher tier are looked at first.
        priority: PriorityJobFactor.
        exclusive: whether jobs have nodes for themselves (OverSubscribe=EXCLUSIVE).
        qos: the partition's QOS, whose limits hold beside those of a job's own; empty for none.
        default: whether jobs without a partition belong to it; else the first one.
        available: whether its jobs may start (State=UP).
    """

    name: str
    nodes: tuple[str, ...] = ()
    max_time_s: int = 0
    min_nodes: int = 0
    max_nodes: int = 0
    tier: int = 1
    priority: int = 1
    exclusive: bool = False
    qos: str = ""
    default: bool = False
    available: bool = True

    def __post_init__(self) -> None:
        as_tuples(self, ("nodes",))
        require_option_types(self)
        what = f"the partition {shortened(self.name) or 'without a name'}"
        if not self.name:
            raise InputError("a partition needs a name")
        names = ("max_time_s", "min_nodes", "max_nodes", "tier", "priority")
        require_range(self, what, names, 0)
        if 0 < self.max_nodes < self.min_nodes:
            raise InputError(
                f"{what} has min_nodes {self.min_nodes:,}, above its max_nodes {self.max_nodes:,}"
            )


@dataclass(frozen=True)
class Limit:
    """Limits of a QOS, an account or a user; 0 is no limit.

    Attributes:
        name: of the QOS, account or user.
        kind: ``qos``, ``account`` or ``user``.
        priority: of a QOS, in the order `priority`.
        max_time_s: longest estimate of a job (MaxWall).
        jobs: jobs that run at once (GrpJobs).
        processors: processors that all its jobs hold at once (GrpTRES=cpu).
        gpus: likewise.
        memory: likewise, in MiB.
        nodes: likewise.
        jobs_per_user: jobs of one user that run at once (MaxJobsPU).
        processors_per_user: MaxTRESPU=cpu.
        gpus_per_user: MaxTRESPU=gres/gpu.
        memory_per_user: MaxTRESPU=mem, in MiB.
        nodes_per_user: MaxTRESPU=node.
        jobs_per_account: jobs of one account that run at once (MaxJobsPA).
        processors_per_account: MaxTRESPA=cpu.
        gpus_per_account: MaxTRESPA=gres/gpu.
        memory_per_account: MaxTRESPA=mem, in MiB.
        nodes_per_account: MaxTRESPA=node.
        processors_per_job: MaxTRES=cpu.
        gpus_per_job: MaxTRES=gres/gpu.
        nodes_per_job: MaxTRES=node.
    """

    name: str
    kind: str = "qos"
    priority: int = 0
    max_time_s: int = 0
    jobs: int = 0
    processors: int = 0
    gpus: int = 0
    memory: int = 0
    nodes: int = 0
    jobs_per_user: int = 0
    processors_per_user: int = 0
    gpus_per_user: int = 0
    memory_per_user: int = 0
    nodes_per_user: int = 0
    jobs_per_account: int = 0
    processors_per_account: int = 0
    gpus_per_account: int = 0
    memory_per_account: int = 0
    nodes_per_account: int = 0
    processors_per_job: int = 0
    gpus_per_job: int = 0
    nodes_per_job: int = 0

    def __post_init__(self) -> None:
        require_option_types(self)
        if not self.name:
            raise InputError("a limit needs the name of a QOS, an account or a user")
        if self.kind not in LIMIT_KINDS:
            raise unknown("kind of limit", self.kind, LIMIT_KINDS)
        numbers = [entry.name for entry in fields(self) if entry.name not in ("name", "kind")]
        require_range(self, f"the {self.kind} {shortened(self.name)}", numbers, 0)


@dataclass(frozen=True)
class Outage:
    """Nodes that jobs cannot have for a time, or that only some jobs can have.

    Attributes:
        start: seconds of the log's clock.
        end: likewise; nodes are there again.
        nodes: names of node groups, or lists of hosts; by default all nodes.
        kind: ``planned`` keeps jobs off whose estimates reach into it; ``failure`` comes without
            warning, and ends what runs there; ``reservation`` is for its own jobs alone.
        name: of the reservation.
        known_from: seconds of the log's clock from which jobs are kept off; by default ever.
        users: who may use the reservation.
        accounts: whose users may use the reservation.
    """

    start: int
    end: int
    nodes: tuple[str, ...] = ()
    kind: str = "planned"
    name: str = ""
    known_from: int = 0
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        as_tuples(self, ("nodes", "users", "accounts"))
        require_option_types(self)
        if self.kind not in OUTAGE_KINDS:
            raise unknown("kind of outage", self.kind, OUTAGE_KINDS)
        if self.end <= self.start:
            raise InputError(
                f"an outage must end after its start, but {shortened(self.name) or 'one'} lasts "
                f"from {self.start:,} to {self.end:,}"
            )


def as_tuples(options: Any, names: Iterable[str], kind: type[Any] = str) -> None:
    """Lists become tuples, so that a description can be hashed; a word is a list of one.

    Raises:
        InputError: if a field holds anything else than a list of a kind.
    """
    for name in names:
        value = getattr(options, name)
        listed = (value,) if isinstance(value, kind) else value
        is_list = isinstance(listed, list | tuple)
        if not is_list or not all(isinstance(one, kind) for one in listed):
            what = "names" if kind is str else f"tables of the options of a {kind.__name__.lower()}"
            raise InputError(
                f"{name} must be a list of {what}, but {shortened(repr(value))} was given"
            )
        object.__setattr__(options, name, tuple(listed))


def require_range(
    options: Any, what: str, names: Iterable[str], least: int, most: int = LARGEST
) -> None:
    """Refuses numbers outside of a range.

    Raises:
        InputError: if one is; it says of what.
    """
    for name in names:
        if not least <= getattr(options, name) <= most:
            raise InputError(
                f"{what}: {name} must be {least:,} to {most:,}, but {getattr(options, name):,} was "
                f"given"
            )


def require_once(what: str, names: Sequence[str]) -> None:
    """Refuses a name that two things have.

    Raises:
        InputError: if there is one.
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the {what} {shortened(twice)} is described twice")


def hosts_of(text: str, owner: str) -> tuple[str, ...]:
    """Names in a list of hosts.

    Raises:
        InputError: if it is none; it names the owner.
    """
    return named_hosts(host_names, text, owner)


def named_hosts(read: Callable[[str], T], text: str, owner: str) -> T:
    """What is read from a list of hosts; see `hosts_of`."""
    try:
        return read(text)
    except ValueError as error:
        raise InputError(f"{owner}: {error}, but '{shortened(text)}' was given") from None
