"""A row of an accounting log as a record, and the counts of all that was left out or noticed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from typing import TextIO

from cluster_env.core.errors import InputError
from cluster_env.workloads.clock import Clock
from cluster_env.workloads.numbers import as_shown
from cluster_env.workloads.recorded import Dropped, Noticed

FEWEST_BAD, SHARE_BAD = 3, 0.001
"""Rows that may be cut off or hold what is no value of their column, whatever the file's length,
and as a share of its rows; they are left out and counted, if more rows than they can be read."""

NO_RUN_TIME = "has no run time above 0"
NO_PROCESSOR = "asks for no processor"
TOO_LARGE = "has a number that is too large"
TOO_EARLY = "was submitted before the log begins"
PART_OF_GPU = "asks for a part of a GPU: counted as a whole one"

WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "CONFIGURING"}
RUNNING = {"RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
"""States of Slurm in which a run has not begun or not ended."""


class BadRow(InputError):
    """A row that cannot be read, of a file in which a few of them are left out."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{path}, line {line}: {what}")
        self.line, self.what = line, what


@dataclass(frozen=True, slots=True)
class Request:
    """What else a job asked for, of which only the description of a site makes use.

    Attributes:
        qos: name, or nothing.
        reservation: name, or nothing.
        constraint: features of nodes, as Slurm writes them: ``skylake&ib``.
        nodes: exact number of nodes; 0 for as many as it takes.
        exclusive: whether it has its nodes for itself.
        array: number of its array; 0 for none.
        throttle: most jobs of its array that run at once; 0 for no limit.
        after: numbers of jobs that must have ended before.
        after_ok: whether these must have succeeded.
    """

    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    nodes: int = 0
    exclusive: bool = False
    array: int = 0
    throttle: int = 0
    after: tuple[int, ...] = ()
    after_ok: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run of a job, or of a part of one, from a line of a file.

    Attributes:
        job: the number of the job, which in Slurm is its own also for an element of an array.
        element: index in its array, where elements share the number; -1 for none.
        het: number of the heterogeneous job that it is a part of; 0 for none.
        state: the first word of its state, such as ``CANCELLED``.
        submit: Unix time, as all times; None for one that has not come.
        eligible: when nothing but a lack of resources held it back any more.
        elapsed: seconds of the run without what it was suspended for; None if not recorded.
        limit: seconds that it asked for; None if that is no number.
        no_limit: why not: ``UNLIMITED``, ``Partition_Limit``, or nothing.
        held: whether the log says what it was given: empty for a job that never ran.
        memory: MiB that it held; None if not recorded.
        account: name, or where there is none the Unix group.
        request: what else it asked for.
        power: mean W that it drew; -1 if not recorded.
    """

    line: int
    job: int
    het: int
    state: str
    submit: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    elapsed: int | None
    limit: int | None
    no_limit: str
    held: bool
    processors: int
    memory: int | None
    gpus: int
    user: str
    account: str
    partition: str
    element: int = -1
    request: Request = Request()
    power: int = -1

    @property
    def ran(self) -> bool:
        """Whether it held anything for any time.

        No column decides alone, because each is empty in the logs of some sites: a job ran if it
        began, and was given something or held processors for a time.
        """
        if self.start is None:
            return False
        lasted = self.end is not None and self.end > self.start
        return self.held or (self.processors > 0 and (lasted or bool(self.elapsed)))


Readings = tuple[int | None, ...]


def with_times(
    record: Record,
    findings: "Findings",
    submit: Readings,
    eligible: Readings,
    start: Readings,
    end: Readings,
) -> Record:
    """A record with the readings of its times that fit each other and the length of its run.

    A time of the hour that clocks have twice has two readings, the first of which counts unless
    others contradict it. A start or end that is missing follows from the other one, where the job
    has ended and its length is recorded.
    """

    def misfit(times: tuple[int | None, ...]) -> tuple[int, int]:
        came, ready, began, ended = times
        known = [time for time in (came, began, ended) if time is not None]
        wrong = sum(late < early for early, late in pairwise(known))
        wrong += None not in (ready, began) and began < ready  # type: ignore[operator]
        if began is None or ended is None or not record.elapsed:
            return wrong, 0
        return wrong, abs(ended - began - record.elapsed)

    # The first of equally good ones, so the first reading of each.
    choices = list(product(submit, eligible, start, end))
    came, ready, began, ended = choices[0] if len(choices) == 1 else min(choices, key=misfit)
    over = record.state not in WAITING | RUNNING
    if over and record.held and record.elapsed:
        if began is None and ended is not None:
            began = ended - record.elapsed
        elif ended is None and began is not None:
            ended = began + record.elapsed
        if None in (start[0], end[0]) and None not in (began, ended):
            findings.notice("has no start or no end: the length of its run says it", record.line)
    return replace(record, submit=came, eligible=ready, start=began, end=ended)


@dataclass
class Findings:
    """What became of the rows of a file: their number, and counts with first lines by reason."""

    rows: int = 0
    dropped: dict[str, list[int]] = field(default_factory=dict)
    noticed: dict[str, list[int]] = field(default_factory=dict)
    bad: list[BadRow] = field(default_factory=list)

    def drop(self, reason: str, line: int, count: int = 1) -> None:
        """Counts a row that is no job to schedule; the reason ends the sentence "the job ..."."""
        _count(self.dropped, reason, line, count)

    def notice(self, what: str, line: int, count: int = 1) -> None:
        """Counts jobs that are not what they seem."""
        _count(self.noticed, what, line, count)

    def doubt(self, doubts: Iterable[str], line: int) -> None:
        """Counts a row whose times are doubtful, see `cluster_env.workloads.clock.Clock`."""
        for one in doubts:
            self.notice(one, line)

    def spoil(self, row: BadRow) -> None:
        """Counts a row that cannot be read."""
        self.bad.append(row)
        # By what is wrong, without the value that stands there.
        what = row.what.partition(", not '")[0].partition(", but ")[0]
        self.drop(f"cannot be read: {what}", row.line)

    def require_readable(self, num_jobs: int) -> None:
        """Refuses a file of which too much cannot be read.

        Raises:
            InputError: if more rows are bad than a few, as many as can be read, or if they leave
                no job. It names the first.
        """
        if not self.bad:
            return
        if not num_jobs:
            raise self.bad[0]
        num_bad = len(self.bad)
        most = min(max(FEWEST_BAD, int(SHARE_BAD * self.rows)), (self.rows - 1) // 2)
        if num_bad > most:
            raise InputError(
                f"{self.bad[0]}; {num_bad:,} of {self.rows:,} rows cannot be read, and no more "
                f"than {most:,} are left out"
            )

    def all_dropped(self) -> tuple[Dropped, ...]:
        """What was left out, by first line."""
        found = (Dropped(reason, *entry) for reason, entry in self.dropped.items())
        return tuple(sorted(found, key=lambda one: one.line))

    def all_noticed(self) -> tuple[Noticed, ...]:
        """What was noticed, by first line."""
        found = (Noticed(what, *entry) for what, entry in self.noticed.items())
        return tuple(sorted(found, key=lambda one: one.line))

    def no_job(self, path: Path) -> InputError:
        """The refusal of a file without a job, with what became of its rows."""
        reasons = "; ".join(f"{one.count:,} {one.reason}" for one in self.all_dropped())
        return InputError(
            f"{path} holds no job that can be scheduled (of its {self.rows:,} rows "
            f"{reasons or 'none is a job'})"
        )


def _count(found: dict[str, list[int]], what: str, line: int, count: int) -> None:
    entry = found.setdefault(what, [0, line])
    entry[:] = entry[0] + count, min(entry[1], line)


def wrong_value(path: Path, line: int, name: str, expected: str, came: str) -> BadRow:
    """The refusal of a value: file, line, field, what was expected, what came."""
    return BadRow(path, line, f"{name} must be {expected}, not '{as_shown(came)}'")


def records_of(
    path: Path,
    text: TextIO,
    clock: Clock,
    findings: Findings,
    read: Callable[[Path, int, str, Clock, Findings], Record | None],
) -> Iterator[Record]:
    """Records of a log that has one in a line; lines that cannot be read are counted.

    Args:
        path: of the log, for messages.
        text: of the log.
        clock: reads times.
        findings: count rows and what is wrong with them.
        read: makes the record of a line, from the path, its number, the line, and these two; none
            where it counts the line as something else.
    """
    for number, ended in enumerate(text, start=1):
        line = ended.strip("\r\n ")
        if not line:
            continue
        findings.rows += 1
        try:
            record = read(path, number, line, clock, findings)
        except BadRow as bad:
            findings.spoil(bad)
            clock.doubts()  # of a row that counts for nothing else
            continue
        if record is not None:
            yield record
