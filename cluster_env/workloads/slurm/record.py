"""A row of a Slurm log as a record, and the counts of all that was left out or noticed."""

from collections.abc import Collection
from dataclasses import dataclass, field

from cluster_env.core.errors import InputError
from cluster_env.workloads.numbers import as_shown
from cluster_env.workloads.recorded import Dropped, Noticed

_DOUBTS = {
    "zoneless": "has times without a zone",
    "doubled": "has a time at which clocks were changed",
}


@dataclass(frozen=True, slots=True)
class Record:
    """One run of a job, or of a part of one, from a line of a file.

    Attributes:
        job: Slurm's number of the job, which is its own also for an element of an array.
        het: number of the heterogeneous job that it is a part of; 0 for none.
        state: the first word of its state, such as ``CANCELLED``.
        submit: Unix time, as all times; None for one that has not come.
        eligible: when nothing but a lack of resources held it back any more.
        elapsed: seconds of the run without what it was suspended for; None if not recorded.
        limit: seconds that it asked for; None if that is no number.
        no_limit: why not: ``UNLIMITED``, ``Partition_Limit``, or nothing.
        ran: whether it held anything.
        memory: MiB that it held; None if not recorded.
        account: name, or where there is none the Unix group.
    """

    line: int
    job: int
    het: int
    state: str
    submit: int | None
    eligible: int | None
    start: int | None
    end: int | None
    elapsed: int | None
    limit: int | None
    no_limit: str
    ran: bool
    processors: int
    memory: int | None
    gpus: int
    user: str
    account: str
    partition: str


@dataclass
class Findings:
    """What became of the rows of a file: their number, and counts with first lines by reason."""

    rows: int = 0
    dropped: dict[str, list[int]] = field(default_factory=dict)
    noticed: dict[str, list[int]] = field(default_factory=dict)

    def drop(self, reason: str, line: int) -> None:
        """Counts a row that is no job to schedule; the reason ends the sentence "the job ..."."""
        _count(self.dropped, reason, line, 1)

    def notice(self, what: str, line: int, count: int = 1) -> None:
        """Counts jobs that are not what they seem."""
        _count(self.noticed, what, line, count)

    def doubt(self, doubts: Collection[str], line: int) -> None:
        """Counts a row whose times are doubtful, see `cluster_env.workloads.slurm.values.Clock`."""
        for one in doubts:
            self.notice(_DOUBTS[one], line)

    def all_dropped(self) -> tuple[Dropped, ...]:
        """What was left out, by first line."""
        found = (Dropped(reason, *entry) for reason, entry in self.dropped.items())
        return tuple(sorted(found, key=lambda one: one.line))

    def all_noticed(self) -> tuple[Noticed, ...]:
        """What was noticed, by first line."""
        found = (Noticed(what, *entry) for what, entry in self.noticed.items())
        return tuple(sorted(found, key=lambda one: one.line))


def _count(found: dict[str, list[int]], what: str, line: int, count: int) -> None:
    entry = found.setdefault(what, [0, line])
    entry[:] = entry[0] + count, min(entry[1], line)


def wrong_value(path: object, line: int, name: str, expected: str, came: str) -> InputError:
    """The refusal of a value: file, line, field, what was expected, what came."""
    return InputError(f"{path}, line {line}: {name} must be {expected}, not '{as_shown(came)}'")
