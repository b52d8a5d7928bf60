"""Lines of Slurm's ``jobcomp/filetxt`` as records: ``Key=Value`` pairs, one ended run a line.

Values are not escaped. A job may be named ``a JobState=COMPLETED`` or run in such a folder, so keys
are not searched for: the line as a whole has to fit the order in which Slurm writes them, and a
line that fits in two ways is no evidence of anything.
"""

import math
import re
from collections.abc import Callable, Iterator
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
from cluster_env.workloads.slurm import values

T = TypeVar("T")

_BEGIN = re.compile(r"JobId=\d+ ")
_NAMED = (
    r"JobId=(?P<job>\S*) (?P<head>.*?) ?Name=.*{shortest} (?P<run>JobState=\S+ Partition=\S* "
    r"TimeLimit=.*?) WorkDir=.*{shortest} (?P<tail>ReservationName=.*)"
)
_LINES = tuple(re.compile(_NAMED.format(shortest=mark)) for mark in ("", "?"))
_MOST_REPEATS = 20  # of a key in a line, or to try all ways would take seconds
_PAIR = re.compile(r"(\w+)=(\S*)")
_NEEDED = ("JobState", "StartTime", "EndTime", "NodeList", "NodeCnt", "ProcCnt", "SubmitTime")
_NOWHERE = {"", "(null)"}


def is_line(line: str) -> bool:
    """Whether a file that begins with this line was written by ``jobcomp/filetxt``."""
    return _BEGIN.match(line) is not None


def read_lines(path: Path, text: TextIO, clock: Clock, findings: Findings) -> Iterator[Record]:
    """Records of all lines that are jobs; the others are counted in ``findings``."""
    return records_of(path, text, clock, findings, _record_of)


def _record_of(
    path: Path, number: int, line: str, clock: Clock, findings: Findings
) -> Record | None:
    """The record of a line; none where it could be read in two ways, which is counted."""
    if not is_line(line):
        raise BadRow(
            path,
            number,
            "a job begins with JobId=NUMBER, as jobcomp/filetxt writes it, but this line does not",
        )
    # Keys inside of a name or folder: a line that fits in two ways is no evidence.
    forged = max(line.count(" JobState="), line.count(" WorkDir=")) > _MOST_REPEATS
    ways = [] if forged else _ways(line)
    if not ways and not forged:
        raise BadRow(path, number, _what_is_wrong(line))
    if forged or any(way != ways[0] for way in ways):
        findings.drop("has keys in its name or folder, who knows which", number)
        return None
    return _Line(path, number, ways[0]).record(clock, findings)


def _ways(line: str) -> list[dict[str, str]]:
    """Values by key, with the longest and with the shortest name and folder; none if it is no job.

    What users choose, name and folder, is left out.
    """
    ways = []
    for match in (pattern.fullmatch(line) for pattern in _LINES):
        if match:
            parts = f"JobId={match['job']} {match['head']} {match['run']} {match['tail']}"
            ways.append(dict(_PAIR.findall(parts)))
    return [way for way in ways if all(name in way for name in _NEEDED)]


def _what_is_wrong(line: str) -> str:
    missing = [name for name in (*_NEEDED, "Name", "WorkDir") if f" {name}=" not in line]
    if missing:
        return f"the job lacks {missing[0]}="
    return "the keys of the job do not stand in the order in which jobcomp/filetxt writes them"


class _Line:
    """The pairs of one line."""

    def __init__(self, path: Path, line: int, pairs: dict[str, str]) -> None:
        self.path, self.line, self.pairs = path, line, pairs

    def wrong(self, name: str, expected: str) -> BadRow:
        return wrong_value(self.path, self.line, name, expected, self.pairs.get(name, ""))

    def read(self, name: str, reader: Callable[[str], T]) -> T:
        """The value of a key; a wrong one is named by its key."""
        try:
            return reader(self.pairs.get(name, ""))
        except Unreadable as error:
            raise self.wrong(name, str(error)) from None

    def record(self, clock: Clock, findings: Findings) -> Record:
        """The record of a line; notices what only the text tells."""
        names = ("SubmitTime", "EligibleTime", "StartTime", "EndTime")
        times = [self.read(name, clock.readings) for name in names]
        doubts = clock.doubts()
        if times[0] == (None,):
            raise self.wrong("SubmitTime", "a time")
        findings.doubt(doubts, self.line)
        if "ArrayTaskId" in self.pairs:
            findings.notice("element of an array: a job of its own", self.line)
        limit = self.read("TimeLimit", values.limit_s)
        nodes = self.read("NodeCnt", values.count)
        memory, gpus = self._held(nodes, findings)
        record = Record(
            line=self.line,
            job=self.read("JobId", values.count),
            het=self.read("HetJobId", values.count),
            state=self.pairs["JobState"],
            elapsed=None,
            limit=limit,
            no_limit="" if limit else self.pairs.get("TimeLimit", ""),
            held=self.pairs["NodeList"] not in _NOWHERE and nodes > 0,
            processors=self.read("ProcCnt", values.count),
            memory=memory,
            gpus=gpus,
            user=self.pairs.get("UserId", "").partition("(")[0],
            account=self.pairs.get("Account") or self.pairs.get("GroupId", "").partition("(")[0],
            partition=self.pairs.get("Partition", ""),
            request=self._request(),
        )
        return with_times(record, findings, *times)

    def _request(self) -> Request:
        """What else the job asked for."""
        qos, reservation = (self.pairs.get(key, "") for key in ("QOS", "ReservationName"))
        array = self.pairs.get("ArrayJobId", "")
        return Request(
            qos="" if qos in _NOWHERE else qos,
            reservation="" if reservation in _NOWHERE else reservation,
            array=int(array) if array.isdecimal() else 0,
        )

    def _held(self, nodes: int, findings: Findings) -> tuple[int | None, int]:
        """MiB and GPUs; where there is no Tres, ``Gres`` of older versions says GPUs per node."""
        try:
            held = values.resources(self.pairs.get("Tres", ""))
            gpus, typed = values.gpus_of(held)
            memory = values.memory_mib(held.get("mem", ""))
        except Unreadable as error:
            raise self.wrong("Tres", str(error)) from None
        if gpus != int(gpus):
            findings.notice(PART_OF_GPU, self.line)
        if typed:
            findings.notice("names the type of its GPUs: counted once", self.line)
        if not held:  # older Slurm has no Tres, and Gres counts what each node gave
            gpus = nodes * values.gpus_of_gres(self.pairs.get("Gres", ""))
        return (memory[0] if memory else None), math.ceil(gpus)
