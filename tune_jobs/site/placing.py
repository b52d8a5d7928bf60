"""What fits: on the nodes now, and beside a job that has waited too long until it can start."""

from collections.abc import Iterable, Mapping, Sequence

from cluster_env.workloads.slurm.hosts import host_names
from rllib_configs.snapshot import RESOURCES, SiteJob, SiteNode

Units = tuple[int, int, int]
NO_ROOM = "no node has room"
_NEVER = 2**62


class Room:
    """What is free on each node, as jobs are put there.

    A job takes as few nodes as it asked for, a share of its memory and GPUs with each processor.
    The site knows more (topology, features, whole cores), so it is the judge in the end.

    Args:
        nodes: as they are; none stands for a machine of which no nodes are known, where all fits.
    """

    def __init__(self, nodes: Sequence[SiteNode]) -> None:
        self._free = [list(node.free) for node in nodes]
        self._names = [node.name for node in nodes]
        self._processors = [node.processors for node in nodes]

    @property
    def free(self) -> list[Units]:
        """What is left on each node."""
        return [(free[0], free[1], free[2]) for free in self._free]

    def place(self, job: SiteJob) -> bool:
        """Takes room for a job; returns whether there was any, else nothing changes."""
        return self.take(job) is not None

    def free_on(self, nodes: frozenset[str]) -> Units:
        """What is left on some nodes in all."""
        return in_all(
            [units for units, name in zip(self.free, self._names, strict=True) if name in nodes]
        )

    def by_name(self, taken: Sequence[Units]) -> dict[str, Units]:
        """What `take` took on the nodes on which it took anything."""
        pairs = zip(self._names, taken, strict=True)
        return {name: units for name, units in pairs if any(units)}

    def take(
        self, job: SiteJob, nodes: frozenset[str] | None = None, *, idle: bool = False
    ) -> list[Units] | None:
        """Takes room for a job; returns what it takes on each node, or None if there is none.

        Args:
            job: that is to start.
            nodes: that it may have; by default any.
            idle: whether it needs nodes that nobody else is on.
        """
        if not self._free:
            return []
        can = sorted(
            (
                (self._processors_for(job, free), k)
                for k, free in enumerate(self._free)
                if (nodes is None or self._names[k] in nodes)
                and (not idle or free[0] == self._processors[k])
            ),
            key=lambda entry: (-entry[0], entry[1]),
        )
        if job.nodes == 1:  # the fullest node that has room
            can = [entry for entry in reversed(can) if entry[0] >= job.processors]
        chosen = can[: job.nodes]
        if len(chosen) < job.nodes or chosen[-1][0] < 1:
            return None
        if sum(processors for processors, _ in chosen) < job.processors:
            return None
        before, left = self.free, job.processors
        for after, (most, k) in zip(range(job.nodes - 1, -1, -1), chosen, strict=True):
            taken = min(most, left - after)
            for r, units in enumerate(job.demand):
                self._free[k][r] -= -(-units * taken // job.processors)
            left -= taken
        return [less(was, now) for was, now in zip(before, self._free, strict=True)]

    def give_back(self, taken: Sequence[Units]) -> None:
        """Gives back what `take` took."""
        for free, units in zip(self._free, taken, strict=True):
            free[:] = [there + given for there, given in zip(free, units, strict=True)]

    @staticmethod
    def _processors_for(job: SiteJob, free: Sequence[int]) -> int:
        """Processors that a node can give a job with the memory and GPUs that go with them."""
        can = free[0]
        for units, there in zip(job.demand[1:], free[1:], strict=True):
            if units:
                can = min(can, max(there, 0) * job.processors // units)
        return min(can, job.processors)


class Reservation:
    """Room that is kept for one job: others may start if they end before, or use what is spare.

    Args:
        job: that cannot start now.
        time: now.
        free: units of each resource that are free now.
        running: jobs with a start; they are expected to run to their limits.
        nodes: that the job may have, and to which the others refer; None for all.
    """

    def __init__(
        self,
        job: SiteJob,
        time: int,
        free: Units,
        running: Iterable[SiteJob],
        nodes: frozenset[str] | None = None,
    ) -> None:
        self.job, self.nodes = job.job, nodes
        self.begins = _NEVER
        there = list(free)
        ends = sorted(
            (max(one.start + one.limit, time) if one.limit else _NEVER, one.demand)
            for one in running
        )
        for end, demand in ends:
            there = [units + given for units, given in zip(there, demand, strict=True)]
            if end < _NEVER and fits(job.demand, there):
                self.begins = end
                break
        self._spare = [units - asked for units, asked in zip(there, job.demand, strict=True)]

    def ends_before(self, job: SiteJob, time: int) -> bool:
        """Whether a job that starts now ends before the one that room is kept for can start."""
        return bool(job.limit) and time + job.limit <= self.begins

    def takes_spare(self, job: SiteJob) -> bool:
        """Whether what is spare then is enough for a job; takes it."""
        if not fits(job.demand, self._spare):
            return False
        for r, units in enumerate(job.demand):
            self._spare[r] -= units
        return True

    def allows(self, job: SiteJob, time: int) -> bool:
        """Whether a job may start now; takes what is spare if it needs that."""
        return self.ends_before(job, time) or self.takes_spare(job)


def share_on(job: SiteJob, nodes: frozenset[str], held: Mapping[str, Units] | None = None) -> Units:
    """What a job holds on some nodes: as is known, else in equal shares on each of its nodes."""
    if held is not None:
        return in_all([units for name, units in held.items() if name in nodes])
    hosts = host_names(job.node_list)
    here = sum(host in nodes for host in hosts)
    return in_all([[-(-units * here // max(len(hosts), 1)) for units in job.demand]])


def fits(demand: Sequence[int], free: Sequence[int]) -> bool:
    """Whether there is as much as is asked for of each resource."""
    return all(units <= there for units, there in zip(demand, free, strict=True))


def in_all(parts: Iterable[Sequence[int]]) -> Units:
    """The sum of units of each resource."""
    rows = list(parts)
    first, second, third = (sum(row[r] for row in rows) for r in range(len(RESOURCES)))
    return first, second, third


def less(units: Sequence[int], taken: Sequence[int]) -> Units:
    """What is left of each resource, at least 0."""
    left = [max(one - other, 0) for one, other in zip(units, taken, strict=True)]
    return left[0], left[1], left[2]
