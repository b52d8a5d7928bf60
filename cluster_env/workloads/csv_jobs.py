"""Jobs in a CSV file, in seconds."""

import csv
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.numbers import as_shown, read_number, rounded_up
from cluster_env.workloads.recorded import RecordedJobs, to_ids

RESOURCES = ("processors", "memory", "gpus")
_ALIASES = {"submit": "arrival", "run": "duration", "cpus": "processors", "cpu": "processors"}
_ALIASES |= {"gpu": "gpus", "limit": "estimate"}
_TIMES = ("arrival", "duration", "estimate", "wait")
_IDS = ("user", "group", "queue")
_LARGEST = 2**31 - 1
_SURELY_UNIX = 10**9  # seconds since 1970 reached it in 2001


def read_csv_jobs(path: Path | str) -> RecordedJobs:
    """Reads jobs; the latest files are remembered as long as they do not change.

    The header names the columns, in any order: ``arrival`` (seconds, by any clock), ``duration``
    (seconds, above 0), ``processors``; and if there are such, ``estimate`` (seconds, else the
    duration), ``wait`` (seconds that the job waited at the site), ``memory``, ``gpus``, and
    ``user``, ``group`` and ``queue`` (any text). The names ``submit``, ``run``, ``limit``, ``cpus``
    and ``gpu`` are known, too. Jobs need not be sorted. The file may be compressed with gzip.

    Raises:
        InputError: if the file cannot be read, or a line is wrong; it names line and column.
    """
    path = Path(path)
    return _read_version(path, *version_of(path, "the jobs"))


@lru_cache(maxsize=4)
def _read_version(path: Path, modified_ns: int, size: int) -> RecordedJobs:
    try:
        with opened(path, "the jobs") as file:
            lines = csv.reader(file)
            names = _names(path, next(lines, []))
            rows = [
                _row(path, lines.line_num, names, cells)
                for cells in lines
                if any(cell.strip() for cell in cells)
            ]
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"the jobs {path} are no CSV file in UTF-8") from None
    if not rows:
        raise InputError(f"{path} holds no job")
    columns = dict(zip(("line", *names), zip(*rows, strict=True), strict=True))
    return _sorted(path, {name: list(column) for name, column in columns.items()})


def _names(path: Path, cells: Iterable[str]) -> list[str]:
    given = [cell.strip().lower() for cell in cells]
    names = [_ALIASES.get(name, name) for name in given]
    known = (*_TIMES, *RESOURCES, *_IDS)
    for name in names:
        if name not in known or names.count(name) > 1:
            why = "stands twice" if name in known else "is none of them"
            raise InputError(
                f"{path}, line 1: a header is needed with names of {', '.join(known)}, each at "
                f"most once, but '{as_shown(name)}' {why}"
            )
    for name in ("arrival", "duration", "processors"):
        if name not in names:
            raise InputError(
                f"{path}, line 1: the header lacks the column {name}; it needs arrival, duration "
                f"and processors, as in arrival,duration,estimate,processors,gpus"
            )
    return names


def _row(path: Path, line: int, names: list[str], cells: list[str]) -> list[Any]:
    if len(cells) != len(names):
        raise InputError(
            f"{path}, line {line}: {len(names)} values are expected, but there are {len(cells)}"
        )
    values: list[Any] = [line]
    for name, cell in zip(names, cells, strict=True):
        text = cell.strip()
        if name in _IDS:
            values.append(text)
            continue
        value = read_number(text)
        least = 0 if name in ("arrival", "wait", "memory", "gpus") else 1e-9
        most = 2**53 if name == "arrival" else _LARGEST
        whole = name in RESOURCES and value is not None and value != int(value)
        if value is None or whole or not least <= value <= most:
            what = "a whole number" if name in RESOURCES else "a number of seconds"
            least_words = "0 or more" if least == 0 else "above 0"
            raise InputError(
                f"{path}, line {line}: {name} must be {what}, {least_words} and at most {most:,}, "
                f"not '{as_shown(text)}'"
            )
        values.append(value)
    return values


def _sorted(path: Path, columns: dict[str, list[Any]]) -> RecordedJobs:
    arrival = np.floor(np.array(columns["arrival"], np.float64)).astype(np.int64)
    order = np.argsort(arrival, kind="stable")

    def seconds(name: str) -> Any:
        return rounded_up(np.array(columns[name], np.float64)[order])

    resources = tuple(name for name in RESOURCES if name in columns)
    run = seconds("duration")
    ids = {name: to_ids(np.array(columns[name])[order]) for name in _IDS if name in columns}
    return RecordedJobs.of(
        path,
        submit=arrival[order],
        run=run,
        estimate=seconds("estimate") if "estimate" in columns else run,
        demand=np.stack([np.array(columns[name], np.int64)[order] for name in resources], axis=1),
        resources=resources,
        ids={name: numbers for name, (numbers, _) in ids.items()},
        names={name: names for name, (_, names) in ids.items()},
        line=np.array(columns["line"], np.int64)[order],
        wait=seconds("wait") if "wait" in columns else None,
        epoch=0 if arrival.min() >= _SURELY_UNIX else None,
    )
