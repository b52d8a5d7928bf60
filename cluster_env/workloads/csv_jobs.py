"""Jobs in a CSV file, in seconds on processors; `csv_steps` reads those in time steps."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST
from cluster_env.workloads.clock import Clock, Unreadable
from cluster_env.workloads.csv_steps import read_csv_steps
from cluster_env.workloads.details import TEXT_COLUMNS as DETAILS
from cluster_env.workloads.details import details_of_texts
from cluster_env.workloads.files import opened
from cluster_env.workloads.limits import LONGEST, estimates_of
from cluster_env.workloads.numbers import as_shown, read_number
from cluster_env.workloads.recorded import NOTHING, RecordedJobs, to_ids
from cluster_env.workloads.records import (
    NO_PROCESSOR,
    NO_RUN_TIME,
    PART_OF_GPU,
    TOO_EARLY,
    TOO_LARGE,
    BadRow,
    Findings,
)

RESOURCES = ("processors", "memory", "gpus")
NEEDED = ("arrival", "duration", "processors")
IDS = ("user", "group", "queue")
COLUMNS = ("arrival", "duration", "estimate", "wait", *RESOURCES, *IDS, *DETAILS)
"""Names of the columns that are read."""

_ALIASES = {"submit": "arrival", "run": "duration", "cpus": "processors", "cpu": "processors"}
_ALIASES |= {"gpu": "gpus", "limit": "estimate"}
_DELIMITERS = ",;\t"
_MOST_LINES = 20  # of a row with a text that is broken into lines
_EXACT = 2**53  # floats are exact up to here
_SURELY_UNIX = 10**9  # seconds since 1970 reached it in 2001


def read_csv_jobs(
    path: Path | str,
    num_resources: int | None = None,
    *,
    time_zone: str = "",
    columns: str = "",
    missing_limits: str = LONGEST,
) -> RecordedJobs:
    """Reads jobs, one a line.

    The header names the columns, in any order, and jobs need not be sorted; those that arrive at
    the same time keep their order. The file may be compressed with gzip.

    **In seconds**, on a machine with processors: ``arrival`` (by any clock, or dates), ``duration``
    and ``processors``; and if there are such, ``estimate`` (else the duration), ``wait`` (at the
    site), ``memory``, ``gpus``, and ``user``, ``group`` and ``queue`` (any text); for the
    description of a site, `cluster_env.workloads.details.TEXT_COLUMNS`. The names
    ``submit``, ``run``, ``limit``, ``cpus`` and ``gpu`` are known, too; ``columns`` says others.
    Further columns are noticed and not read. Between cells stand commas, semicolons or tabs.

    Jobs that cannot be scheduled are left out and counted, and so are a few lines that cannot be
    read. Fractions of seconds, memory and GPUs are rounded up, those of arrivals down.

    **In time steps**, on a cluster with a number of resources: ``arrival``, ``duration`` (at least
    1), if there are classes of jobs ``class`` (counted from 0), and every other column is a
    resource under a name of one's own. All values are whole numbers, and every line is a job.

    Args:
        path: the file.
        num_resources: that jobs in time steps ask for; None for jobs in seconds.
        time_zone: of dates that name none; by default UTC.
        columns: names in the header, as ``arrival=submission_time,duration=runtime``.
        missing_limits: see `cluster_env.workloads.limits`.

    Raises:
        InputError: if the file cannot be read, the header lacks a column, or too many lines are
            wrong; it names line and column.
    """
    path = Path(path)
    if num_resources is not None:
        return read_csv_steps(path, num_resources)
    clock, findings = Clock.of(time_zone), Findings()
    jobs: list[dict[str, Any]] = []
    with opened(path, "the trace", errors="replace") as file:
        lines = _rows(path, file)
        _, header = next(lines, (1, []))
        if isinstance(header, BadRow):
            raise header
        names = _names(path, header, _renamed(columns))
        for line, cells in lines:
            findings.rows += 1
            try:
                if isinstance(cells, BadRow):
                    raise cells
                jobs.append({"line": line, **_values(path, line, names, cells, clock)})
            except BadRow as bad:
                findings.spoil(bad)
                clock.doubts()
            else:
                findings.doubt(clock.doubts(), line)
    unread = [name for name, ours in zip(header, names, strict=True) if not ours]
    if unread and jobs:
        shown = ", ".join(as_shown(name) or "(none)" for name in unread[:5])
        more = f" and {len(unread) - 5:,} more" if len(unread) > 5 else ""
        findings.notice(f"has columns that are not read: {shown}{more}", 1, findings.rows)
    return _by_arrival(path, jobs, findings, missing_limits)


def is_header(line: str) -> bool:
    """Whether a file that begins with this line is a CSV of jobs in seconds."""
    cells = line.split(_delimiter(line))
    return set(NEEDED) <= {_known(cell.strip().strip('"')) for cell in cells}


def _known(name: str) -> str:
    return _ALIASES.get(name.lower(), name.lower())


def _delimiter(header: str) -> str:
    """The sign that stands most often between the names of a header."""
    return max(_DELIMITERS, key=header.count)


def _rows(path: Path, file: TextIO) -> Iterator[tuple[int, list[str] | BadRow]]:
    """First line and cells of all rows that are not empty; the first is the header."""
    lines = list(file)
    begin = next((k for k, line in enumerate(lines) if line.strip()), len(lines))
    delimiter = _delimiter(lines[begin]) if begin < len(lines) else ","
    header: list[str] = []
    while begin < len(lines):
        cells, count = _cells(lines, begin, delimiter, len(header))
        if cells is None:
            what = "a quotation mark is not closed, or stands inside of a cell"
            yield begin + 1, BadRow(path, begin + 1, what)
        elif any(cell.strip() for cell in cells):
            header = header or cells
            yield begin + 1, [cell.strip() for cell in cells]
        begin += count


def _cells(
    lines: Sequence[str], begin: int, delimiter: str, num_cells: int
) -> tuple[list[str] | None, int]:
    """Cells of the row that begins in a line, and how many lines it has; None for a bad line.

    Strict, and no more than a few lines, because a quotation mark that nobody closes would swallow
    all that stands behind it.
    """
    for count in range(1, _MOST_LINES + 1):
        try:
            cells = next(csv.reader(lines[begin : begin + count], delimiter=delimiter, strict=True))
        except csv.Error:
            continue
        return (cells, count) if count == 1 or len(cells) == num_cells else (None, 1)
    return None, 1


def _renamed(columns: str) -> dict[str, str]:
    """Our names by those that stand in the file, in small letters."""
    renamed = {}
    for part in columns.split(",") if columns else ():
        ours, equals, theirs = (text.strip() for text in part.partition("="))
        if not equals or not theirs or _known(ours) not in COLUMNS:
            raise InputError(
                "columns must be pairs such as arrival=submission_time, separated by "
                f"commas, with names of {', '.join(COLUMNS)}, but '{as_shown(part)}' was "
                "given"
            )
        renamed[theirs.lower()] = _known(ours)
    return renamed


def _names(path: Path, header: Sequence[str], renamed: Mapping[str, str]) -> list[str]:
    """Our name of each column; empty for those that are not read."""
    taken = set(renamed.values())
    names = []
    for name in header:
        ours = renamed.get(name.lower()) or _known(name)
        # A column that was renamed goes before one that has the name by itself.
        replaced = ours in taken and name.lower() not in renamed
        names.append("" if replaced or ours not in COLUMNS else ours)
    missing = [theirs for theirs in renamed if theirs not in map(str.lower, header)]
    fault = ""
    if missing:
        fault = f"the header has no column '{as_shown(missing[0])}'"
    elif lacks := [name for name in NEEDED if name not in names]:
        fault = (
            f"the header lacks the column {lacks[0]}; it needs arrival, duration and processors, "
            f"as in arrival,duration,estimate,processors,gpus; --columns {lacks[0]}=NAME says "
            f"another name"
        )
    elif twice := [name for name in names if name and names.count(name) > 1]:
        fault = (
            f"of the names {', '.join(COLUMNS)} each may stand once, but '{twice[0]}' does twice"
        )
    if fault:
        raise InputError(f"{path}, line 1: {fault}")
    return names


def _values(
    path: Path, line: int, names: Sequence[str], cells: Sequence[str], clock: Clock
) -> dict[str, Any]:
    """The values of a row by the names of the columns that are read.

    Raises:
        BadRow: if there are too few or too many, or one is none that its column may hold.
    """
    if len(cells) != len(names):
        raise BadRow(path, line, f"{len(names)} values are expected, but there are {len(cells)}")
    values: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        if not name:
            continue
        try:
            is_text = name in IDS or name in DETAILS
            values[name] = cell if is_text else _number(name, cell, clock)
        except Unreadable as error:
            what = f"{name} must be {error}, not '{as_shown(cell)}'"
            raise BadRow(path, line, what) from None
    return values


def _number(name: str, cell: str, clock: Clock) -> float:
    """The number in a cell of a column; `NOTHING` for an empty one that may be unknown.

    Raises:
        Unreadable: if it is none that the column may hold.
    """
    if not cell and name not in NEEDED:
        return 0 if name in RESOURCES else NOTHING
    number = read_number(cell)
    if number is None:
        if name == "arrival" and cell[4:5] == "-":
            return clock.dates(cell)[0]
        date = " or a date like 2026-03-01T08:00:00" if name == "arrival" else ""
        raise Unreadable("a whole number" if name in RESOURCES else f"a number of seconds{date}")
    if name == "processors" and number != int(number):
        raise Unreadable("a whole number")
    # Beyond any number that counts: what is too large is left out and must not overflow.
    return max(min(number, 2.0**62), -(2.0**62))


def _by_arrival(
    path: Path, jobs: Sequence[Mapping[str, Any]], findings: Findings, missing_limits: str
) -> RecordedJobs:
    """The jobs that can be scheduled, by arrival."""
    columns = {name: np.array([job[name] for job in jobs]) for name in (jobs[0] if jobs else ())}
    resources = [name for name in RESOURCES if name in columns]
    kept = _kept(columns, resources, findings) if jobs else np.zeros(0, np.bool_)
    findings.require_readable(int(kept.sum()))
    if not jobs and not findings.rows:
        raise InputError(f"{path} holds no job")
    if not kept.any():
        raise findings.no_job(path)
    arrival = np.floor(columns["arrival"][kept]).astype(np.int64)
    rows = np.flatnonzero(kept)[np.argsort(arrival, kind="stable")]

    def seconds(name: str) -> NDArray[np.int64]:
        return np.ceil(columns[name][rows]).astype(np.int64)

    line, run = columns["line"][rows].astype(np.int64), seconds("duration")
    limit = seconds("estimate") if "estimate" in columns else np.zeros_like(run)
    if "gpus" in columns:
        parts = rows[columns["gpus"][rows] % 1 > 0]
        if parts.size:
            findings.notice(PART_OF_GPU, int(columns["line"][parts].min()), parts.size)
    wait = seconds("wait") if "wait" in columns else None
    submit = np.floor(columns["arrival"][rows]).astype(np.int64)
    ids = {name: to_ids(columns[name][rows]) for name in IDS if name in columns}
    texts = {name: columns[name][rows].tolist() for name in DETAILS if name in columns}
    details, own_names = details_of_texts(texts)
    return RecordedJobs.of(
        path,
        submit=submit,
        run=run,
        estimate=estimates_of(limit, run, line, missing_limits, findings),
        demand=np.stack([seconds(name) for name in resources], axis=1),
        resources=tuple(resources),
        ids={name: numbers for name, (numbers, _) in ids.items()},
        names={**{name: names for name, (_, names) in ids.items()}, **own_names},
        line=line,
        # Waits are of use only if all are there: a mean over some would be of other jobs.
        wait=wait if wait is not None and (wait >= 0).all() else None,
        epoch=0 if submit[0] >= _SURELY_UNIX else None,
        dropped=findings.all_dropped(),
        noticed=findings.all_noticed(),
        rows=findings.rows,
        details=details,
    )


def _kept(
    columns: Mapping[str, NDArray[Any]], resources: Sequence[str], findings: Findings
) -> NDArray[np.bool_]:
    """Which rows are jobs that can be scheduled; the others count for their first reason."""
    demand = np.stack([columns[name] for name in resources])
    lengths = [columns[name] for name in ("duration", "estimate", "wait") if name in columns]
    left_out = {
        NO_RUN_TIME: columns["duration"] <= 0,
        NO_PROCESSOR: demand[0] <= 0,
        "asks for less than nothing of a resource": (demand < 0).any(axis=0),
        TOO_EARLY: columns["arrival"] < 0,
        TOO_LARGE: (np.vstack([demand, *lengths]) > LARGEST).any(axis=0)
        | (columns["arrival"] > _EXACT),
    }
    kept = np.ones(demand.shape[1], np.bool_)
    for reason, broken in left_out.items():
        for line in columns["line"][kept & broken].tolist():
            findings.drop(reason, line)
        kept &= ~broken
    return kept
