"""A site at one moment, read from outside: its jobs, its nodes, and what a policy would start now.

Times are Unix times in seconds, lengths are seconds, memory is in MiB.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cluster_env.core.errors import InputError, shortened

RUNNING, WAITING, HELD, BLOCKED = "running", "waiting", "held", "blocked"
"""States of a job. ``waiting``: the site starts it as soon as it can. ``held``: somebody has to
release it first. ``blocked``: it may not start now, whatever is free (a dependency, a limit)."""

RESOURCES = ("processors", "memory", "gpus")


@dataclass(frozen=True, slots=True)
class SiteJob:
    """A job that runs or waits.

    Attributes:
        job: its number at the site, as it is named in commands.
        state: ``running``, ``waiting``, ``held`` or ``blocked``.
        reason: why it does not run, in the site's words.
        user: whose it is.
        partition: where it may run.
        eligible: since when it waits for nothing but room; if that is not known, its submission.
        start: when it started; 0 if it has not.
        limit: seconds after which it is killed; 0 for no limit.
        processors: that it asks for, as the next two, in all.
        memory: MiB; 0 where the site does not count it.
        gpus: GPUs.
        nodes: on how many nodes at least.
        priority: as the site ranks it.
        expected: when the site itself expects to start it (squeue --start); 0 if it does not say.
        account: that it is charged to.
        qos: its quality of service.
        features: that its nodes need, as the site writes it (``a100&ib``).
        reservation: whose nodes it is to have.
        array: of which it is an element; empty for none.
        throttle: elements of its array that may run at once; 0 for no limit.
        node_list: on which it runs.
        exclusive: whether it has its nodes for itself.
        nodes_named: that it must have, as the site writes them.
        special: what else it asks for that no site's description says, in words between "; ".
    """

    job: str
    state: str
    reason: str
    user: str
    partition: str
    eligible: int
    start: int
    limit: int
    processors: int
    memory: int
    gpus: int
    nodes: int = 1
    priority: int = 0
    expected: int = 0
    account: str = ""
    qos: str = ""
    features: str = ""
    reservation: str = ""
    array: str = ""
    throttle: int = 0
    node_list: str = ""
    exclusive: bool = False
    nodes_named: str = ""
    special: str = ""

    @property
    def demand(self) -> tuple[int, int, int]:
        """Units of each of `RESOURCES`."""
        return self.processors, self.memory, self.gpus


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A node on which jobs can start: what it has, and what is free there.

    Attributes:
        name: of the node.
        processors: that it has, as the next two.
        memory: MiB.
        gpus: GPUs.
        free_processors: that no job holds, as the next two.
        free_memory: MiB.
        free_gpus: GPUs.
        partitions: to which it belongs, with commas; empty if that is not known.
        features: that it has, with commas.
    """

    name: str
    processors: int
    memory: int
    gpus: int
    free_processors: int
    free_memory: int
    free_gpus: int
    partitions: str = ""
    features: str = ""

    @property
    def free(self) -> tuple[int, int, int]:
        """Free units of each of `RESOURCES`."""
        return self.free_processors, self.free_memory, self.free_gpus


