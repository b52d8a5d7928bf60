"""What became of the jobs of one long episode, such as a whole log: numbers, and as sheets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cluster_env.core.durations import duration
from cluster_env.core.metric import makespan, utilization_until
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation.metrics import size_class, wait
from cluster_env.objectives.standard import bounded_slowdown
from cluster_env.workloads.details import earlier_rows
from cluster_env.workloads.recorded import NOTHING, RecordedJobs
from tune_jobs.tables.columns import TIME, Column
from tune_jobs.tables.printing import Sheet

_OF_POLICY = (
    *("policy", "bounded_slowdown", "mean_wait", "longest_wait", "turnaround"),
    *("utilization", "to_end", "makespan"),
)
"""Columns of what `outcome` gives that every table shows."""

_OF_GROUP = ("bounded_slowdown", "mean_wait", "longest_wait", "turnaround")

AS_RECORDED = "as recorded"
"""The row of what happened at the site."""

_SHORT_WAIT_S = 600  # a mean wait at the site that needs no explanation
_TOO_LATE, _FEWEST_JOBS = 1.25, 100
"""By what factor a makespan is so long that the queue must have grown, in logs of so many jobs."""

SIZES = ("narrow", "medium", "wide")
"""Names of the values of `size_class`."""

MOST_ROWS = 10
"""Of a table that people get to see; files hold all."""

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
    numbers = {
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
        numbers |= {f"utilization_{name}": float(a), f"to_end_{name}": float(b)}
    return numbers


def of_groups(schedule: Schedule, group: NDArray[Any], count: int) -> pd.DataFrame:
    """The numbers of groups of jobs.

    Args:
        schedule: one episode.
        group: of each job, integers ``(num_jobs,)`` from 0.
        count: how many groups there are; those without a job have no means.

    Returns:
        A row for each group: ``jobs``, ``bounded_slowdown``, ``mean_wait``, ``longest_wait``,
        ``turnaround`` and ``work`` (processors times seconds).
    """
    values = {
        "slowdown": bounded_slowdown(schedule),
        "wait": wait(schedule),
        "turnaround": schedule.completion,
        "work": schedule.duration.astype(np.float64) * schedule.demand[:, 0],
    }
    numbers = (
        pd.DataFrame(values)
        .groupby(group)
        .agg(
            jobs=("wait", "size"),
            bounded_slowdown=("slowdown", "mean"),
            mean_wait=("wait", "mean"),
            longest_wait=("wait", "max"),
            turnaround=("turnaround", "mean"),
            work=("work", "sum"),
        )
        .reindex(range(count))
        .astype(float)
    )
    return numbers.fillna({"jobs": 0.0, "work": 0.0})


def size_classes(
    size: NDArray[np.int64], processors: int
) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Classes of jobs by processors in powers of two, int64 ``(num_jobs,)``, and their names."""
    powers = np.floor(np.log2(np.maximum(size, 1))).astype(np.int64)
    labels = {}
    for power in np.unique(powers).tolist():
        low, high = 2**power, min(2 ** (power + 1) - 1, processors)
        labels[power] = f"{low:,}" if low >= high else f"{low:,} to {high:,}"
    return powers, labels


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


