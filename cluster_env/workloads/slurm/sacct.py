"""Rows of ``sacct --parsable2`` as records.

The header names the columns, in any order and with any delimiter. Of the columns that Slurm knows
only those are read that say when and how large; job names are read never, though they may hold the
delimiter and so move what stands behind them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO, TypeVar

from cluster_env.core.errors import InputError
from cluster_env.workloads.numbers import as_shown
from cluster_env.workloads.slurm import values
from cluster_env.workloads.slurm.record import Findings, Record, wrong_value
from cluster_env.workloads.slurm.values import Clock, Unreadable

T = TypeVar("T")

FREE_TEXTS = {"jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline"}
FREE_TEXTS |= {"extra", "constraints", "container"}
"""Columns whose texts users may choose, delimiter and all."""

_NEEDED = (
    ("JobIDRaw", "JobID"),
    ("State",),
    ("Submit",),
    ("Start",),
    ("End",),
    ("AllocCPUS", "NCPUS", "AllocTRES"),
)
_EXAMPLE = "sacct --allusers --duplicates --parsable2 --format=JobIDRaw,JobID,State,..."
_DELIMITER = re.compile(r"\w+([^\w\s]+|\t)?")
_HET = re.compile(r"(\d+)\+\d+")
_WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}


def is_header(line: str) -> bool:
    """Whether a file that begins with this line is an export of sacct."""
    words = {word.lower() for word in re.findall(r"\w+", line)}
    return bool(words & {"jobid", "jobidraw"}) and bool(words & {"submit", "start", "state"})


class SacctColumns:
    """Where the columns stand, and how a line falls apart into cells."""

    def __init__(self, path: Path, line: int, header: str) -> None:
        self.path = path
        first = _DELIMITER.match(header)  # the first name, and what stands behind it
        if not is_header(header) or not first:
            raise InputError(
                f"{path}, line {line}: a header with names as JobIDRaw, State, Submit, Start, End "
                f"is needed; export without --noheader"
            )
        self.delimiter = first[1]
        if not self.delimiter:
            raise InputError(
                f"{path}, line {line}: columns are padded with spaces, so that long values are cut "
                f"off; export with --parsable2"
            )
        self.header = header
        names = header.split(self.delimiter)
        self.closed = names[-1] == ""  # --parsable ends lines with a delimiter
        self.names = [name.strip().lower() for name in (names[:-1] if self.closed else names)]
        for choice in _NEEDED:
            if not any(name.lower() in self.names for name in choice):
                raise InputError(
                    f"{path}, line {line}: the header lacks the column {' or '.join(choice)}; "
                    f"export it with {_EXAMPLE}"
                )
        self.free = [k for k, name in enumerate(self.names) if name in FREE_TEXTS]
        self.place = {name: self.names.index(name) for name in self.names}

    def cells(self, line: int, text: str) -> list[list[str]]:
        """The ways in which a line falls apart into cells: one, or one for each free text."""
        cells = text.split(self.delimiter)
        if self.closed and cells[-1] == "":
            cells.pop()
        more = len(cells) - len(self.names)
        if not more:
            return [cells]
        # A job's name may hold the delimiter: each text that users choose could be the one.
        if more < 0 or not self.free:
            raise InputError(
                f"{self.path}, line {line}: {len(self.names)} values are expected, but there are "
                f"{len(cells)}"
            )
        return [[*cells[:k], "", *cells[k + more + 1 :]] for k in self.free]


def read_rows(path: Path, text: TextIO, clock: Clock, findings: Findings) -> Iterator[Record]:
    """Records of all rows that are jobs; the others are counted in ``findings``.

    Raises:
        InputError: if the header lacks a column, or a value is wrong; it names line and field.
    """
    columns: SacctColumns | None = None
    clusters: set[str] = set()
    for number, ended in enumerate(text, start=1):
        line = ended.rstrip("\r\n")
        if not line.strip():
            continue
        if columns is None:
            columns = SacctColumns(path, number, line)
            continue
        findings.rows += 1
        # What is no job: the header of a second export, and steps of jobs.
        if line == columns.header:
            findings.drop("is no job but the header once more", number)
            continue
        ways = [_Row(columns, number, cells) for cells in columns.cells(number, line)]
        if any("." in ways[0].get(name) for name in ("jobid", "jobidraw")):
            findings.drop("is a step of a job", number)
            continue
        # Where the line could be cut in several ways, all of them have to make the same job.
        row = ways[0]
        if not row.is_whole(line):
            fitting = _that_agree(ways, clock)
            if fitting is None:
                findings.drop("has the delimiter in its texts, who knows where", number)
                continue
            row = fitting
            findings.notice("has the delimiter in its name: put together", number)
        clusters.add(row.get("cluster"))
        if len(clusters) > 1:
            raise InputError(
                f"{path}, line {number}: the log holds jobs of several clusters, of which this one "
                f"is '{as_shown(row.get('cluster'))}'; export each by itself, with --clusters"
            )
        yield row.record(clock, findings)
    if columns is None:
        raise InputError(f"{path} holds no job")


def _that_agree(ways: Sequence["_Row"], clock: Clock) -> "_Row | None":
    """The row, if all ways to cut it that make a job make the same job."""
    records: dict[Record, _Row] = {}
    for row in ways:
        with suppress(InputError):  # a way that makes no job
            records.setdefault(row.record(clock, Findings()), row)
    return next(iter(records.values())) if len(records) == 1 else None


class _Row:
    """One line, whose values are read by the names of their columns."""

    def __init__(self, columns: SacctColumns, line: int, cells: Sequence[str]) -> None:
        self.columns, self.line, self.cells = columns, line, cells

    def get(self, *names: str) -> str:
        """The text of the first of some columns that the file has; nothing if it has none."""
        for name in names:
            place = self.columns.place.get(name)
            if place is not None:
                return self.cells[place].strip()
        return ""

    def is_whole(self, line: str) -> bool:
        """Whether the cells are all that stands in the line."""
        return self.columns.delimiter.join(self.cells) == line.removesuffix(
            self.columns.delimiter if self.columns.closed else ""
        )

    def has(self, name: str) -> bool:
        return name in self.columns.place

    def wrong(self, name: str, expected: str) -> InputError:
        return wrong_value(self.columns.path, self.line, name, expected, self.get(name.lower()))

    def read(self, name: str, reader: Callable[[str], T], text: str | None = None) -> T:
        """The value of a column, or of a part of its text; a wrong one is named by its column."""
        try:
            return reader(self.get(name.lower()) if text is None else text)
        except Unreadable as error:
            raise self.wrong(name, str(error)) from None

    def number(self, *names: str) -> int:
        name = next((one for one in names if self.has(one.lower())), names[0])
        return self.read(name, values.count)

    def record(self, clock: Clock, findings: Findings) -> Record:
        """The record of a row; notices what only the text tells."""
        number = re.match(r"\d{1,18}", self.get("jobidraw", "jobid"))
        if not number:
            raise self.wrong("JobIDRaw" if self.has("jobidraw") else "JobID", "a job's number")
        # JobID tells arrays and heterogeneous jobs: 18_[0-3], 18_2, 20+1.
        shown = self.get("jobid")
        num_tasks, het = values.num_tasks(shown), _HET.match(shown)
        if num_tasks > 1 or "_[" in shown:
            findings.notice("elements of arrays in one row", self.line, num_tasks)
        elif "_" in shown:
            findings.notice("element of an array: a job of its own", self.line)
        submit, eligible, start, end = (
            self.read(name, clock.seconds) for name in ("Submit", "Eligible", "Start", "End")
        )
        if submit is None:
            raise self.wrong("Submit", "a time")
        findings.doubt(clock.doubts(), self.line)
        state = re.match(r"[A-Z_]+", self.get("state"))  # of "CANCELLED by 1000" the first word
        if not state:
            raise self.wrong("State", "a word like COMPLETED")
        limit_name = "TimelimitRaw" if self.has("timelimitraw") else "Timelimit"
        limit = self.read(limit_name, values.limit_s)
        elapsed: int | None = None
        if self.has("elapsedraw"):
            elapsed = self.number("ElapsedRaw")
        elif self.get("elapsed"):
            elapsed = self.read("Elapsed", values.length_s)
        ran, processors, memory, gpus = self._held(findings)
        return Record(
            line=self.line,
            job=int(number[0]),
            het=int(het[1]) if het else 0,
            state=state[0],
            submit=submit,
            eligible=eligible,
            start=start,
            end=end,
            elapsed=elapsed,
            limit=limit,
            no_limit="" if limit else self.get(limit_name.lower()),
            ran=ran and start is not None,
            processors=processors,
            memory=memory,
            gpus=gpus,
            user=self.get("user", "uid"),
            account=self.get("account", "group", "gid"),
            partition=self.get("partition"),
        )

    def _held(self, findings: Findings) -> tuple[bool, int, int | None, int]:
        """Whether it ran; processors, MiB and GPUs that it held."""
        held = self.read("AllocTRES", values.resources)
        requested = held or self.read("ReqTRES", values.resources)
        # Slurm's own count of processors goes before that of its trackable resources.
        processors = self.number("AllocCPUS", "NCPUS")
        if not self.has("alloccpus") and not self.has("ncpus"):
            processors = self.read("AllocTRES", values.count, held.get("cpu", ""))
        # A job that never started holds nothing; its AllocCPUS may say what it asked for.
        ran = bool(held) if self.has("alloctres") else processors > 0
        if not ran:
            return False, processors, None, 0
        if self.has("reqcpus") and 0 < self.number("ReqCPUS") < processors:
            findings.notice("holds more processors than it asked for", self.line)
        try:
            gpus, typed = values.gpus_of(requested)
        except Unreadable as error:
            raise self.wrong("AllocTRES", str(error)) from None
        if typed:
            findings.notice("names the type of its GPUs: counted once", self.line)
        name = "AllocTRES" if "mem" in held else "ReqMem"
        memory = self.read(name, values.memory_mib, held.get("mem"))
        if memory is None:
            return True, processors, None, gpus
        mib, per = memory
        if per:  # before Slurm 21.08, ReqMem says it for each core or each node
            findings.notice("asks for memory per core or node (old Slurm)", self.line)
            nodes = self.number("NNodes", "AllocNodes")
            nodes = nodes or self.read("AllocTRES", values.count, held.get("node", "")) or 1
            mib *= processors if per == values.PER_CORE else nodes
        return True, processors, mib, gpus
