"""From records of an accounting log to jobs that can be scheduled, and counts of all others."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import LARGEST
from cluster_env.workloads.details import details_of
from cluster_env.workloads.limits import estimates_of
from cluster_env.workloads.recorded import RecordedJobs, to_ids
from cluster_env.workloads.records import (
    NO_RUN_TIME,
    RUNNING,
    TOO_LARGE,
    WAITING,
    Findings,
    Record,
)

DAY_S = 86_400
_CUT_TOGETHER = 3
"""Different times of jobs that begin or end together at the edge of a log that is its window's."""

_REQUEUED = {"REQUEUED", "PENDING", "REQUEUE_HOLD", "SPECIAL_EXIT"}


def jobs_of(
    path: Path, records: Iterable[Record], findings: Findings, missing_limits: str
) -> RecordedJobs:
    """Jobs by the time at which they became eligible; every record is one, or counted.

    A job arrives when it is eligible, since before that nothing could have started it. It runs for
    its elapsed time and holds what was allocated. Its estimate is its time limit, or where it has
    none what `missing_limits` says, see `cluster_env.workloads.limits`.

    Raises:
        InputError: if no job is left, or too many rows cannot be read.
    """
    ran = []
    for record in records:
        reason = _why_not(record)
        if reason:
            findings.drop(reason, record.line)
            continue
        if record.state in _REQUEUED:
            findings.notice("ended in a requeue: each run is a job", record.line)
        ran.append(record)
    # Repeats go before parts are put together, or a part that stands twice would be added twice.
    whole = _without_cut(_gathered(_without_repeats(ran, findings), findings), findings)
    findings.require_readable(len(whole))
    if not whole:
        raise findings.no_job(path)
    whole.sort(key=_place)
    return _recorded(path, whole, findings, missing_limits)


def _place(record: Record) -> tuple[Any, ...]:
    """Where a job stands among others; the last element of an array has the array's own number."""
    array, arrival, job = record.request.array, _arrival(record), record.job
    return arrival, record.submit, array or job, array == job, job, record.line


def _why_not(record: Record) -> str:
    """Why a record is no run with a beginning and an end; empty if it is one."""
    start, end = record.start, record.end
    if record.state == "REVOKED":
        return "ran on another cluster (REVOKED)"
    if not record.ran or start is None:
        if record.state in WAITING and end is None:
            return "was still waiting"
        if record.state == "CANCELLED":
            return "was cancelled before it started"
        if record.state == "COMPLETED" and start is not None:
            return NO_RUN_TIME
        return f"never started ({record.state[:20]})"
    if end is None and record.state in RUNNING | WAITING:
        return "was still running"
    if end is None:
        return f"has no end in the log ({record.state[:20]})"
    if record.state in RUNNING - {"RESIZING"}:
        return "is cut off by the export's window (sacct -T)"
    if end < start:
        return "ended before it started"
    if record.submit is None or start < record.submit:
        return "started before it was submitted"
    numbers = (record.processors, record.gpus, record.memory or 0, record.limit or 0, end - start)
    if max(*numbers, record.elapsed or 0) > LARGEST:
        return TOO_LARGE
    if record.processors <= 0:
        return "held no processor"
    return "" if max(end - start, record.elapsed or 0) > 0 else NO_RUN_TIME


def _without_repeats(records: Sequence[Record], findings: Findings) -> list[Record]:
    """Each run once; ids of jobs repeat over the years, so a run is told by its times, too."""
    seen: set[tuple[int, int, int | None, int | None]] = set()
    kept = []
    for record in records:
        key = (record.job, record.element, record.submit, record.start)
        if key in seen:
            findings.drop("stands in the file twice", record.line)
            continue
        seen.add(key)
        kept.append(record)
    return kept


def _gathered(records: Sequence[Record], findings: Findings) -> list[Record]:
    """The parts of a heterogeneous job as one job, which holds what they held together."""
    gangs: dict[tuple[int, int | None], list[Record]] = {}
    kept = []
    for record in records:
        if record.het:
            gangs.setdefault((record.het, record.submit), []).append(record)
        else:
            kept.append(record)
    for parts in gangs.values():
        first = min(parts, key=lambda part: part.job)
        for part in parts:
            if part is not first:
                findings.drop("is part of a heterogeneous job, counted once", part.line)
        findings.notice("is heterogeneous: its parts start together", first.line)
        kept.append(_together(first, parts))
    return kept


def _together(first: Record, parts: Sequence[Record]) -> Record:
    """The parts of a heterogeneous job as one record, from its first start to its last end."""
    starts = [part.start for part in parts if part.start is not None]
    ends = [part.end for part in parts if part.end is not None]
    # Of limits and memory nothing is known if one part does not say it.
    limits = [part.limit for part in parts]
    memory = [part.memory for part in parts]
    elapsed = [part.elapsed for part in parts if part.elapsed is not None]
    return replace(
        first,
        start=min(starts),
        end=max(ends),
        elapsed=max(elapsed) if len(elapsed) == len(parts) else None,
        limit=None if None in limits else max(limit or 0 for limit in limits),
        no_limit=next((part.no_limit for part in parts if part.limit is None), ""),
        processors=sum(part.processors for part in parts),
        memory=None if None in memory else sum(part or 0 for part in memory),
        gpus=sum(part.gpus for part in parts),
    )


