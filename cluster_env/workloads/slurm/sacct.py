"""Rows of ``sacct --parsable2`` as records; those of ``sacct --json`` come in the same cells.

The header names the columns, in any order and with any delimiter. Of the columns that Slurm knows
only those are read that say when and how large; job names are read never, though they may hold the
delimiter and so move what stands behind them.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TextIO, TypeVar

from cluster_env.core.errors import InputError
from cluster_env.workloads.clock import Clock, Unreadable
from cluster_env.workloads.numbers import as_shown
from cluster_env.workloads.records import (
    PART_OF_GPU,
    BadRow,
    Findings,
    Record,
    Request,
    with_times,
    wrong_value,
)
from cluster_env.workloads.slurm import values

T = TypeVar("T")

FREE_TEXTS = {"jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline"}
FREE_TEXTS |= {"extra", "constraints", "container"}
"""Columns whose texts users may choose, delimiter and all."""
TYPED = "submitline"
"""The one that holds a whole command."""

_NEEDED = (
    ("JobIDRaw", "JobID"),
    ("State",),
    ("Submit",),
    ("Start",),
    ("End",),
    ("AllocCPUS", "NCPUS", "AllocTRES"),
)
STEP = "is a step of a job"
_EXAMPLE = "sacct --allusers --duplicates --parsable2 --format=JobIDRaw,JobID,State,..."
_DELIMITER = re.compile(r"\w+([^\w\s]+|\t)?")
_NUMBER = re.compile(r"\d+([_+.\[].*)?$")
_HET = re.compile(r"(\d{1,18})\+\d+")


def is_header(line: str) -> bool:
    """Whether a file that begins with this line is an export of sacct."""
    words = {word.lower() for word in re.findall(r"\w+", line)}
    return bool(words & {"jobid", "jobidraw"}) and bool(words & {"submit", "start", "state"})


class SacctColumns:
    """Where the columns stand, and how a line falls apart into cells."""

    def __init__(self, path: Path, line: int, header: str) -> None:
        self.path = path
        first = _DELIMITER.match(header.strip(" "))  # the first name, and what stands behind it
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
        self._delimiters = header.count(self.delimiter)
        self._number = self.place.get("jobidraw", self.place.get("jobid", 0))

    def cells(self, line: int, text: str) -> list[list[str]]:
        """The ways in which a line falls apart into cells: one, or one for each free text.

        Raises:
            BadRow: if there are too few values, or too many and none is a text of a user's own.
        """
        cells = text.split(self.delimiter)
        if self.closed and cells[-1] == "":
            cells.pop()
        more = len(cells) - len(self.names)
        if not more:
            return [cells]
        # A job's name may hold the delimiter: each text that users choose could be the one.
        if more < 0 or not self.free:
            expected = f"{len(self.names)} values are expected"
            raise BadRow(self.path, line, f"{expected}, but there are {len(cells)}")
        joined = self.delimiter.join
        return [
            [*cells[:k], joined(cells[k : k + more + 1]), *cells[k + more + 1 :]] for k in self.free
        ]

    def rows(self, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Rows with the numbers of their first lines; a text of a user's own may have several.

        Args:
            lines: with their numbers, from the one behind the header on.
        """
        first, row = 0, ""
        for number, line in lines:
            if row and self._goes_on(row, line):
                row = f"{row} {line}"
                continue
            if row:
                yield first, row
            first, row = number, line
        if row:
            yield first, row

    def _goes_on(self, row: str, line: str) -> bool:
        """Whether a line belongs to the row before: it begins no job, and something is missing."""
        if not self.free or line == self.header:
            return False
        cells = line.split(self.delimiter, self._number + 1)
        if len(cells) > self._number and _NUMBER.match(cells[self._number]):
            return False
        if row.count(self.delimiter) < self._delimiters:
            return True
        is_last = self.free[-1] == len(self.names) - 1
        return is_last and line.count(self.delimiter) < self._delimiters


