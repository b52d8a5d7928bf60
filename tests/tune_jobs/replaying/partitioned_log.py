"""The log of a made-up site of four partitions, scheduled by a program that is not the simulator.

It is as plain as it can be: every event looks at every waiting job, first come, first served; a job
that its user's limit blocks is skipped, and the first of each partition that finds no room has a
time reserved, before which others may only run where they end by their limits.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

NODES = {"c": 8, "f": 2, "d": 1}
CPUS = 16
PARTITIONS = {
    "main": [f"c{k}" for k in range(1, 9)],
    "long": [f"c{k}" for k in range(1, 4)],
    "fat": ["f1", "f2"],
    "debug": ["d1"],
}
MOST_PER_USER = 48
BEGIN = 1_770_000_001

SITE = """
nodes:
- {name: c, count: 8, processors: 16}
- {name: f, count: 2, processors: 16}
- {name: d1, processors: 16}
partitions:
- {name: main, nodes: [c]}
- {name: long, nodes: ["c[1-3]"]}
- {name: fat, nodes: [f]}
- {name: debug, nodes: [d1], max_time_s: 3600}
limits:
- {name: normal, processors_per_user: 48}
"""

HEAD = "JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw"
HEAD += "|TimelimitRaw|ReqCPUS|AllocCPUS|NNodes|AllocTRES"


@dataclass
class PlainJob:
    """A job, and where and when it ran."""

    number: int
    arrival: int
    run: int
    limit: int
    cpus: int
    user: str
    partition: str
    start: int = -1
    nodes: dict[str, int] = field(default_factory=dict)


def jobs_of_site(num_jobs: int, seed: int) -> list[PlainJob]:
    """Jobs of four partitions; half of them are of one user."""
    rng = np.random.default_rng(seed)
    names = rng.choice([*PARTITIONS], num_jobs, p=[0.55, 0.15, 0.15, 0.15])
    arrival = np.cumsum(rng.exponential(700.0, num_jobs)).astype(int)
    users = rng.choice(["ada", "bob", "cyd", "dan"], num_jobs, p=[0.5, 0.2, 0.2, 0.1])
    median = {"main": 3600, "long": 20_000, "fat": 5000, "debug": 900}
    most = {"main": 32, "long": 16, "fat": 32, "debug": 16}
    jobs = []
    for k, name in enumerate(names.tolist()):
        run = int(np.clip(median[name] * np.exp(rng.normal(0, 0.9)), 60, 86_400))
        run = min(run, 3600) if name == "debug" else run
        cpus = int(2 ** rng.integers(0, int(np.log2(most[name])) + 1))
        limit = min(-(-int(run * rng.uniform(1, 3)) // 60) * 60, 3600 if name == "debug" else 10**6)
        jobs.append(
            PlainJob(k + 1, int(arrival[k]), run, max(limit, run), cpus, str(users[k]), name)
        )
    return jobs


def schedule_plainly(jobs: list[PlainJob]) -> None:
    """Gives each job its start and its nodes."""
    waiting: list[PlainJob] = []
    running: list[PlainJob] = []
    coming = sorted(jobs, key=lambda job: (job.arrival, job.number))
    while coming or waiting or running:
        times = [job.start + job.run for job in running] + [job.arrival for job in coming[:1]]
        now = min(times)
        running = [job for job in running if job.start + job.run > now]
        while coming and coming[0].arrival <= now:
            waiting.append(coming.pop(0))
        _start_what_may(now, waiting, running)


def _start_what_may(now: int, waiting: list[PlainJob], running: list[PlainJob]) -> None:
    bookings: list[PlainJob] = []
    blocked: set[str] = set()
    for job in list(waiting):
        used = sum(other.cpus for other in running if other.user == job.user)
        if used + job.cpus > MOST_PER_USER:
            continue
        nodes = _placed(job, now, [*running, *bookings])
        if nodes:
            job.start, job.nodes = now, nodes
            waiting.remove(job)
            running.append(job)
        elif job.partition not in blocked:
            blocked.add(job.partition)
            ends = sorted({other.start + other.limit for other in [*running, *bookings]})
            for time in (end for end in ends if end > now):
                nodes = _placed(job, time, [*running, *bookings])
                if nodes:
                    booking = PlainJob(**{**vars(job), "start": time, "nodes": nodes})
                    bookings.append(booking)
                    break


def _placed(job: PlainJob, start: int, others: list[PlainJob]) -> dict[str, int]:
    """Nodes that have room for a job from a time until its limit, the fullest first."""
    end = start + job.limit
    moments = [start, *(one.start for one in others if start < one.start < end)]
    room = {}
    for node in PARTITIONS[job.partition]:
        here = [one for one in others if node in one.nodes]
        held = max(
            sum(one.nodes[node] for one in here if one.start <= at < one.start + one.limit)
            for at in moments
        )
        room[node] = CPUS - held
    nodes, left = {}, job.cpus
    fits = [node for node in room if room[node] >= left]
    order = sorted(fits, key=lambda node: room[node]) or sorted(room, key=lambda node: -room[node])
    for node in order:
        taken = min(room[node], left)
        if taken > 0:
            nodes[node], left = taken, left - taken
    return {} if left else nodes


def write_partitioned_log(path: Path, num_jobs: int = 600, seed: int = 1) -> list[PlainJob]:
    """Writes what ``sacct --parsable2`` would export."""
    jobs = jobs_of_site(num_jobs, seed)
    schedule_plainly(jobs)
    lines = [HEAD]
    for job in jobs:
        submit, start = BEGIN + job.arrival, BEGIN + job.start
        held = f"cpu={job.cpus},node={len(job.nodes)}"
        lines.append(
            f"{job.number}|{job.number}|{job.user}|bio|{job.partition}|normal|COMPLETED|{submit}|"
            f"{submit}|{start}|{start + job.run}|{job.run}|{-(-job.limit // 60)}|{job.cpus}|"
            f"{job.cpus}|{len(job.nodes)}|{held}"
        )
    path.write_text("\n".join(lines) + "\n")
    return jobs
