"""A file of recorded jobs, read and checked line by line."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.deeprm.cluster import Cluster

_REQUIRED = ("arrival", "duration")
_CLASS = "class"
_LARGEST_CLASS = 15  # of those that a cluster can have
_LARGEST_TIME = 2**62
_LARGEST = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, eq=False)
class Trace:
    """The jobs of a file.

    Attributes:
        path: the file.
        resources: names of the resources, in the order of the file.
        jobs: all jobs in the order of their arrival, the first of them at step 0; the window ends
            with the last arrival.
        line: int64 ``(num_jobs,)``, the line of the file that each job stands in.
    """

    path: Path
    resources: tuple[str, ...]
    jobs: JobSet
    line: NDArray[np.int64]

    def check(self, cluster: Cluster) -> None:
        """Makes sure that every job can run on the empty cluster.

        Raises:
            InputError: if one is too large or too long, or of a class that the cluster does not
                have; it names the first one in the file.
        """
        self._check_classes(cluster)
        too_large = self.jobs.demand > np.asarray(cluster.capacity)
        faulty = np.flatnonzero(too_large.any(axis=1) | (self.jobs.duration > cluster.horizon))
        if not faulty.size:
            return
        job = int(faulty[np.argmin(self.line[faulty])])
        if too_large[job].any():
            resource = int(np.argmax(too_large[job]))
            fault = (
                f"the job asks for {self.jobs.demand[job, resource]} units of "
                f"{self.resources[resource]}, but the cluster has only {cluster.capacity[resource]}"
            )
        else:
            fault = (
                f"the job lasts {self.jobs.duration[job]} steps, but the cluster's horizon is only "
                f"{cluster.horizon}"
            )
        raise _fault(
            self.path,
            self.line[job],
            f"{fault} ({faulty.size:,} of {self.jobs.num_jobs:,} jobs do not fit); give the "
            f"cluster more, or write the trace in larger units and longer steps",
        )

    def _check_classes(self, cluster: Cluster) -> None:
        faulty = np.flatnonzero(self.jobs.job_class >= cluster.num_classes)
        if not faulty.size:
            return
        job = int(faulty[np.argmin(self.line[faulty])])
        raise _fault(
            self.path,
            self.line[job],
            f"the job has class {self.jobs.job_class[job]}, but classes count from 0 and the "
            f"cluster has {cluster.num_classes}; give it num_classes="
            f"{int(self.jobs.job_class.max()) + 1}, or leave out the column {_CLASS}",
        )


def read_jobs(path: Path | str, num_resources: int) -> Trace:
    """Reads a CSV file of jobs, one a line.

    The header names the columns, in any order: ``arrival`` (time step), ``duration`` (time steps,
    at least 1), if there are classes of jobs ``class`` (counted from 0), and every other column is
    a resource, with the units that the job holds from its start to its finish. All values are whole
    numbers. Jobs need not be sorted; those that arrive in the same step keep their order. Time
    counts from the first arrival.

    Args:
        path: the file, in UTF-8.
        num_resources: number of resources that the jobs must ask for.

    Raises:
        InputError: if the file cannot be read, or a line is wrong; it names the line.
    """
    path = Path(path)
    if path.is_char_device() or path.is_fifo():  # whose end may never come
        raise InputError(f"cannot read the trace {path}: it is no file")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            names = _names(path, next(lines, []), num_resources)
            try:
                table = list(_rows(path, names, lines))
            except csv.Error as error:
                raise _fault(path, lines.line_num, str(error)) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"the trace {path} is no CSV file in UTF-8") from None
    if not table:
        raise InputError(f"the trace {path} holds no job")
    return _sorted_by_arrival(path, names, np.array(table, np.int64))


def read_once(path: Path | str, num_resources: int) -> Trace:
    """As `read_jobs`, but remembers the latest files as long as they do not change.

    Raises:
        InputError: as `read_jobs`.
    """
    path = Path(path)
    try:
        now = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from None
    return _read_version(path, num_resources, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=4)
def _read_version(path: Path, num_resources: int, modified_ns: int, size: int) -> Trace:
    """What is in a file that was last changed at some time, read once."""
    return read_jobs(path, num_resources)


def _names(path: Path, cells: Sequence[str], num_resources: int) -> list[str]:
    """The names in the header, checked."""
    names = [cell.strip() for cell in cells]
    if any(names.count(name) != 1 for name in _REQUIRED):
        given = f"it is '{','.join(names)[:80]}'" if names else "there is none"
        raise _fault(
            path,
            1,
            "a header is needed with the columns arrival and duration and one for each resource, "
            f"commas between, as in arrival,duration,cpu,memory, but {given}",
        )
    if "" in names or len(set(names)) < len(names):
        raise _fault(path, 1, "every column of the header needs a name of its own")
    resources = [name for name in names if name not in (*_REQUIRED, _CLASS)]
    if len(resources) != num_resources:
        raise _fault(
            path,
            1,
            f"besides arrival and duration there must be a column for each of the cluster's "
            f"{num_resources} resources, but there are {len(resources)}"
            f"{': ' if resources else ''}{', '.join(resources)}",
        )
    return names


def _rows(path: Path, names: Sequence[str], lines: Iterator[list[str]]) -> Iterator[list[int]]:
    """Number of the line and all values of each job, checked."""
    special = {
        "arrival": (0, _LARGEST_TIME),
        "duration": (1, _LARGEST),
        _CLASS: (0, _LARGEST_CLASS),
    }
    bounds = [special.get(name, (0, _LARGEST)) for name in names]
    resources = [1 + k for k, name in enumerate(names) if name not in special]
    for cells in lines:
        number = lines.line_num  # type: ignore[attr-defined]
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(names):
            raise _fault(
                path, number, f"{len(names)} values are expected, but there are {len(cells)}"
            )
        values = [number]
        for name, cell, (low, high) in zip(names, cells, bounds, strict=True):
            value = _whole(cell)
            if value is None or not low <= value <= high:
                size = f"{low} or more" if value is None or value < low else f"{high} or less"
                raise _fault(
                    path,
                    number,
                    f"{name} must be a whole number, {size}, not '{cell.strip()[:40]}'",
                )
            values.append(value)
        if not any(values[column] for column in resources):
            raise _fault(path, number, "a job must ask for at least 1 unit of a resource")
        yield values


def _whole(cell: str) -> int | None:
    try:
        return int(cell)
    except ValueError:
        return None


def _sorted_by_arrival(path: Path, names: Sequence[str], table: NDArray[np.int64]) -> Trace:
    """The trace of a table with a row for each job: line number, then the columns."""
    columns = dict(zip(names, table.T[1:], strict=True))
    arrival, duration = columns.pop("arrival"), columns.pop("duration")
    job_class = columns.pop(_CLASS, np.zeros_like(arrival))
    order = np.argsort(arrival, kind="stable")
    arrival = arrival - arrival[order[0]]
    length = int(arrival[order[-1]]) + 1
    if length > _LARGEST:
        raise InputError(
            f"the arrivals of the trace {path} span {length:,} steps, but {_LARGEST:,} are the "
            f"most; write it in longer steps"
        )
    demand = np.stack(list(columns.values()), axis=1)
    jobs = JobSet.of(arrival[order], duration[order], demand[order], length, job_class[order])
    return Trace(path, tuple(columns), jobs, table[order, 0])


def _fault(path: Path, line: int | np.int64, text: str) -> InputError:
    return InputError(f"{path}, line {line}: {text}")


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot read the trace {path}: {error.strerror or error}")
