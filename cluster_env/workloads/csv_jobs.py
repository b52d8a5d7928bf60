"""Jobs in a CSV file: in seconds on processors, or in time steps with resources of one's own."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.numbers import as_shown, read_number
from cluster_env.workloads.recorded import RecordedJobs, to_ids

RESOURCES = ("processors", "memory", "gpus")
_ALIASES = {"submit": "arrival", "run": "duration", "cpus": "processors", "cpu": "processors"}
_ALIASES |= {"gpu": "gpus", "limit": "estimate"}
_IDS = ("user", "group", "queue")
_CLASS = "class"
_LARGEST = 2**31 - 1
_SURELY_UNIX = 10**9  # seconds since 1970 reached it in 2001


@dataclass(frozen=True)
class _Column:
    """What a column may hold: whole numbers or seconds within bounds, or any text."""

    name: str  # by which messages call it, and which it has in `RecordedJobs`
    least: float = 0
    most: int = _LARGEST
    whole: bool = True
    text: bool = False
    resource: bool = False  # whether its units are held by the job while it runs

    def value(self, cell: str) -> Any:
        """The value of a cell; None where it is none that the column may hold.

        Seconds become whole ones: a job arrives no later than the file says, and lasts no shorter.
        """
        if self.text:
            return cell
        number = read_number(cell)
        if number is None or not self.least <= number <= self.most:
            return None
        if self.whole and number != int(number):
            return None
        return math.floor(number) if self.name == "arrival" else math.ceil(number)

    def expected(self, cell: str) -> str:
        """What should stand in place of a wrong cell: ``a whole number, 1 or more``."""
        number = read_number(cell)
        what = "a whole number" if self.whole else "a number of seconds"
        if number is not None and number > self.most:
            return f"{what}, {self.most} or less"
        return f"{what}, {f'{self.least} or more' if self.whole or not self.least else 'above 0'}"


_IN_SECONDS = {
    column.name: column
    for column in (
        _Column("arrival", most=2**53, whole=False),  # the floats that are exact
        *(_Column(name, least=1e-9, whole=False) for name in ("duration", "estimate")),
        _Column("wait", whole=False),
        *(_Column(name, least=int(name == "processors"), resource=True) for name in RESOURCES),
        *(_Column(name, text=True) for name in _IDS),
    )
}
_IN_STEPS = {
    "arrival": _Column("arrival", most=2**62),
    "duration": _Column("duration", least=1),
    _CLASS: _Column(_CLASS, most=15),  # of the 16 that a world can have
}


def read_csv_jobs(path: Path | str, num_resources: int | None = None) -> RecordedJobs:
    """Reads jobs, one a line; the latest files are remembered as long as they do not change.

    The header names the columns, in any order, and jobs need not be sorted; those that arrive at
    the same time keep their order. The file may be compressed with gzip.

    **In seconds**, on a machine with processors: ``arrival`` (by any clock), ``duration`` (above 0)
    and ``processors``; and if there are such, ``estimate`` (else the duration), ``wait`` (at the
    site), ``memory``, ``gpus``, and ``user``, ``group`` and ``queue`` (any text). The names
    ``submit``, ``run``, ``limit``, ``cpus`` and ``gpu`` are known, too.

    **In time steps**, on a cluster with a number of resources: ``arrival``, ``duration`` (at least
    1), if there are classes of jobs ``class`` (counted from 0), and every other column is a
    resource under a name of one's own. All values are whole numbers.

    In time steps jobs ask for ``num_resources`` resources; it is None for jobs in seconds.

    Raises:
        InputError: if the file cannot be read, or a line is wrong; it names line and column.
    """
    path = Path(path)
    return _read_version(path, *version_of(path, "the trace"), num_resources)


@lru_cache(maxsize=4)
def _read_version(
    path: Path, modified_ns: int, size: int, num_resources: int | None
) -> RecordedJobs:
    try:
        with opened(path, "the trace") as file:
            lines = csv.reader(file)
            try:
                header = [cell.strip() for cell in next(lines, [])]
                if num_resources is None:
                    columns = _columns_in_seconds(header)
                else:
                    columns = _columns_in_steps(header, num_resources)
                rows = [
                    [lines.line_num, *_values(columns, cells)]
                    for cells in lines
                    if any(cell.strip() for cell in cells)
                ]
            except (csv.Error, _Fault) as error:
                line = max(lines.line_num, 1)  # an empty file has none
                raise InputError(f"{path}, line {line}: {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"the trace {path} is no CSV file in UTF-8") from None
    if not rows:
        raise InputError(f"{path} holds no job")
    names = ("line", *(column.name for column in columns))
    values = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    resources = [column.name for column in columns if column.resource]
    if num_resources is None:  # processors come first, whatever the order of the file
        resources.sort(key=RESOURCES.index)
    return _by_arrival(path, values, resources, in_steps=num_resources is not None)


class _Fault(ValueError):
    """What is wrong with a line."""


def _columns_in_seconds(header: Sequence[str]) -> list[_Column]:
    """The columns of a file in seconds, whose names are known."""
    names = [_ALIASES.get(name.lower(), name.lower()) for name in header]
    for name in names:
        if name not in _IN_SECONDS or names.count(name) > 1:
            why = "stands twice" if name in _IN_SECONDS else "is none of them"
            raise _Fault(
                f"a header is needed with names of {', '.join(_IN_SECONDS)}, each at most once, "
                f"but '{as_shown(name)}' {why}"
            )
    for name in ("arrival", "duration", "processors"):
        if name not in names:
            raise _Fault(
                f"the header lacks the column {name}; it needs arrival, duration and processors, "
                f"as in arrival,duration,estimate,processors,gpus"
            )
    return [_IN_SECONDS[name] for name in names]


def _columns_in_steps(header: Sequence[str], num_resources: int) -> list[_Column]:
    """The columns of a file in time steps, whose resources have any names."""
    if any(header.count(name) != 1 for name in ("arrival", "duration")):
        shown = f"it is '{','.join(header)[:80]}'" if header else "there is none"
        raise _Fault(
            "a header is needed with the columns arrival and duration and one for each resource, "
            f"commas between, as in arrival,duration,cpu,memory, but {shown}"
        )
    if "" in header or len(set(header)) < len(header):
        raise _Fault("every column of the header needs a name of its own")
    columns = [_IN_STEPS.get(name, _Column(name, resource=True)) for name in header]
    resources = [column.name for column in columns if column.resource]
    if len(resources) != num_resources:
        raise _Fault(
            f"besides arrival and duration there must be a column for each of the cluster's "
            f"{num_resources} resources, but there are {len(resources)}"
            f"{': ' if resources else ''}{', '.join(resources)}"
        )
    return columns


def _values(columns: Sequence[_Column], cells: Sequence[str]) -> list[Any]:
    """All values of a job, checked."""
    if len(cells) != len(columns):
        raise _Fault(f"{len(columns)} values are expected, but there are {len(cells)}")
    values: list[Any] = []
    units = 0
    for column, cell in zip(columns, cells, strict=True):
        text = cell.strip()
        value = column.value(text)
        if value is None:
            expected = column.expected(text)
            raise _Fault(f"{column.name} must be {expected}, not '{as_shown(text)}'")
        units += value if column.resource else 0
        values.append(value)
    if not units:
        raise _Fault("a job must ask for at least 1 unit of a resource")
    return values


def _by_arrival(
    path: Path, columns: dict[str, list[Any]], resources: Sequence[str], *, in_steps: bool
) -> RecordedJobs:
    """The jobs of all rows, by arrival."""
    arrival = np.array(columns["arrival"], np.int64)
    order = np.argsort(arrival, kind="stable")
    span = int(arrival[order[-1]] - arrival[order[0]]) + 1
    if in_steps and span > _LARGEST:
        raise InputError(
            f"the arrivals of the trace {path} span {span:,} steps, but {_LARGEST:,} are the "
            f"most; write it in longer steps"
        )

    def numbers(name: str) -> Any:
        return np.array(columns[name], np.int64)[order]

    known = columns.keys() - set(resources)  # a resource in time steps may be called "user"
    run = numbers("duration")
    ids = {name: to_ids(np.array(columns[name])[order]) for name in _IDS if name in known}
    return RecordedJobs.of(
        path,
        submit=arrival[order],
        run=run,
        estimate=numbers("estimate") if "estimate" in known else run,
        demand=np.stack([numbers(name) for name in resources], axis=1),
        resources=tuple(resources),
        ids={name: values for name, (values, _) in ids.items()},
        names={name: names for name, (_, names) in ids.items()},
        line=numbers("line"),
        wait=numbers("wait") if "wait" in known else None,
        epoch=0 if not in_steps and arrival.min() >= _SURELY_UNIX else None,
        job_class=numbers(_CLASS).astype(np.uint8) if _CLASS in known else None,
    )
