"""Jobs in a CSV file in time steps, with resources of one's own; every line of it has to be right.

It is a file that somebody wrote for training, and no log of a site: nothing in it is left out.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST
from cluster_env.workloads.files import opened
from cluster_env.workloads.numbers import as_shown, read_number
from cluster_env.workloads.recorded import RecordedJobs

_CLASS = "class"


@dataclass(frozen=True)
class _Column:
    """A column of whole numbers within bounds."""

    name: str
    least: int = 0
    most: int = LARGEST
    resource: bool = False  # whether its units are held by the job while it runs

    def value(self, cell: str) -> int:
        """The number in a cell.

        Raises:
            _Fault: if it is none that the column may hold.
        """
        number = read_number(cell)
        if number is not None and self.least <= number <= self.most and number == int(number):
            return int(number)
        least = f"{self.least} or more"
        bound = f"{self.most} or less" if number is not None and number > self.most else least
        raise _Fault(f"{self.name} must be a whole number, {bound}, not '{as_shown(cell)}'")


_COLUMNS = {
    "arrival": _Column("arrival", most=2**62),
    "duration": _Column("duration", least=1),
    _CLASS: _Column(_CLASS, most=15),  # of the 16 that a world can have
}


class _Fault(ValueError):
    """What is wrong with a line."""


def read_csv_steps(path: Path, num_resources: int) -> RecordedJobs:
    """Reads jobs, one a line; see `cluster_env.workloads.csv_jobs.read_csv_jobs`.

    Raises:
        InputError: if the file cannot be read, or a line is wrong; it names line and column.
    """
    try:
        with opened(path, "the trace") as file:
            lines = csv.reader(file)
            try:
                columns = _columns([cell.strip() for cell in next(lines, [])], num_resources)
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
    table = np.array(rows, np.int64)
    place = {column.name: k for k, column in enumerate(columns, start=1)}
    arrival = table[:, place["arrival"]]
    table = table[np.argsort(arrival, kind="stable")]
    arrival, run = table[:, place["arrival"]], table[:, place["duration"]]
    span = int(arrival[-1] - arrival[0]) + 1
    if span > LARGEST:
        raise InputError(
            f"the arrivals of the trace {path} span {span:,} steps, but at most "
            f"{LARGEST:,} are possible; write it in longer steps"
        )
    resources = [column.name for column in columns if column.resource]
    job_class = table[:, place[_CLASS]].astype(np.uint8) if _CLASS in place else None
    return RecordedJobs.of(
        path,
        submit=arrival,
        run=run,
        estimate=run,
        demand=np.ascontiguousarray(table[:, [place[name] for name in resources]]),
        resources=tuple(resources),
        ids={},
        line=table[:, 0],
        job_class=job_class,
    )


def _columns(header: Sequence[str], num_resources: int) -> list[_Column]:
    """The columns of a file, whose resources have any names."""
    if any(header.count(name) != 1 for name in ("arrival", "duration")):
        shown = f"it is '{','.join(header)[:80]}'" if header else "there is none"
        raise _Fault(
            "a header is needed with the columns arrival and duration and one for each resource, "
            f"commas between, as in arrival,duration,cpu,memory, but {shown}"
        )
    if "" in header or len(set(header)) < len(header):
        raise _Fault("every column of the header needs a name of its own")
    columns = [_COLUMNS.get(name, _Column(name, resource=True)) for name in header]
    resources = [column.name for column in columns if column.resource]
    if len(resources) != num_resources:
        raise _Fault(
            f"besides arrival and duration there must be a column for each of the cluster's "
            f"{num_resources} resources, but there are {len(resources)}"
            f"{': ' if resources else ''}{', '.join(resources)}"
        )
    return columns


def _values(columns: Sequence[_Column], cells: Sequence[str]) -> list[int]:
    """All values of a job, checked."""
    if len(cells) != len(columns):
        raise _Fault(f"{len(columns)} values are expected, but there are {len(cells)}")
    values = [column.value(cell.strip()) for column, cell in zip(columns, cells, strict=True)]
    if not any(value for column, value in zip(columns, values, strict=True) if column.resource):
        raise _Fault("a job must ask for at least 1 unit of a resource")
    return values