def _without_cut(records: list[Record], findings: Findings) -> list[Record]:
    """Without the jobs that ``sacct -T`` cut off: they all begin, or end, with the window.

    A window begins and ends at whole minutes as a rule, and hardly anything else makes jobs that
    arrived at different times begin in the very first second of a log in which any does.
    """
    if not records:
        return []
    first = min(_start(record) for record in records)
    last = max(_end(record) for record in records)
    # Jobs that had arrived before and begin with the log, and jobs that end with it.
    began = [one for one in records if _start(one) == first and _arrival(one) < first]
    ended = [one for one in records if _end(one) == last]
    cut: set[int] = set()
    if first % 60 == 0 and len({_arrival(one) for one in began}) >= _CUT_TOGETHER:
        cut |= {record.line for record in began}
    if last % 60 == 0 and len({_start(one) for one in ended}) >= _CUT_TOGETHER:
        cut |= {record.line for record in ended}
    for line in cut:
        findings.drop("is cut off by the export's window (sacct -T)", line)
    return [record for record in records if record.line not in cut]


def _start(record: Record) -> int:
    assert record.start is not None
    return record.start


def _end(record: Record) -> int:
    assert record.end is not None
    return record.end


def _arrival(record: Record) -> int:
    """When nothing held it back any more but a lack of resources; never after its start."""
    times = [time for time in (record.submit, record.eligible) if time is not None]
    return min(max(times), _start(record))


def _recorded(
    path: Path, records: Sequence[Record], findings: Findings, missing_limits: str
) -> RecordedJobs:
    """Columns of jobs, by arrival."""
    submit = np.array([_arrival(record) for record in records], np.int64)
    run = np.array([_run(record, findings) for record in records], np.int64)
    start = np.array([_start(record) for record in records], np.int64)
    line = np.array([record.line for record in records], np.int64)
    limit = np.array([record.limit or 0 for record in records], np.int64)
    power = np.array([record.power for record in records], np.int64)
    no_limit = [record.no_limit for record in records]
    estimate = estimates_of(limit, run, line, missing_limits, findings, no_limit)
    for k in np.flatnonzero((limit > 0) & (run > limit)):
        findings.notice("outlived its time limit", int(line[k]))
    _notice_times(records, submit, findings)
    demand, resources, optional = _demand(records)
    ids = {}
    for name, field in (("user", "user"), ("group", "account"), ("queue", "partition")):
        texts = [getattr(record, field) for record in records]
        # Names go to terminals and tables.
        shown = ["".join(c if c.isprintable() else "?" for c in text) for text in texts]
        ids[name] = to_ids(np.array(shown))
    details, own_names = details_of(records)
    if (earlier := _earlier_runs(records)).any():
        details["earlier_run"] = earlier
    return RecordedJobs.of(
        path,
        submit=submit,
        run=run,
        estimate=estimate,
        demand=demand,
        resources=resources,
        ids={name: numbers for name, (numbers, _) in ids.items()},
        names={**{name: names for name, (_, names) in ids.items()}, **own_names},
        line=line,
        wait=start - submit,
        epoch=0,
        dropped=findings.all_dropped(),
        noticed=findings.all_noticed(),
        rows=findings.rows,
        optional=optional,
        details=details,
        attributes={"power": power} if (power >= 0).any() else {},
    )


def _earlier_runs(records: Sequence[Record]) -> NDArray[np.int64]:
    """Line of the run that a job had before each run, int64 ``(num_jobs,)``; 0 before the first.

    A number that another job of the user had in another year makes no earlier run.
    """
    lines = np.zeros(len(records), np.int64)
    if len({(one.job, one.element) for one in records}) == len(records):
        return lines
    last: dict[tuple[int, int, str], Record] = {}
    for place in sorted(range(len(records)), key=lambda k: (_start(records[k]), records[k].line)):
        record = records[place]
        before = last.get((record.job, record.element, record.user))
        if before is not None and _end(before) <= _start(record):
            again = record.submit is not None and record.submit <= _end(before)
            lines[place] = before.line if again or before.state in _REQUEUED else 0
        last[record.job, record.element, record.user] = record
    return lines


def _run(record: Record, findings: Findings) -> int:
    """Seconds for which a job held its processors."""
    held = _end(record) - _start(record)
    if not record.elapsed or not held:  # one that says nothing is no evidence against the other
        return held or record.elapsed or 0
    if record.elapsed < held:
        findings.notice("was suspended, or clocks changed: Elapsed counts", record.line)
    elif record.elapsed > held:
        findings.notice("ran longer than End - Start: Elapsed counts", record.line)
    return record.elapsed


def _notice_times(records: Sequence[Record], submit: NDArray[np.int64], findings: Findings) -> None:
    # Of the jobs that arrived before the log's first end, others had ended by then and are missing.
    first_end = min(_end(record) for record in records)
    for record, arrival in zip(records, submit, strict=True):
        assert record.submit is not None
        if arrival > record.submit:
            findings.notice("was eligible later than submitted: arrives then", record.line)
        if first_end - submit[0] >= DAY_S and arrival < first_end:
            findings.notice("arrived long before the first end in the log", record.line)


def _demand(
    records: Sequence[Record],
) -> tuple[NDArray[np.int64], tuple[str, ...], tuple[str, ...]]:
    """What jobs held, the names of these resources, and which a machine need not count."""
    columns = {"processors": [record.processors for record in records]}
    optional = []
    # Memory counts only if all jobs say it, and never has to; GPUs have to if any job held some.
    memory = [record.memory for record in records if record.memory is not None]
    if len(memory) == len(records):
        columns["memory"] = memory
        optional.append("memory")
    columns["gpus"] = [record.gpus for record in records]
    if not any(columns["gpus"]):
        optional.append("gpus")
    demand = np.array(list(columns.values()), np.int64).T
    return np.ascontiguousarray(demand), tuple(columns), tuple(optional)