@dataclass(frozen=True)
class Snapshot:
    """A site at one moment.

    Attributes:
        time: when it was read.
        jobs: that run or wait.
        nodes: that take jobs; drained ones and those that do not answer are left out.
        unreadable: rows of the site's answer that could not be read, and are left out.
        restrictions: partitions, limits and reservations, by the names of a site's description;
            None where they are not known, and any job may have any node.
    """

    time: int
    jobs: tuple[SiteJob, ...]
    nodes: tuple[SiteNode, ...]
    unreadable: int = 0
    restrictions: Mapping[str, Any] | None = None

    def in_state(self, *states: str) -> tuple[SiteJob, ...]:
        """The jobs in any of some states."""
        return tuple(job for job in self.jobs if job.state in states)

    def in_order(self) -> "Snapshot":
        """The same with jobs and nodes by name, each once, so that equal states look equal."""
        jobs = {job.job: job for job in self.jobs}
        nodes = {node.name: node for node in self.nodes}
        return replace(
            self,
            jobs=tuple(jobs[name] for name in sorted(jobs)),
            nodes=tuple(nodes[name] for name in sorted(nodes)),
        )

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it: rows of values in the order of the fields."""
        return {
            "time": self.time,
            "unreadable": self.unreadable,
            "jobs": [_row(job) for job in self.jobs],
            "nodes": [_row(node) for node in self.nodes],
            **({} if self.restrictions is None else {"restrictions": self.restrictions}),
        }

    @classmethod
    def from_plain(cls, data: Any) -> "Snapshot":
        """The snapshot that `to_plain` was made of.

        Raises:
            InputError: if the data are none.
        """
        try:
            jobs = tuple(_typed(SiteJob, row) for row in data["jobs"])
            nodes = tuple(_typed(SiteNode, row) for row in data["nodes"])
            restrictions = data.get("restrictions")
            if restrictions is not None and not isinstance(restrictions, dict):
                raise ValueError("restrictions are no names with values")
            return cls(int(data["time"]), jobs, nodes, int(data["unreadable"]), restrictions)
        except (KeyError, TypeError, ValueError) as error:
            text = shortened(f"{type(error).__name__}: {error}")
            raise InputError(f"a state of a site cannot be read ({text})") from None


@dataclass(frozen=True)
class Queue:
    """What a policy decides on: what is free, what runs, and what may start.

    Attributes:
        time: now.
        free: units of each of `RESOURCES`.
        running: jobs that hold what is not free.
        waiting: jobs that may start, in any order.
        max_wait: seconds after which a job that waits is overdue: it goes first, and has room
            reserved; 0 for what the policy's own world says.
    """

    time: int
    free: tuple[int, int, int]
    running: tuple[SiteJob, ...]
    waiting: tuple[SiteJob, ...]
    max_wait: int = 0


@dataclass(frozen=True)
class StartTime:
    """When a waiting job starts, in Unix time.

    Attributes:
        job: its number.
        expected: as the site itself says (squeue --start); 0 if it does not.
        plan: by the users' estimates under the policy, if nothing arrives.
        at: in 5, 25, 50, 75 and 95 % of the cases no later than this, as foreseen; None where it
            cannot be foreseen at all.
        latest: guaranteed by the bound on waits under its assumptions; None without one.
        not_simulated: what the job asks for and the simulation lacks, in words.
    """

    job: str
    expected: int
    plan: int
    at: tuple[int, int, int, int, int] | None
    latest: int | None
    not_simulated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Advice:
    """What a policy would do.

    Attributes:
        starts: jobs that it would start now, in its order.
        planned: when it expects to start each of the others, if nothing else is submitted and all
            jobs run to their limits; those of which it cannot be said are left out.
        scores: of the waiting jobs, by which they are ordered, lower first; empty if the policy has
            none.
    """

    starts: tuple[str, ...]
    planned: Mapping[str, int]
    scores: Mapping[str, float] = field(default_factory=dict)


Adviser = Callable[[Queue], Advice]


_OLDEST = {SiteJob: 13, SiteNode: 7}
"""Values of the rows of the oldest records; those that others lack are as the defaults say."""

_LEAST = {SiteJob: 14, SiteNode: 7}
"""Values that every row has now; after them, those that nothing is known of are left out."""


def _row(entry: SiteJob | SiteNode) -> list[Any]:
    values = [getattr(entry, name) for name in entry.__slots__]  # astuple copies, ten times as slow
    while len(values) > _LEAST[type(entry)] and values[-1] in ("", 0):
        values.pop()
    return values


def _typed(made: type[Any], row: Sequence[Any]) -> Any:
    entries = fields(made)
    if not _OLDEST[made] <= len(row) <= len(entries):
        raise ValueError(f"{made.__name__} has {len(entries)} values, not {len(row)}")
    for entry, value in zip(entries, row, strict=False):
        if type(value) is not entry.type:
            raise ValueError(f"{entry.name} is no {entry.type}")
    return made(*row)
