"""What a policy starts at a site that is one pool of processors, or that has partitions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rllib_configs.snapshot import Advice, Adviser, Queue, SiteJob, Snapshot
from rllib_configs.worlds.hpc.permits import Permits
from tune_jobs.site.guard import Guard, Limits


def permits_of(
    snapshot: Snapshot, running: Sequence[SiteJob], waiting: Sequence[SiteJob]
) -> Permits | None:
    """What says which jobs the site would refuse; None where its rules are not known."""
    if snapshot.restrictions is None or not snapshot.nodes:
        return None
    return Permits(snapshot, running, waiting)


def advised(adviser: Adviser, queue: Queue, guard: Guard, limits: Limits) -> Advice:
    """Asks a policy, and starts what the guard lets start."""
    advice = adviser(queue)
    by_name = {job.job: job for job in queue.waiting}
    for job in queue.waiting:
        waited = queue.time - job.eligible
        # A job that the plan does not start yet has its room reserved there.
        if limits.is_overdue(waited) and job.job in advice.starts:
            guard.start_overdue(job)
    for name in advice.starts:
        guard.start(by_name[name])
    return advice


def advised_by_partition(
    adviser: Adviser, permits: Any, guard: Guard, candidates: Sequence[SiteJob], limits: Limits
) -> Advice:
    """Asks a policy about each partition as a machine of its own, those of a higher tier first.

    Jobs that a limit blocks are left out. If a limit blocks others because of what starts, the
    policy is asked again without them, as Slurm goes on with the next job. Of several partitions a
    job is asked about in each, until it starts. Those that have waited too long start before, or
    have room kept for the first of them, because the plan of one partition does not bind others.
    """
    asked = _Asked()
    for job in candidates:
        if refusal := permits.refusal(job):
            guard.refused[job.job] = refusal
        elif limits.is_overdue(guard.time - job.eligible):
            guard.start_overdue(job)
    for name, nodes in permits.partitions():
        mine = [job for job in candidates if name in job.partition.split(",")]
        while mine := [
            job for job in mine if job.job not in guard.started and not permits.refusal(job)
        ]:
            free, running = guard.on(nodes)
            queue = Queue(guard.time, free, tuple(running), tuple(mine), limits.max_wait_s)
            advice = adviser(queue)
            asked.add(advice)
            by_name = {job.job: job for job in mine}
            for start in advice.starts:
                guard.start(by_name[start])
            blocked = [job for job in mine if job.job not in guard.started and permits.refusal(job)]
            for job in blocked:
                guard.refused[job.job] = permits.refusal(job)
            if not blocked:
                break
    return asked.advice()


@dataclass
class _Asked:
    """What a policy has said of several machines."""

    starts: dict[str, None] = field(default_factory=dict)
    planned: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def add(self, advice: Advice) -> None:
        self.starts |= dict.fromkeys(advice.starts)
        for job, time in advice.planned.items():
            self.planned[job] = min(time, self.planned.get(job, time))
        self.scores |= advice.scores

    def advice(self) -> Advice:
        return Advice(tuple(self.starts), self.planned, self.scores)
