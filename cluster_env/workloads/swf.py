"""Job logs in the Standard Workload Format (SWF), read and written.

The format is that of the Parallel Workloads Archive: header comments behind semicolons, then one
job a line with 18 numbers, -1 for what is not known (Chapin et al., *Benchmarks and standards for
the evaluation of parallel job schedulers*, 1999; version 2.2). Files of the world break it in many
ways, and the reader forgives what does not change a number: tabs, CRLF, a missing last field or one
too many, numbers with fractions or exponents, comments between jobs, any order, any encoding; and
a few lines that cannot be read, which it counts.
"""

import codecs
import gzip
import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST
from cluster_env.workloads.files import encoding_of, open_bytes
from cluster_env.workloads.limits import LONGEST, estimates_of
from cluster_env.workloads.numbers import as_shown, read_number, rounded_up
from cluster_env.workloads.recorded import NOTHING, RecordedJobs, to_ids
from cluster_env.workloads.records import (
    NO_PROCESSOR,
    NO_RUN_TIME,
    TOO_EARLY,
    TOO_LARGE,
    BadRow,
    Findings,
    wrong_value,
)

FIELDS = (
    *("job", "submit", "wait", "run", "processors", "cpu", "memory", "requested_processors"),
    *("requested_time", "requested_memory", "status", "user", "group", "application", "queue"),
    *("partition", "preceding_job", "think_time"),
)
"""Names of the 18 fields, in order."""

_WITH_FRACTIONS = {"submit", "wait", "run", "cpu", "memory", "requested_time", "requested_memory"}
_WITH_FRACTIONS |= {"think_time"}
_FEWEST, _MOST = 17, 19  # numbers in a line that can still be told apart
_PLAIN = re.compile(r"[0-9eE+\-. \t]*")  # numbers that numpy and Python read alike
_HEADER = re.compile(r";\s*(\w+)\s*:\s*(.*?)\s*$")
_PARTS = (2, 3, 4)
"""Status of a line that is a part of an execution: goes on, the last of one that completed, the
last of one that failed. The whole job has a line of its own before them."""

