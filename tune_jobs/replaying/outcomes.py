"""What became of the jobs of one long episode, such as a whole log: numbers, and as sheets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.schedule import Schedule
from cluster_env.evaluation.metrics import size_class, wait
from cluster_env.objectives.metric import makespan, utilization_until
from cluster_env.objectives.standard import bounded_slowdown
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying.timelines import means_between
from tune_jobs.terminal.sheets import COUNT, RATIO, SECONDS, SHARE, TEXT, Sheet

OUTCOME = {
    "policy": TEXT,
    "bounded_slowdown": RATIO,
    "mean_wait": SECONDS,
    "longest_wait": SECONDS,
    "turnaround": SECONDS,
    "utilization": SHARE,
    "to_end": SHARE,
    "makespan": SECONDS,
}
"""Columns of what `outcome` gives that every table shows, with their units."""

OF_JOBS = {
    "jobs": COUNT,
    "bounded_slowdown": RATIO,
    "mean_wait": SECONDS,
    "longest_wait": SECONDS,
    "turnaround": SECONDS,
}
"""Columns of what `of_groups` gives, with their units."""

SIZES = ("narrow", "medium", "wide")
"""Names of the values of `size_class`."""

_TITLES = {
    "bounded_slowdown": "slowdown",
    "mean_wait": "wait",
    "longest_wait": "longest",
    "utilization": "util",
}
_MOST_POLICIES = 4
"""Of which a column fits beside a user's name into 80 characters."""


def outcome(schedule: Schedule, resources: Sequence[str]) -> dict[str, float]:
    """The numbers of one episode.

    ``utilization`` is that inside the arrival window, ``to_end`` that up to the last finish, mean
    over resources and then of each; ``makespan`` is the time from the beginning to the last finish.
    Jobs that had not finished count with the time they had spent.
    """
    end = makespan(schedule)
    slowdown, waited = bounded_slowdown(schedule), wait(schedule)
    inside = utilization_until(schedule, schedule.window)[0]
    to_end = utilization_until(schedule, np.maximum(end, 1))[0]
    found = {
        "bounded_slowdown": float(slowdown.mean()),
        "mean_wait": float(waited.mean()),
        "longest_wait": float(waited.max()),
        "turnaround": float(schedule.completion.mean()),
        "utilization": float(inside.mean()),
        "to_end": float(to_end.mean()),
        "makespan": float(end[0]),
        "median_wait": float(np.median(waited)),
        "wait_95": float(np.quantile(waited, 0.95)),
        "bounded_slowdown_95": float(np.quantile(slowdown, 0.95)),
        "jobs": float(schedule.job.size),
        "unfinished": float((~schedule.finished).sum()),
    }
    for name, a, b in zip(resources, inside, to_end, strict=True):
        found |= {f"utilization_{name}": float(a), f"to_end_{name}": float(b)}
    return found


def of_groups(schedule: Schedule, group: NDArray[Any], count: int) -> list[dict[str, float]]:
    """The numbers of groups of jobs.

    Args:
        schedule: one episode.
        group: of each job, integers ``(num_jobs,)`` from 0.
        count: how many groups there are; those without a job have no means.

    Returns:
        For each group ``jobs``, ``bounded_slowdown``, ``mean_wait``, ``longest_wait``,
        ``turnaround`` and ``work`` (processors times seconds).
    """
    num = np.bincount(group, minlength=count)
    waited = wait(schedule)
    longest = np.zeros(count)
    np.maximum.at(longest, group, waited)
    work = schedule.duration.astype(np.float64) * schedule.demand[:, 0]
    known = np.where(num > 0, num, np.nan)
    sums = {
        "bounded_slowdown": bounded_slowdown(schedule),
        "mean_wait": waited,
        "turnaround": schedule.completion.astype(np.float64),
    }
    means = {
        name: np.bincount(group, values, minlength=count) / known for name, values in sums.items()
    }
    total = np.bincount(group, work, minlength=count)
    return [
        {
            "jobs": float(num[k]),
            **{name: float(values[k]) for name, values in means.items()},
            "longest_wait": float(longest[k]) if num[k] else float("nan"),
            "work": float(total[k]),
        }
        for k in range(count)
    ]


