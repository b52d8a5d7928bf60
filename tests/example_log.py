"""Makes the job log ``example`` that ships with the package: ``python -m tests.example_log FILE``.

It is no log of a real site. Forty people share 96 processors for some weeks. Each has a few
applications, whose jobs have the same size and limit and similar run times; people submit in
bursts, by day more than by night and on workdays more than at weekends. Limits are round times
well above most run times, and some jobs fail at once. Waits are those of first come, first served
with EASY backfilling, where the scheduler learns of a job some seconds after its submission.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.workloads.lublin import pass_through_days
from cluster_env.workloads.swf import write_swf
from cluster_env.worlds.hpc.world import HPC

SEED = 2026
PROCESSORS, PROCESSORS_PER_NODE = 96, 16
USERS, GROUPS, JOBS = 40, 7, 2_800
LOAD = 0.78
BEGIN = 1_772_409_600  # Monday, 2 March 2026, midnight UTC
LIMITS_S = 60 * np.array([10, 30, 60, 120, 240, 480, 720, 1440, 2880])
SIZES = np.array([1, 2, 4, 8, 16, 24, 32, 48, 64, 96])
SIZE_WEIGHTS = np.array([26, 8, 12, 14, 20, 4, 10, 2, 3, 1])
FAILING = 0.06  # share of jobs that end within a minute
WEEKEND = 0.45  # of the submissions of a workday
SHORT, LONG = 1, 2  # queues, by limit
DAY_S = 86_400

Columns = dict[str, NDArray[np.int64]]


def draw_applications(rng: np.random.Generator) -> Columns:
    """One to five for each user; run times by their median and the spread of their logarithm."""
    users = np.repeat(np.arange(1, USERS + 1), rng.integers(1, 6, USERS))
    count = users.size
    size = rng.choice(SIZES, count, p=SIZE_WEIGHTS / SIZE_WEIGHTS.sum())
    median = np.exp(rng.normal(np.log(5400), 1.5, count)).clip(60, 60_000)
    spread = rng.uniform(0.1, 0.9, count)
    longest = median * np.exp(1.6 * spread) * rng.choice([1.1, 1.5, 3, 8], count)
    limit = LIMITS_S[np.searchsorted(LIMITS_S[:-1], longest)]
    return {
        "user": users,
        "group": 1 + users % GROUPS,
        "size": size,
        "median": median,
        "spread": spread,
        "limit": limit,
        # A few people submit most of the jobs, and hardly anybody only wide ones.
        "weight": rng.pareto(1.5, USERS)[users - 1] / np.sqrt(size) + 0.02,
    }


def draw_jobs(rng: np.random.Generator, applications: Columns) -> Columns:
    """Jobs as people submit them: bursts of one application, minutes apart, at the load."""
    weight = applications["weight"] / applications["weight"].sum()
    chosen: list[int] = []
    lengths: list[int] = []
    while sum(lengths) < JOBS:
        chosen.append(int(rng.choice(weight.size, p=weight)))
        lengths.append(int(rng.geometric(0.3)))
    kind = np.repeat(chosen, lengths)[:JOBS]
    run = applications["median"][kind] * np.exp(
        applications["spread"][kind] * rng.standard_normal(kind.size)
    )
    failed = rng.random(kind.size) < FAILING
    run = np.where(failed, rng.integers(2, 60, kind.size), run)
    limit, size = applications["limit"][kind], applications["size"][kind]
    run = np.minimum(np.ceil(run), limit)
    span_s = (run * size).sum() / (LOAD * PROCESSORS)
    first = draw_submissions(rng, len(lengths), span_s)
    place = np.concatenate([np.arange(length) for length in lengths])[:JOBS]
    arrival = np.repeat(first, lengths)[:JOBS] + place * rng.exponential(180.0, kind.size)
    columns = {
        "arrival": arrival,
        "run": run,
        "processors": size,
        "limit": limit,
        "user": applications["user"][kind],
        "group": applications["group"][kind],
        "application": kind + 1,
        "failed": failed,
    }
    order = np.argsort(arrival, kind="stable")
    return {name: values[order].astype(np.int64) for name, values in columns.items()}


def draw_submissions(rng: np.random.Generator, count: int, span_s: float) -> NDArray[np.int64]:
    """When bursts begin: by day, and those of a weekend for the most part on the next Monday."""
    first = pass_through_days(rng.exponential(span_s / count, count), 0.0, 1.0)
    day = first // DAY_S % 7
    stays = (day < 5) | (rng.random(count) < WEEKEND)
    return np.where(stays, first, first + (7 - day) * DAY_S)


def draw_waits(rng: np.random.Generator, jobs: Columns) -> NDArray[np.int64]:
    """Of first come, first served with EASY backfilling, and until the scheduler looks."""
    seen = jobs["arrival"] + rng.integers(1, 30, JOBS)
    order = np.argsort(seen, kind="stable")
    demand = jobs["processors"][order][:, None]
    limits = {"estimate": jobs["limit"][order]}
    jobset = JobSet.of(seen[order], jobs["run"][order], demand, attributes=limits)
    world = HPC(processors=PROCESSORS)
    schedule = evaluate(get_heuristic("fcfs:easy", world), [jobset], world)
    start = np.empty(JOBS, np.int64)
    start[order[schedule.job]] = schedule.start
    return start - jobs["arrival"]


def write_example(path: Path) -> None:
    """Writes the log in the Standard Workload Format."""
    rng = np.random.default_rng(SEED)
    jobs = draw_jobs(rng, draw_applications(rng))
    fields = {
        "submit": jobs["arrival"],
        "wait": draw_waits(rng, jobs),
        "run": jobs["run"],
        "processors": jobs["processors"],
        "requested_processors": jobs["processors"],
        "requested_time": jobs["limit"],
        "status": 1 - jobs["failed"],
        "user": jobs["user"],
        "group": jobs["group"],
        "application": jobs["application"],
        "queue": np.where(jobs["limit"] <= 3600, SHORT, LONG),
    }
    header = {
        "Computer": "none, this log is generated",
        "Note": "made by tests/example_log.py of metasched, under its license",
        "UnixStartTime": BEGIN,
        "TimeZoneString": "UTC",
        "MaxJobs": JOBS,
        "MaxNodes": PROCESSORS // PROCESSORS_PER_NODE,
        "MaxProcs": PROCESSORS,
        "Queues": "1 short (up to an hour), 2 long",
    }
    write_swf(path, fields, header)


if __name__ == "__main__":
    write_example(Path(sys.argv[1]))
