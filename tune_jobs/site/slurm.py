"""Slurm as a site: read by squeue and sinfo, changed by scontrol."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cluster_env.core.errors import InputError
from rllib_configs.snapshot import RUNNING, SiteJob, Snapshot
from tune_jobs.site.backend import Site
from tune_jobs.site.commands import SQUEUE_TIMEOUT_S, TIMEOUT_S, Refused, SiteAway, call
from tune_jobs.site.controller import change, held_by_scontrol, is_job
from tune_jobs.site.holding import Holdings, free_now
from tune_jobs.site.slurm_restrictions import RestrictionsReader
from tune_jobs.site.slurm_text import (
    JOB_FIELDS,
    MORE_JOB_FIELDS,
    MORE_NODE_FIELDS,
    NODE_FIELDS,
    NodeListing,
    QueueListing,
    layout,
    read_jobs,
    read_nodes,
)

_CONFIG = (
    *("ClusterName", "SlurmctldHost[0]", "SlurmctldPort"),
    *("PriorityType", "SelectTypeParameters", "SlurmUser", "AccountingStorageEnforce"),
)
_ENFORCING = ("limits", "safe", "all")


class SlurmBackend:
    """A live Slurm. Each `read` is one squeue, and at times one sinfo.

    Args:
        partitions: which alone count; all if none is named.
        nodes_every_s: seconds for which what sinfo said of the nodes is believed; what jobs have
            taken and left since then is counted.
        timeout_s: seconds after which a command counts as not answered.
        squeue_timeout_s: the same of the squeue that lists all jobs.
        stopping: whether no answer is waited for any longer.
        clock: seconds, for what is believed.
        announce: takes a sentence about what this Slurm does not say.
    """

    def __init__(
        self,
        partitions: Sequence[str] = (),
        nodes_every_s: float = 0.0,
        timeout_s: float = TIMEOUT_S,
        squeue_timeout_s: float = SQUEUE_TIMEOUT_S,
        stopping: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        announce: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._partitions = tuple(partitions)
        self._nodes_every_s, self._clock, self._stopping = nodes_every_s, clock, stopping
        self._timeout_s, self._squeue_timeout_s = timeout_s, squeue_timeout_s
        self._nodes, self._nodes_at = NodeListing((), 0, 0), -float("inf")
        self._before: Holdings = {}
        self._site: Site | None = None
        self._announce = announce
        self._restrictions = RestrictionsReader(self._call, announce, clock=clock)
        self._lacking: set[str] = set()

    def site(self) -> Site:
        """See `Backend.site`."""
        if self._site is None:
            config = self._call("scontrol", "show", "config")
            pairs = (line.partition("=") for line in config.split("\n"))
            found = {key.strip(): value.strip() for key, _, value in pairs}
            name, host, port, priority, select, user, enforced = (
                found.get(key, "") for key in _CONFIG
            )
            self._site = Site(
                f"{name} {host.partition('(')[0]} {port}",
                with_memory="MEMORY" in select.upper(),
                ranks="multifactor" in priority,
                operator=user.partition("(")[0],
                with_limits=any(word in enforced.split(",") for word in _ENFORCING),
            )
        return self._site

    def read(self) -> Snapshot:
        """See `Backend.read`."""
        site = self.site()
        memory, partitions = site.with_memory, self._partitions
        squeue = self._listing("squeue", ("-h", "-r", "-a"), JOB_FIELDS, MORE_JOB_FIELDS)
        now = int(time.time())
        jobs = read_jobs(squeue, with_memory=memory, partitions=partitions)
        _require_readable("squeue", jobs)
        if not jobs.readable and held_by_scontrol(partitions, self._timeout_s):
            raise SiteAway("squeue lists no job, but scontrol shows held jobs")
        if self._clock() - self._nodes_at >= self._nodes_every_s:
            sinfo = self._listing("sinfo", ("-h", "-N", "-a"), NODE_FIELDS, MORE_NODE_FIELDS)
            nodes = read_nodes(
                sinfo,
                with_memory=memory,
                partitions=partitions,
                with_reserved=not self._lacking,
            )
            _require_readable("sinfo", nodes)
            if not nodes.readable:
                raise SiteAway("sinfo lists no node")
            self._nodes = nodes
            self._before, self._nodes_at = jobs.holdings, self._clock()
        now_free = free_now(self._nodes.nodes, self._before, jobs.holdings)
        unreadable = jobs.unreadable + self._nodes.unreadable
        if self._lacking:
            return Snapshot(now, jobs.jobs, now_free, unreadable)
        pending = {job.array for job in jobs.jobs if job.array and job.state != RUNNING}
        throttles = self._restrictions.throttles(pending)
        with_throttles = tuple(
            replace(job, throttle=throttles[job.array]) if job.array in throttles else job
            for job in jobs.jobs
        )
        restrictions = _that_concern(self._restrictions.restrictions(site.with_limits), jobs.jobs)
        return Snapshot(now, with_throttles, now_free, unreadable, restrictions)

    def _listing(
        self, program: str, options: Sequence[str], fields: Sequence[str], more: Sequence[str]
    ) -> str:
        """What a program lists of all fields, or of those alone that any Slurm has."""
        timeout_s = self._squeue_timeout_s if program == "squeue" else self._timeout_s

        def listed(names: Sequence[str]) -> str:
            return self._call(program, *options, "-O", layout(names), timeout_s=timeout_s)

        if program not in self._lacking:
            try:
                return listed((*fields, *more))
            except Refused as error:
                listing = listed(fields)
                self._lacking.add(program)
                self._announce(
                    f"{program} does not list {', '.join(more)}, so that Slurm alone checks "
                    f"partitions, limits and reservations: {error}"
                )
                return listing
        return listed(fields)

    def start(self, jobs: Sequence[str]) -> list[str]:
        """See `Backend.start`."""
        return change("release", jobs, self._timeout_s)

    def hold(self, jobs: Sequence[str]) -> list[str]:
        """See `Backend.hold`; as a user does, so that nobody takes it for an administrator's."""
        return change("uhold", jobs, self._timeout_s)

    def rank(self, priorities: Sequence[tuple[str, int]]) -> None:
        """See `Backend.rank`."""
        lines = [f"update JobId={job} Priority={rank}" for job, rank in priorities if is_job(job)]
        if lines:
            self._call("scontrol", text="\n".join([*lines, "quit", ""]))

    def _call(
        self, program: str, *arguments: str, text: str = "", timeout_s: float | None = None
    ) -> str:
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        return call(program, *arguments, text=text, timeout_s=limit_s, stopping=self._stopping)


def _require_readable(program: str, listing: QueueListing | NodeListing) -> None:
    if listing.unreadable and not listing.readable:
        raise SiteAway(f"{program} printed {listing.unreadable} rows, and none can be read")


def _that_concern(restrictions: Mapping[str, Any], jobs: Sequence[SiteJob]) -> dict[str, Any]:
    """The same without limits of users and accounts of which no job is there."""
    there = {"user": {job.user for job in jobs}, "account": {job.account for job in jobs}}
    limits = [
        limit
        for limit in restrictions["limits"]
        if limit["kind"] not in there or limit["name"] in there[limit["kind"]]
    ]
    return {**restrictions, "limits": limits}


def require_slurm(*, otherwise: str = "") -> None:
    """Refuses a command that could never reach a Slurm.

    Raises:
        InputError: if Slurm's commands are not on the path.
    """
    for program in ("squeue", "scontrol"):
        if shutil.which(program) is None:
            raise InputError(
                f"{program} is not on PATH; call this where Slurm's commands are{otherwise}"
            )
