"""Accounting logs of PBS (OpenPBS, PBS Professional, Torque) as records.

A line is ``date time;type;job;key=value key=value ...``. A record of type E is the end of a run,
R that of a run that is queued again; the others tell what happened before and in between.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO, TypeVar

from cluster_env.workloads.clock import Clock, Unreadable
from cluster_env.workloads.records import (
    PART_OF_GPU,
    BadRow,
    Findings,
    Record,
    Request,
    records_of,
    with_times,
    wrong_value,
)
from cluster_env.workloads.slurm.values import count, length_s, predecessors

T = TypeVar("T")

_LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]);([^;]*);(.*)", re.DOTALL)
_PAIR = re.compile(r"([\w.]+)=(\"[^\"]*\"|'[^']*'|\S*)")
_JOB = re.compile(r"(\d{1,15})(?:\[(\d*)\])?")
_MEMORY = re.compile(r"(\d{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)
_MIB = {"": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}
_WORD = 8  # bytes of a word, another unit of memory
_ENDS = {"E": "ENDED", "R": "REQUEUED"}


def is_line(line: str) -> bool:
    """Whether a file that begins with this line is an accounting log of PBS."""
    return _LINE.match(line) is not None


def read_lines(path: Path, text: TextIO, clock: Clock, findings: Findings) -> Iterator[Record]:
    """Records of all runs that ended; the other lines are counted in ``findings``.

    All runs of a job have its first times; one after a requeue came when the run before it ended.
    """
    requeued: dict[tuple[int, int], int] = {}
    for record in records_of(path, text, clock, findings, _record_of):
        job = record.job, record.element
        came, submit, start = requeued.get(job), record.submit, record.start
        if None not in (came, submit, start) and submit <= came <= start:  # type: ignore[operator]
            yield replace(record, submit=came, eligible=came)
        else:
            yield record
        if record.state == _ENDS["R"] and record.end is not None:
            requeued[job] = record.end


def _record_of(
    path: Path, number: int, line: str, clock: Clock, findings: Findings
) -> Record | None:
    """The record of a line; none where it is not the end of a run, which is counted."""
    match = _LINE.fullmatch(line)
    if match is None:
        what = "a line begins with MM/DD/YYYY hh:mm:ss;E;JOB; as PBS writes it"
        raise BadRow(path, number, f"{what}, but this one does not")
    kind, name, rest = match.groups()
    if kind not in _ENDS:
        findings.drop(f"has not ended in this record (type {kind})", number)
        return None
    job = _JOB.match(name)
    if job is None:
        raise wrong_value(path, number, "the job", "a number as 123.server", name)
    if job[2] == "":
        findings.drop("is an array as a whole, whose elements count", number)
        return None
    pairs = dict(_PAIR.findall(rest))
    failed = kind == "E" and pairs.get("Exit_status", "0") != "0"
    state = "FAILED" if failed else _ENDS[kind]
    return _Line(path, number, pairs).record(state, job, clock, findings)


class _Line:
    """The pairs of one line."""

    def __init__(self, path: Path, line: int, pairs: Mapping[str, str]) -> None:
        self.path, self.line, self.pairs = path, line, pairs

    def get(self, *names: str) -> str:
        """The text of the first of some keys that the line has."""
        return next((self.pairs[name].strip("\"'") for name in names if name in self.pairs), "")

    def read(self, name: str, reader: Callable[[str], T]) -> T:
        """The value of a key; a wrong one is named by its key."""
        try:
            return reader(self.get(name))
        except Unreadable as error:
            raise wrong_value(self.path, self.line, name, str(error), self.get(name)) from None

    def record(self, state: str, job: re.Match[str], clock: Clock, findings: Findings) -> Record:
        """The record of a line; notices what only the text tells."""
        came = "ctime" if self.get("ctime") else "qtime"
        times = [self.read(name, clock.readings) for name in (came, "etime", "start", "end")]
        if times[0] == (None,):
            raise wrong_value(self.path, self.line, "ctime", "a time", "")
        if job[2]:
            findings.notice("element of an array: a job of its own", self.line)
        nodes, processors, gpus = self._held(findings)
        limit = self.read("Resource_List.walltime", _length)
        record = Record(
            line=self.line,
            job=int(job[1]),
            element=int(job[2]) if job[2] else -1,
            het=0,
            state=state,
            elapsed=self.read("resources_used.walltime", _length),
            limit=limit or None,
            no_limit="",
            held=bool(self.get("exec_host", "exec_vnode")),
            processors=processors or nodes,
            memory=self.read("Resource_List.mem", _memory_mib),
            gpus=gpus,
            user=self.get("user"),
            account=self.get("account", "group"),
            partition=self.get("queue"),
            request=self._request(int(job[1]) if job[2] else 0),
        )
        return with_times(record, findings, *times)

    def _request(self, array: int) -> Request:
        """What else the job asked for; only Torque's nodes are separate ones."""
        nodes = self.read("Resource_List.nodect", count) if self.get("Resource_List.nodes") else 0
        after, after_ok = predecessors(self.get("depend").replace(".", ":."))
        places = self.get("Resource_List.place").split(":")
        return Request(
            reservation=self.get("resvID", "resvname"),
            nodes=nodes if nodes > 1 else 0,
            exclusive=any(place.startswith("excl") for place in places),
            array=array,
            after=after,
            after_ok=after_ok,
        )

    def _held(self, findings: Findings) -> tuple[int, int, int]:
        """Nodes, processors and GPUs, from the first of the places in which they may stand."""
        nodes = self.read("Resource_List.nodect", count)
        processors = self.read("Resource_List.ncpus", count)
        gpus = max(self.read(f"Resource_List.{name}", _share) for name in ("ngpus", "gpus"))
        # Torque: nodes=2:ppn=8:gpus=1+1:ppn=4, or names of nodes in place of numbers.
        parts = []
        for part in self.get("Resource_List.nodes").split("+"):
            first, *options = part.split(":")
            own = dict(option.split("=", 1) for option in options if "=" in option)
            num = int(first) if first.isdecimal() and len(first) < 10 else int(bool(first))
            parts.append([num * _whole(own.get(name, "")) for name in ("ppn", "gpus")])
            parts[-1][0] = parts[-1][0] or num
        if not processors:
            processors = sum(part[0] for part in parts)
        if not processors:  # n1/0*8+n2/0*8, or in Torque a slot each: n1/0+n1/1, n1/0-7
            processors = sum(map(_slots, filter(None, self.get("exec_host").split("+"))))
        if gpus != int(gpus):
            findings.notice(PART_OF_GPU, self.line)
        return nodes, processors, math.ceil(gpus) or sum(part[1] for part in parts)


def _length(text: str) -> int | None:
    """Seconds of a length of time, or of a number of them; None if it is not said."""
    if not text:
        return None
    return int(text) if text.isdecimal() and len(text) <= 10 else length_s(text)


def _memory_mib(text: str) -> int | None:
    """Mebibytes, rounded up; None if it is not said."""
    if not text:
        return None
    found = _MEMORY.fullmatch(text)
    if not found:
        raise Unreadable("memory like 4gb or 4000mb")
    size = int(found[1]) * _MIB[found[2].lower()]
    return math.ceil(size * (_WORD if found[3].lower() == "w" else 1))


def _share(text: str) -> float:
    if text and not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        raise Unreadable("a number")
    return float(text or 0)


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _slots(host: str) -> int:
    """Processors of an entry of exec_host: ``n1/0*8`` and ``n1/0-7`` are eight."""
    slots = host.partition("/")[2]
    _, star, times = slots.partition("*")
    if star:
        return _whole(times)
    total = 0
    for part in slots.split(","):
        first, dash, last = part.partition("-")
        total += max(_whole(last) - _whole(first) + 1, 1) if dash else 1
    return total