_FAILED = (0, 5)
"""Status of a job that failed, or was cancelled."""

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SwfFile:
    """What stands in a file, unchanged and in its order.

    Attributes:
        path: the file.
        header: first value of each header field but ``Note``, such as ``MaxProcs``.
        columns: by name (`FIELDS`), ``(num_lines,)``: float64 where fractions occur in the wild,
            int64 elsewhere.
        line: int64 ``(num_lines,)``, the line that each job stands in, from 1.
        bad: lines that cannot be read; the columns do not have them.
    """

    path: Path
    header: Mapping[str, str]
    columns: Mapping[str, NDArray[Any]]
    line: NDArray[np.int64]
    bad: tuple[BadRow, ...] = ()

    @property
    def processors(self) -> int | None:
        """Size of the machine, ``MaxProcs`` or else ``MaxNodes``; None if the header has neither.

        Raises:
            InputError: if it is no whole number above 0.
        """
        for name in ("MaxProcs", "MaxNodes"):
            text = self.header.get(name, "").split()
            if text and text[0] not in ("-1", "unknown", "Unknown"):
                value = read_number(text[0])
                if value is None or value != int(value) or not 0 < value <= LARGEST:
                    raise InputError(
                        f"{self.path}: {name} in the header must be a whole number above 0, not "
                        f"'{as_shown(text[0])}'"
                    )
                return int(value)
        return None

    @property
    def epoch(self) -> int | None:
        """``UnixStartTime``, Unix time of second 0; None if the header has none that is a time."""
        value = read_number(self.header.get("UnixStartTime", "").partition(" ")[0])
        return int(value) if value is not None and 0 < value < 2**33 else None

    def jobs(self, missing_limits: str = LONGEST) -> RecordedJobs:
        """The jobs that can be scheduled, by time of submission, and what was left out and why.

        The size is what was allocated, or where that is missing, requested. The estimate is the
        requested time, or where that is missing, what `missing_limits` says; see
        `cluster_env.workloads.limits`. Seconds are rounded up.

        Raises:
            InputError: if no job is left, or the log spans more than 68 years.
        """
        columns = self.columns
        findings = Findings(rows=self.line.size + len(self.bad))
        for row in self.bad:
            findings.spoil(row)
        allocated, requested = columns["processors"], columns["requested_processors"]
        size = np.where(allocated > 0, allocated, requested)
        run, limit = columns["run"], columns["requested_time"]
        part = np.isin(columns["status"], _PARTS)
        again = part & np.isin(columns["job"], columns["job"][~part])
        left_out = {
            "is a part (status 2, 3 or 4) of a job that counts as a whole": again,
            NO_RUN_TIME: run <= 0,
            NO_PROCESSOR: size <= 0,
            TOO_EARLY: columns["submit"] < 0,
            TOO_LARGE: np.maximum.reduce(
                [run, limit, size.astype(np.float64), np.abs(columns["submit"]) / 2**22]
            )
            > LARGEST,
        }
        # A job that is left out for several reasons counts for the first.
        kept = np.ones(self.line.size, np.bool_)
        for reason, broken in left_out.items():
            new = kept & broken
            if new.any():
                findings.drop(reason, int(self.line[new][0]), int(new.sum()))
            kept &= ~broken
        findings.require_readable(int(kept.sum()))
        if not kept.any():
            raise findings.no_job(self.path)
        # Stable: jobs of one second stay in the order of the file.
        order = np.argsort(columns["submit"][kept], kind="stable")
        rows = np.flatnonzero(kept)[order]
        line, run_s = self.line[rows], rounded_up(run[rows])
        noticed = {
            "is a part (status 2, 3 or 4) of a job without a line of its own": part,
            "names a job that it came after (fields 17, 18): arrives as recorded": (
                columns["preceding_job"] > 0
            ),
        }
        for what, those in noticed.items():
            if those[rows].any():
                findings.notice(what, int(line[those[rows]].min()), int(those[rows].sum()))
        ids = {name: to_ids(columns[name][rows]) for name in ("user", "group", "queue")}
        # Waits are of use only if all are there: a mean over some would be of other jobs.
        wait = np.clip(columns["wait"][rows], NOTHING, LARGEST)
        return RecordedJobs.of(
            self.path,
            submit=np.floor(columns["submit"][rows]).astype(np.int64),
            run=run_s,
            estimate=estimates_of(rounded_up(limit[rows]), run_s, line, missing_limits, findings),
            demand=size[rows, None].astype(np.int64),
            resources=("processors",),
            ids={name: numbers for name, (numbers, _) in ids.items()},
            names={name: names for name, (_, names) in ids.items()},
            line=line,
            wait=rounded_up(wait) if (wait >= 0).all() else None,
            processors=self.processors,
            epoch=self.epoch,
            dropped=findings.all_dropped(),
            noticed=findings.all_noticed(),
            rows=findings.rows,
            details=_details(columns, rows),
        )