def read_rows(path: Path, text: TextIO, clock: Clock, findings: Findings) -> Iterator[Record]:
    """Records of all rows that are jobs; the others are counted in ``findings``.

    Raises:
        InputError: if the header lacks a column, or the log is of several clusters.
    """
    ended = ((number, line.rstrip("\r\n")) for number, line in enumerate(text, start=1))
    lines = ((number, line) for number, line in ended if line.strip())
    header = next(lines, None)
    if header is None:
        raise InputError(f"{path} holds no job")
    columns = SacctColumns(path, *header)
    clusters: set[str] = set()
    for number, line in columns.rows(lines):
        findings.rows += 1
        # What is no job: the header of a second export, and steps of jobs.
        if line == columns.header:
            findings.drop("is no job but the header once more", number)
            continue
        try:
            row, record = _row_of(columns, number, line, clock, findings)
        except BadRow as bad:
            findings.spoil(bad)
            clock.doubts()  # of a row that counts for nothing else
            continue
        if record is None:
            continue
        clusters.add(row.get("cluster"))
        require_one_cluster(path, number, clusters, row.get("cluster"))
        yield record


def _row_of(
    columns: SacctColumns, number: int, line: str, clock: Clock, findings: Findings
) -> tuple["SacctRow", Record | None]:
    """A line as a row, and its record; none where it is no job, which is counted."""
    ways = [
        SacctRow(columns.path, number, dict(zip(columns.names, cells, strict=True)))
        for cells in columns.cells(number, line)
    ]
    row = ways[0]
    if row.is_step:
        findings.drop(STEP, number)
        return row, None
    if line.count(columns.delimiter) <= columns.header.count(columns.delimiter):
        return row, row.record(clock, findings)
    # Where the line could be cut in several ways, all of them have to make the same job. Else it is
    # what somebody typed, if that makes one: shells use what stands between columns.
    agreed = _that_agree(ways, clock) or _that_agree(
        [way for k, way in zip(columns.free, ways, strict=True) if columns.names[k] == TYPED], clock
    )
    if agreed is None:
        findings.drop("has the delimiter in its texts, who knows where", number)
        return row, None
    findings.notice("has the delimiter in its name: put together", number)
    fitting, request = agreed
    return fitting, replace(fitting.record(clock, findings), request=request)


def require_one_cluster(path: Path, line: int, clusters: set[str], name: str) -> None:
    """Refuses a log of several clusters, whose jobs never wait for each other.

    Raises:
        InputError: if there are several.
    """
    if len(clusters) > 1:
        raise InputError(
            f"{path}, line {line}: the log holds jobs of several clusters, of which this one is "
            f"'{as_shown(name)}'; export each by itself, with --clusters"
        )


def _that_agree(ways: Sequence["SacctRow"], clock: Clock) -> "tuple[SacctRow, Request] | None":
    """The row, if all ways to cut it that make a job make the same job; and its request.

    Where they only differ in what else the job asked for, that counts for nothing.
    """
    records: dict[Record, SacctRow] = {}
    requests: set[Request] = set()
    for row in ways:
        with suppress(InputError):  # a way that makes no job
            record = row.record(clock, Findings())
            records.setdefault(replace(record, request=Request()), row)
            requests.add(record.request)
    if len(records) != 1:
        return None
    return next(iter(records.values())), requests.pop() if len(requests) == 1 else Request()


_REQUEST = (
    *("qos", "reservation", "constraints", "reqnodes", "reqtres"),
    *("arraytaskthrottle", "dependency", "submitline"),
)
"""Columns of what only the description of a site makes use of."""


@lru_cache(maxsize=4096)  # most rows ask for what others ask for
def _request_of(
    array: str,
    qos: str,
    reservation: str,
    constraint: str,
    reqnodes: str,
    reqtres: str,
    throttle: str,
    *commands: str,
) -> Request:
    dependency, submit_line = commands
    line = values.submit_line(submit_line)
    after, after_ok = values.predecessors(dependency or line.dependency)
    nodes = 0
    with suppress(Unreadable):  # what is no number of nodes asks for none
        nodes = values.count(reqnodes or values.resources(reqtres).get("node", ""))
    return Request(
        qos=qos.strip(),
        reservation=reservation.strip(),
        constraint=constraint.strip(),
        nodes=line.nodes or (nodes if nodes > 1 else 0),
        exclusive=line.exclusive,
        array=int(array) if array.isdecimal() else 0,
        throttle=int(throttle) if throttle.isdecimal() else line.throttle,
        after=after,
        after_ok=after_ok,
    )