def means_between(
    begin: NDArray[np.int64], end: NDArray[np.int64], weight: ArrayLike, edges: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Mean total weight of what is there, in each stretch of time; exact, without sampling.

    Args:
        begin: when each thing comes, ``(n,)``.
        end: when it goes, ``(n,)``, not before ``begin``.
        weight: of each, ``(n,)``, or of all.
        edges: rising, ``(num_stretches + 1,)``.

    Returns:
        float64 ``(num_stretches,)``.
    """
    weights = np.broadcast_to(np.asarray(weight, np.float64), begin.shape)
    total = _since(begin, weights, edges) - _since(end, weights, edges)
    return np.asarray(np.diff(total) / np.diff(edges), np.float64)


def _since(
    times: NDArray[np.int64], weights: NDArray[np.float64], at: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum over all things of weight times the time that has passed since theirs, if it has."""
    order = np.argsort(times, kind="stable")
    shifted = (times[order] - at[0]).astype(np.float64)
    count = np.concatenate([[0.0], np.cumsum(weights[order])])
    moment = np.concatenate([[0.0], np.cumsum(weights[order] * shifted)])
    known = np.searchsorted(times[order], at, side="right")
    return np.asarray((at - at[0]) * count[known] - moment[known], np.float64)


def as_recorded(jobs: RecordedJobs, like: Schedule) -> Schedule | None:
    """The schedule of the site, for the jobs and the machine of another one of the whole log.

    None where the log does not say how long all jobs waited.
    """
    if jobs.wait is None:
        return None
    start, eligible = ((at - jobs.submit[0])[like.job] for at in (jobs.start, jobs.eligible))
    finish = start + jobs.run[like.job]
    if finish.max() > np.iinfo(np.int32).max:
        return None
    return replace(
        like,
        arrival=eligible.astype(np.int32),
        start=start.astype(np.int32),
        finish=finish.astype(np.int32),
        duration=jobs.run[like.job].astype(np.int32),
        end=np.array([finish.max()], np.int32),
        pieces=None,
    )


def beyond_simulation(
    outcomes: Mapping[str, Mapping[str, float]], recorded: Mapping[str, float] | None
) -> list[str]:
    """A sentence where jobs waited at the site far longer than under any of the policies."""
    longest = max(numbers["mean_wait"] for numbers in outcomes.values())
    if recorded is None or recorded["mean_wait"] < max(_SHORT_WAIT_S, 3 * longest):
        return []
    return [
        f"as recorded, the mean wait was {duration(recorded['mean_wait'])}, here it is at "
        f"most {duration(longest)}: the causes are not simulated, such as partitions with "
        "nodes of their own (--partition NAME), limits of users or reservations"
    ]


def overloaded(schedules: Mapping[str, Schedule]) -> list[str]:
    """A sentence for each policy under which the queue grows although the machine is large enough.

    The jobs need at least their work over the machine's capacity, and until the last could end.
    """
    sentences = []
    for name, schedule in schedules.items():
        if schedule.job.size < _FEWEST_JOBS:
            continue
        work = schedule.duration.astype(np.float64) @ schedule.demand
        needed = max(
            float((work / schedule.capacity).max()),
            float((schedule.arrival + schedule.duration).max()),
        )
        taken = float(makespan(schedule)[0])
        if taken > _TOO_LATE * needed:
            sentences.append(
                f"{name} cannot keep up with these jobs: the last one ends after "
                f"{duration(taken)}, {taken / needed:.1f} times the least possible time, "
                "and waits grow with the length of the log"
            )
    return sentences


def left_out(jobs: RecordedJobs) -> str:
    """How many jobs of a log are not played, and why, to stand behind how many are."""
    reasons = "; ".join(f"{one.count:,} because the job {one.reason}" for one in jobs.dropped)
    return f"; left out: {reasons}" if reasons else ""


def dropped(jobs: RecordedJobs) -> list[dict[str, int | str]]:
    """The same as data."""
    return [{"count": one.count, "reason": one.reason} for one in jobs.dropped]


def overlapping_runs(schedules: Mapping[str, Schedule], jobs: RecordedJobs) -> list[str]:
    """A sentence where runs of a requeued job overlap: a machine without a site lets them."""
    before = earlier_rows(jobs)
    again = np.flatnonzero(before != NOTHING)
    parts = []
    for name, schedule in schedules.items():
        start, finish = np.full((2, jobs.num_jobs), NOTHING, np.int64)
        start[schedule.job], finish[schedule.job] = schedule.start, schedule.finish
        if count := int((start[again] < finish[before[again]]).sum()):
            parts.append(f"{count:,} under {name}")
    if not parts:
        return []
    return [
        f"runs of requeued jobs that overlap with the run before: {', '.join(parts)}; on a machine "
        "that --site describes, they wait for it"
    ]


def bounded(schedules: Mapping[str, Schedule], max_wait: int) -> list[str]:
    """A sentence about the bound on waits, in seconds, where there is one: whom it moved."""
    if not max_wait:
        return []
    overdue = ", ".join(
        f"{(wait(schedule) > max_wait).sum():,} under {name}"
        for name, schedule in schedules.items()
    )
    return [f"a job that has waited longer than {duration(max_wait)} goes first: {overdue}"]


def in_all(
    outcomes: Mapping[str, Mapping[str, float]],
    jobs: RecordedJobs,
    recorded: Mapping[str, float] | None = None,
) -> Sheet:
    """Every policy with the numbers of the whole log, the lowest slowdown first.

    What was recorded at the site stands before them.
    """
    ranked = sorted(outcomes, key=lambda name: outcomes[name]["bounded_slowdown"])
    cut = any(numbers["unfinished"] for numbers in outcomes.values())
    note = (
        "slowdown: mean bounded slowdown (10 s); util: utilization while jobs arrive; to "
        "end: utilization until the last finish"
    )
    if len(jobs.resources) > 1:
        note += f"; utilization is the mean of {' and '.join(jobs.resources)}"
    rows = [{"policy": name, **outcomes[name]} for name in ranked]
    if recorded is not None:
        rows.insert(0, {"policy": AS_RECORDED, **recorded})
    shown = [*_OF_POLICY, *(["unfinished"] if cut else [])]
    return Sheet("replay", "The whole log", shown, rows, note, most=MOST_ROWS)


def by_size(schedules: Mapping[str, Schedule]) -> Sheet:
    """Slowdowns and waits of narrow, medium and wide jobs."""
    rows: list[dict[str, Any]] = []
    for name, schedule in schedules.items():
        sizes = of_groups(schedule, size_class(schedule), len(SIZES))
        cells = {
            f"{of}_{size}": float(sizes[of][place])
            for of in ("jobs", *_OF_GROUP, "work")
            for place, size in enumerate(SIZES)
        }
        rows.append({"policy": name, **cells})
    waits = {f"mean_wait_{size}": Column(f"wait {size}", TIME) for size in SIZES}
    counts = ", ".join(f"{rows[0][f'jobs_{size}']:,.0f} {size}" for size in SIZES)
    note = (
        f"slowdowns and waits of {counts} jobs (narrow: up to a sixteenth of the machine; "
        "medium: up to a quarter; wide: more)"
    )
    shown = ["policy", *(f"bounded_slowdown_{size}" for size in SIZES), *waits]
    return Sheet("by-size", "By size", shown, rows, note, waits, MOST_ROWS)


def by_partition(schedules: Mapping[str, Schedule], jobs: RecordedJobs, site: Any) -> list[Sheet]:
    """What became of the jobs of each partition of a site, under each policy.

    Utilization is what the jobs of a partition held of its nodes while jobs arrived; of nodes that
    partitions share, others held more.

    Args:
        schedules: of the log, by policy.
        jobs: of the log, at the site.
        site: the description, as `HPC.site` has it.
    """
    place = jobs.attributes["partition"]
    count = len(site.partitions)
    size = [int(site.units[site.node_set(k), 0].sum()) for k in range(count)]
    rows = []
    groups = {key: of_groups(one, place[one.job], count) for key, one in schedules.items()}
    held = {key: _held(one, place[one.job], count) for key, one in schedules.items()}
    for k in range(count):
        for key, group in groups.items():
            if group["jobs"][k]:
                row: dict[str, Any] = {"partition": site.partitions[k].name, "policy": key}
                row |= {name: float(group[name][k]) for name in ("jobs", *_OF_GROUP)}
                rows.append({**row, "utilization": held[key][k] / size[k]})
    shown = ["partition", "policy", "jobs", *_OF_GROUP[:3], "utilization"]
    note = "util: processors that the partition's own jobs held, of its nodes, while jobs arrive"
    return [Sheet("by-partition", "By partition", shown, rows, note, most=4 * MOST_ROWS)]


def _held(schedule: Schedule, group: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Mean processors that groups of jobs held inside the arrival window, ``(count,)``."""
    last = max(int(schedule.window[0]), 1)
    start = np.where(schedule.start >= 0, schedule.start, last).astype(np.int64)
    inside = np.clip(np.minimum(start + schedule.duration, last) - start, 0, None)
    work = inside.astype(np.float64) * schedule.demand[:, 0]
    return np.asarray(np.bincount(group, work, count) / last, np.float64)


def by_user(schedules: Mapping[str, Schedule], jobs: RecordedJobs) -> list[Sheet]:
    """Mean waits of users and of queues, as far as the log knows any; most work first."""
    sheets = []
    for name in ("user", "queue"):
        if name not in jobs.ids or not jobs.ids[name].any():
            continue
        ids = jobs.ids[name]
        count = int(ids.max()) + 1
        groups = {key: of_groups(one, ids[one.job], count) for key, one in schedules.items()}
        first = next(iter(groups.values()))
        rows = []
        for k in np.argsort(-first["work"].to_numpy(), kind="stable"):
            row = {name: str(jobs.names[name][k]) or "(none)", "jobs": float(first["jobs"][k])}
            row["of_work"] = float(first["work"][k] / first["work"].sum())
            for key, group in groups.items():
                row |= {f"{of} {key}": float(group[of][k]) for of in _OF_GROUP}
            rows.append(row)
        best = sorted(schedules, key=lambda key: wait(schedules[key]).mean())[:_MOST_POLICIES]
        waits = {f"mean_wait {key}": Column(key, TIME) for key in groups if key in best}
        note = "mean waits"
        if len(groups) > len(waits):
            note += f"; other policies are in by-{name}.csv with --out"
        title = f"{name.capitalize()}s by share of work"
        shown = [name, "jobs", "of_work", *waits]
        sheets.append(Sheet(f"by-{name}", title, shown, rows, note, waits, MOST_ROWS))
    return sheets