def _details(columns: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> Columns:
    """What only the description of a site makes use of, of some lines."""
    details: Columns = {
        "partition": columns["partition"][rows].astype(np.int64),
        "job": columns["job"][rows].astype(np.int64),
        "failed": np.isin(columns["status"][rows], _FAILED).astype(np.int64),
    }
    after = columns["preceding_job"][rows].astype(np.int64)
    if (after > 0).any():
        details["after"] = np.where(after > 0, after, NOTHING)[:, None]
        think = np.clip(columns["think_time"][rows], 0, LARGEST)
        details["think_s"] = rounded_up(think)
    return details


def read_swf(path: Path | str) -> SwfFile:
    """Reads a log, plain or compressed with gzip.

    A few lines that hold something else than 17 to 19 numbers are told in `SwfFile.bad`.

    Raises:
        InputError: if the file cannot be read, or too many lines are bad; it names the first and
            the field.
    """
    path = Path(path)
    every = _lines(path)
    lines = [number for number, text in enumerate(every, start=1) if text and text[0] != ";"]
    header: dict[str, str] = {}
    # The header ends with the first job; what is set twice counts as the first says.
    for text in every[: lines[0] - 1 if lines else None]:
        field = _HEADER.match(text)
        if field and field[1] != "Note":
            header.setdefault(field[1], field[2])
    texts = [every[number - 1] for number in lines]
    columns = _at_once(texts)
    bad: tuple[BadRow, ...] = ()
    if columns is None:
        columns, bad = _one_by_one(path, lines, texts)
        Findings(rows=len(lines), bad=list(bad)).require_readable(len(lines) - len(bad))
    kept = np.array(lines, np.int64)
    return SwfFile(path, header, columns, kept[~np.isin(kept, [row.line for row in bad])], bad)


def write_swf(
    path: Path | str,
    columns: Mapping[str, Sequence[float] | NDArray[Any]],
    header: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes jobs, one a line in the order given; what has no column (`FIELDS`) becomes -1.

    ``job`` counts from 1 if it is left out. The file is compressed if its name ends in ``.gz``.

    Raises:
        InputError: for an unknown column, or columns of different lengths.
    """
    path = Path(path)
    unknown = [name for name in columns if name not in FIELDS]
    sizes = {len(column) for column in columns.values()}
    if unknown or len(sizes) != 1:
        wrong = f"'{unknown[0]}' is none of {', '.join(FIELDS)}" if unknown else "they differ"
        raise InputError(f"SWF needs equally long columns with the names of its fields: {wrong}")
    (count,) = sizes
    table = {name: columns.get(name, np.full(count, -1)) for name in FIELDS}
    table["job"] = columns.get("job", np.arange(1, count + 1))
    # Whole numbers without a point, as other readers expect them.
    head = "".join(f"; {name}: {value}\n" for name, value in {"Version": 2.2, **header}.items())
    text = head + "".join(
        " ".join(f"{float(value):.10g}" if value % 1 else str(int(value)) for value in row) + "\n"
        for row in zip(*table.values(), strict=True)
    )
    data = text.encode()
    # Without a time inside, the same jobs give the same file.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _lines(path: Path) -> list[str]:
    """The lines of a log without blanks at their ends."""
    try:
        with open_bytes(path) as file:
            data = file.read()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"cannot read the log {path}: {error}") from None
    # Comments may be in any encoding; numbers are the same in all that have one byte for a digit.
    encoding = "utf-16" if encoding_of(data[:2]) == "utf-16" else "latin-1"
    text = data.removeprefix(codecs.BOM_UTF8).decode(encoding, "replace")
    return [*map(str.strip, text.split("\n"))]


def _at_once(texts: list[str]) -> Columns | None:
    """The columns; None where a line is unlike the others.

    It is quick, but cannot say what is wrong where. So it takes only lines that are beyond doubt.
    """
    count = len(texts[0].split()) if texts else 0
    if not _FEWEST <= count <= _MOST or not _PLAIN.fullmatch("".join(texts)):
        return None
    kinds = [(name, _kind(name)) for name in FIELDS[:count]]
    kinds += [("unread", np.float64)] * (count - len(kinds))  # a field too many
    try:
        # numpy only warns where it cuts a fraction off to get a whole number.
        with warnings.catch_warnings(action="error"):
            table = np.loadtxt(texts, np.dtype(kinds), comments=None, ndmin=1)
    except (ValueError, Warning):
        return None
    columns = {name: table[name].copy() for name in FIELDS[:count]}
    # Beyond 64 bits a float has no digit right: the careful reader names the line.
    if any((np.abs(columns[name]) >= 2.0**63).any() for name in _WITH_FRACTIONS & {*columns}):
        return None
    return columns | {name: np.full(table.size, NOTHING, _kind(name)) for name in FIELDS[count:]}


def _one_by_one(
    path: Path, lines: list[int], texts: list[str]
) -> tuple[Columns, tuple[BadRow, ...]]:
    """The columns of the lines that can be read, and those that cannot."""
    rows, bad = [], []
    for number, text in zip(lines, texts, strict=True):
        try:
            rows.append(_numbers(path, number, text.split()))
        except BadRow as row:
            bad.append(row)
    columns = {name: [row[k] for row in rows] for k, name in enumerate(FIELDS)}
    return {name: np.array(column, _kind(name)) for name, column in columns.items()}, tuple(bad)


def _kind(name: str) -> type[Any]:
    return np.float64 if name in _WITH_FRACTIONS else np.int64


def _numbers(path: Path, line: int, cells: list[str]) -> list[Any]:
    """The numbers of a line: a field too many is not read, one that is missing is not known."""
    if not _FEWEST <= len(cells) <= _MOST:
        more = "; SWF ends with these, so delete the others" if len(cells) > _MOST else ""
        raise BadRow(path, line, f"a job has 18 numbers, but {len(cells)} stand here{more}")
    values: list[Any] = []
    for name, cell in zip(FIELDS, cells, strict=False):
        value = read_number(cell)
        whole = name not in _WITH_FRACTIONS
        if value is None or (whole and value != int(value)) or not -(2**63) <= value < 2**63:
            what = "a whole number" if whole else "a number"
            raise wrong_value(path, line, name.replace("_", " "), what, cell)
        values.append(int(value) if whole else value)
    return values + [NOTHING] * (len(FIELDS) - len(values))
