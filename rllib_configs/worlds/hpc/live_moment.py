"""A live Slurm at one moment as start times are foreseen there, and what is not in the model."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cluster_env.sites.description import NodeGroup, Site
from cluster_env.sites.placements import Placements
from cluster_env.workloads.slurm.hosts import host_names
from rllib_configs.snapshot import BLOCKED, RUNNING, WAITING, SiteJob, Snapshot
from rllib_configs.worlds.hpc.live_site import (
    FOREVER,
    NAMED,
    is_plain,
    numbered,
    site_of,
    words_of,
)
from rllib_configs.worlds.hpc.permits import Permits


class LiveSite:
    """A live Slurm that start times are foreseen at.

    Args:
        snapshot: with the site's rules, and the nodes of all jobs that run.
        constraints: of jobs of its log.

    Attributes:
        usual: the site as its log was made on it: without reservations, and what only the jobs that
            are there now need.
        site: as it is now, with nodes that take no more jobs as far as some still run there.
        running: the jobs that run.
        nodes: of these, in their order.
        waiting: jobs that wait for nothing but room, or that a limit of the description blocks.
    """

    def __init__(self, snapshot: Snapshot, constraints: Iterable[str] = ()) -> None:
        self._snapshot = snapshot
        words = {word for text in constraints for word in words_of(str(text))}
        described = site_of(snapshot, words)
        self.usual = _usual(described)
        self.site, self.running, self.nodes = _with_running(snapshot, described)
        partitions = (snapshot.restrictions or {}).get("partitions", ())
        self._shared = {str(one.get("name")) for one in partitions if one.get("shared")}
        self._places = numbered(self.site.partition_names)
        self._permits = Permits(snapshot, self.running, snapshot.in_state(WAITING, BLOCKED))
        self.waiting = [
            job
            for job in snapshot.in_state(WAITING, BLOCKED)
            if job.processors > 0 and (job.state == WAITING or self._blocked_by_limit(job))
        ]

    def _blocked_by_limit(self, job: SiteJob) -> bool:
        """Whether a limit that the description has is why a job does not start."""
        says_so = job.reason.startswith(("QOS", "Assoc")) and job.reason.endswith("Limit")
        return says_so and self._permits.refusal(job).startswith("limit: ")

    def never(self) -> dict[str, str]:
        """Jobs that cannot start as the site is now, and why."""
        found = {}
        for job in self.waiting:
            if not set(job.partition.split(",")) & set(self._places):
                found[job.job] = "its partition has no nodes that take jobs"
            elif why := self._permits.impossible(job):
                found[job.job] = why
        return found

    def rows(self, jobs: Sequence[SiteJob]) -> list[tuple[SiteJob, int]]:
        """Jobs, and the places of the partitions that they are simulated in."""
        return [
            (job, next((self._places[p] for p in job.partition.split(",") if p in self._places), 0))
            for job in jobs
        ]

    def without_model(self, job: SiteJob) -> tuple[str, ...]:
        """What a job asks for that no site's description says, in words."""
        words = [one for one in job.special.split("; ") if one]
        partitions = job.partition.split(",")
        if len(partitions) > 1:
            words.append(f"waits in {len(partitions)} partitions, simulated in one")
        if self._shared & set(partitions):
            words.append("jobs of its partition share processors")
        if job.nodes_named and f"{NAMED}{job.nodes_named}" not in self.site.feature_names:
            words.append(f"needs {job.nodes_named} among its nodes")
        if not is_plain(job.features):
            words.append(f"constraint {job.features}")
        if job.reservation and job.reservation not in {one.name for one in self.site.calendar}:
            words.append(f"reservation {job.reservation}")
        return tuple(words)


def _usual(site: Site) -> Site:
    groups = [
        replace(group, features=tuple(one for one in group.features if not one.startswith(NAMED)))
        for group in site.nodes
    ]
    return replace(site, nodes=tuple(groups), calendar=())


def _with_running(snapshot: Snapshot, site: Site) -> tuple[Site, list[SiteJob], Placements]:
    """The site with the nodes that only jobs that run have, these jobs, and where they run.

    What a job holds on each of its nodes is what the nodes report as held, as far as its other jobs
    leave it, in shares as equal as possible. What no job is seen to hold nobody can have.
    """
    running = [job for job in snapshot.in_state(RUNNING) if job.processors > 0]
    nodes = {node.name: node for node in snapshot.nodes}
    left = {name: node.processors - node.free_processors for name, node in nodes.items()}
    others: dict[str, list[int]] = {}
    held: dict[str, dict[str, int]] = {}
    for job in sorted(running, key=lambda job: len(host_names(job.node_list))):
        hosts = host_names(job.node_list)
        sizes = _shares(job.processors, [left.get(host, FOREVER) for host in hosts])
        held[job.job] = {host: size for host, size in zip(hosts, sizes, strict=True) if size}
        for host, size in held[job.job].items():
            if host in left:
                left[host] -= size
            else:
                parts = [-(-units * size // job.processors) for units in job.demand]
                known = others.setdefault(host, [0, 0, 0])
                others[host] = [one + part for one, part in zip(known, parts, strict=True)]
    groups = [
        replace(group, processors=max(group.processors - left[group.name], 1))
        for group in site.nodes
    ]
    groups += [
        NodeGroup(host, processors=units[0], memory=units[1], gpus=units[2])
        for host, units in others.items()
    ]
    whole = replace(site, nodes=tuple(groups))
    places = numbered(whole.node_names)
    running = [job for job in running if held[job.job]]
    rows = [{places[host]: size for host, size in held[job.job].items()} for job in running]
    return whole, running, Placements.of(rows)


def _shares(units: int, room: Sequence[int]) -> list[int]:
    """Parts of some units that fit into rooms, as equal as these allow; what does not is lost."""
    sizes = [0] * len(room)
    while (lack := units - sum(sizes)) > 0:
        open_rooms = [k for k, size in enumerate(sizes) if size < room[k]]
        if not open_rooms:
            break
        for number, k in enumerate(open_rooms):
            share = lack // len(open_rooms) + (number < lack % len(open_rooms))
            sizes[k] = min(sizes[k] + share, room[k])
    return sizes