class SacctRow:
    """One job or step, whose values are read by the names of their columns, in small letters."""

    def __init__(self, path: Path, line: int, cells: Mapping[str, str]) -> None:
        self.path, self.line, self.cells = path, line, cells

    @property
    def is_step(self) -> bool:
        """Whether it is a step of a job: ``7.batch``."""
        return any("." in self.get(name) for name in ("jobid", "jobidraw"))

    def get(self, *names: str) -> str:
        """The text of the first of some columns that the file has; nothing if it has none."""
        for name in names:  # a generator would cost a third of the time that a row takes
            if name in self.cells:
                return self.cells[name].strip()
        return ""

    def has(self, name: str) -> bool:
        """Whether the file has a column."""
        return name in self.cells

    def wrong(self, name: str, expected: str) -> BadRow:
        """The refusal of what a column holds."""
        return wrong_value(self.path, self.line, name, expected, self.get(name.lower()))

    def read(self, name: str, reader: Callable[[str], T], text: str | None = None) -> T:
        """The value of a column, or of a part of its text; a wrong one is named by its column."""
        try:
            return reader(self.get(name.lower()) if text is None else text)
        except Unreadable as error:
            raise self.wrong(name, str(error)) from None

    def number(self, *names: str) -> int:
        """The whole number in the first of some columns that the file has; 0 if it has none."""
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
        times = [self.read(name, clock.readings) for name in ("Submit", "Eligible", "Start", "End")]
        doubts = clock.doubts()
        if times[0] == (None,):
            raise self.wrong("Submit", "a time")
        findings.doubt(doubts, self.line)
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
        held, processors, memory, gpus = self._held(findings)
        record = Record(
            line=self.line,
            job=int(number[0]),
            het=int(het[1]) if het else 0,
            state=state[0],
            elapsed=elapsed,
            limit=limit,
            no_limit="" if limit else self.get(limit_name.lower()),
            held=held,
            processors=processors,
            memory=memory,
            gpus=gpus,
            user=self.get("user", "uid"),
            account=self.get("account", "group", "gid"),
            partition=self.get("partition"),
            request=self._request(shown),
        )
        return with_times(record, findings, *times)

    def _request(self, shown: str) -> Request:
        """What else the job asked for, with what its command line says of it if that is known."""
        cells = self.cells
        array = shown.partition("_")[0] if "_" in shown else ""
        return _request_of(array, *(cells.get(name, "") for name in _REQUEST))

    def _held(self, findings: Findings) -> tuple[bool, int, int | None, int]:
        """Whether the log says that it was given something; its processors, MiB and GPUs."""
        held = self.read("AllocTRES", values.resources)
        # Slurm's own count of processors goes before that of its trackable resources.
        processors = self.number("AllocCPUS", "NCPUS")
        if not processors:
            processors = self.read("AllocTRES", values.count, held.get("cpu", ""))
        if not processors:
            return bool(held), 0, None, 0
        if held and self.has("reqcpus") and 0 < self.number("ReqCPUS") < processors:
            findings.notice("holds more processors than it asked for", self.line)
        nodes = self.number("NNodes", "AllocNodes")
        nodes = nodes or self.read("AllocTRES", values.count, held.get("node", "")) or 1
        name = "AllocTRES" if "mem" in held else "ReqMem"
        memory = self.read(name, values.memory_mib, held.get("mem"))
        gpus = self._gpus(held, nodes, findings)
        if memory is None:
            return bool(held), processors, None, gpus
        mib, per = memory
        if per:  # before Slurm 21.08, ReqMem says it for each core or each node
            findings.notice("asks for memory per core or node (old Slurm)", self.line)
            mib *= processors if per == values.PER_CORE else nodes
        return bool(held), processors, mib, gpus

    def _gpus(self, held: Mapping[str, str], nodes: int, findings: Findings) -> int:
        """GPUs in the first column that names some: AllocTRES, ReqTRES, AllocGRES, ReqGRES."""
        for name, said in (("AllocTRES", held), ("ReqTRES", None)):
            if said is None:
                said = {} if held else self.read(name, values.resources)
            try:
                gpus, typed = values.gpus_of(said)
            except Unreadable as error:
                raise self.wrong(name, str(error)) from None
            if gpus != int(gpus):
                findings.notice(PART_OF_GPU, self.line)
            if typed:
                findings.notice("names the type of its GPUs: counted once", self.line)
            if gpus:
                return math.ceil(gpus)
        # Before Slurm 20.11: what a job was given in all, or what it asked for on each node.
        given, asked = self.get("allocgres"), self.get("reqgres")
        held_in_all = values.gpus_of_gres(given) if given else 0
        return held_in_all or (nodes * values.gpus_of_gres(asked) if asked else 0)