def of_sizes(schedule: Schedule) -> dict[str, dict[str, float]]:
    """The numbers of narrow, medium and wide jobs."""
    return dict(zip(SIZES, of_groups(schedule, size_class(schedule), len(SIZES)), strict=True))


def timeline(schedule: Schedule, edges: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Means of stretches of time: ``utilization`` (over resources), ``queue`` (jobs that wait).

    Args:
        schedule: one episode.
        edges: of the stretches, rising, ``(num_stretches + 1,)``.

    Returns:
        float64 ``(num_stretches,)`` each.
    """
    arrival = schedule.arrival.astype(np.int64)
    started = schedule.start >= 0
    start = np.where(started, schedule.start, schedule.end[schedule.episode]).astype(np.int64)
    over = np.where(started, start + schedule.duration, start)
    share = (schedule.demand / schedule.capacity).mean(axis=1)
    return {
        "utilization": means_between(start, over, share, edges),
        "queue": means_between(arrival, start, 1.0, edges),
    }


def in_all(outcomes: Mapping[str, Mapping[str, float]], jobs: RecordedJobs) -> Sheet:
    """Every policy with the numbers of the whole log, the lowest slowdown first."""
    ranked = sorted(outcomes, key=lambda name: outcomes[name]["bounded_slowdown"])
    units = dict(OUTCOME)
    if any(found["unfinished"] for found in outcomes.values()):
        units["unfinished"] = COUNT
    note = (
        "slowdown: mean bounded slowdown, 10 s; util: inside the time in which jobs arrive; to "
        "end: up to the last finish"
    )
    if len(jobs.resources) > 1:
        note += f"; use is the mean of {' and '.join(jobs.resources)}"
    rows = [{"policy": name, **outcomes[name]} for name in ranked]
    return Sheet("replay", "The whole log", units, rows, note, _TITLES)


def by_size(schedules: Mapping[str, Schedule]) -> Sheet:
    """Slowdowns and waits of narrow, medium and wide jobs."""
    rows = []
    for name, schedule in schedules.items():
        found = of_sizes(schedule)
        rows.append(
            {
                "policy": name,
                **{f"{of}_{size}": found[size][of] for of in (*OF_JOBS, "work") for size in SIZES},
            }
        )
    units = {
        "policy": TEXT,
        **{f"bounded_slowdown_{size}": RATIO for size in SIZES},
        **{f"mean_wait_{size}": SECONDS for size in SIZES},
    }
    titles = {
        **{f"bounded_slowdown_{size}": size for size in SIZES},
        **{f"mean_wait_{size}": f"wait {size}" for size in SIZES},
    }
    counts = ", ".join(f"{rows[0][f'jobs_{size}']:,.0f} {size}" for size in SIZES)
    note = (
        f"slowdowns and waits of {counts} jobs: of at most a sixteenth of the machine, at most a "
        f"quarter, and more"
    )
    return Sheet("by-size", "By size", units, rows, note, titles)


def by_user(schedules: Mapping[str, Schedule], jobs: RecordedJobs) -> list[Sheet]:
    """Mean waits of users and of queues, as far as the log knows any; most work first."""
    sheets = []
    for name in ("user", "queue"):
        if name not in jobs.ids or not jobs.ids[name].any():
            continue
        ids = jobs.ids[name]
        count = int(ids.max()) + 1
        found = {key: of_groups(one, ids[one.job], count) for key, one in schedules.items()}
        first = next(iter(found.values()))
        work = np.array([group["work"] for group in first])
        rows = []
        for k in np.argsort(-work, kind="stable"):
            row = {name: str(jobs.names[name][k]) or "(none)", "jobs": first[k]["jobs"]}
            row["of_work"] = float(work[k] / work.sum())
            for key, groups in found.items():
                row |= {f"{of} {key}": groups[k][of] for of in OF_JOBS if of != "jobs"}
            rows.append(row)
        shown = list(found)[:_MOST_POLICIES]
        units = {
            name: TEXT,
            "jobs": COUNT,
            "of_work": SHARE,
            **{f"mean_wait {key}": SECONDS for key in shown},
        }
        titles = {f"mean_wait {key}": key for key in shown}
        note = "mean waits"
        if len(found) > len(shown):
            note += f"; those of further policies stand in by-{name}.csv with --out"
        title = f"{name.capitalize()}s, most work first"
        sheets.append(Sheet(f"by-{name}", title, units, rows, note, titles))
    return sheets
