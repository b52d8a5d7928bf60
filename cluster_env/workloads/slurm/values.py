"""Values as Slurm writes them: times, lengths of time, limits, memory, trackable resources (TRES).

Every function takes a text and raises `Unreadable` if it is none of what it expects.
"""

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cluster_env.core.errors import InputError
from cluster_env.workloads.numbers import as_shown

NEVER = {"", "0", "unknown", "none", "n/a", "(null)"}
"""What stands for a time that has not come, in small letters."""

NO_LIMIT = {"", "0", "unlimited", "infinite", "partition_limit", "not_set", "invalid"}
"""What stands for a time limit that is no number, in small letters."""

MIB = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""Mebibytes of a unit of memory; Slurm's units are powers of 1024, and MiB where it says none."""

PER_CORE, PER_NODE = "c", "n"
"""Endings of ReqMem before Slurm 21.08."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:?\d\d)?")
_EPOCH = re.compile(r"\d{6,11}")
_LENGTH = re.compile(r"(?:(\d{1,5})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d\d)(?:\.\d+)?")
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d+)?)([KMGTP]?)([cn]?)")
_TASKS = re.compile(r"\[([\d,:%-]+)(?:\.\.\.)?\]?")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?")


class Unreadable(ValueError):
    """A text that is not what its field holds; the message says what was expected."""


@dataclass
class Clock:
    """Reads times, and remembers what was doubtful about them.

    Attributes:
        zone: of times that name none; UTC if it is None.
        doubtful: what was doubtful about the latest times: ``zoneless``, and ``doubled`` where the
            clocks of the zone were changed.
    """

    zone: ZoneInfo | None = None
    doubtful: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, name: str) -> "Clock":
        """A clock of a zone of the IANA database, such as ``Europe/Berlin``; without one UTC.

        Raises:
            InputError: if there is no such zone.
        """
        try:
            return cls(ZoneInfo(name) if name else None)
        except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
            raise InputError(
                f"there is no time zone '{as_shown(name)}'; take a name like UTC or Europe/Berlin"
            ) from None

    def doubts(self) -> set[str]:
        """What was doubtful since this was asked last."""
        found, self.doubtful = self.doubtful, set()
        return found

    def seconds(self, text: str) -> int | None:
        """Unix time of a text; None for a time that has not come."""
        if text.lower() in NEVER:
            return None
        if _EPOCH.fullmatch(text):
            return int(text)
        if not _TIME.fullmatch(text):
            raise Unreadable("a time like 2026-03-01T08:00:00 or seconds since 1970")
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise Unreadable("a time of the calendar") from None
        # In the hour in which clocks are turned back, a time without a zone may mean two.
        if time.tzinfo is None:
            self.doubtful.add("zoneless")
            time = time.replace(tzinfo=self.zone or UTC)
            if self.zone and time.utcoffset() != time.replace(fold=1).utcoffset():
                self.doubtful.add("doubled")
        return math.floor(time.timestamp())


def length_s(text: str) -> int:
    """Seconds of ``[days-][hours:]minutes:seconds``; fractions are cut off, as Slurm does."""
    found = _LENGTH.fullmatch(text)
    if not found:
        raise Unreadable("a length of time like 1-02:30:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if days and found[2] is None:
        raise Unreadable("a length of time like 1-02:30:00")
    whole = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return int(whole.total_seconds())


def limit_s(text: str) -> int | None:
    """Seconds of a time limit: a length of time, or whole minutes; None if it is no number."""
    if text.lower() in NO_LIMIT:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return 60 * int(text)
    try:
        return length_s(text) or None
    except Unreadable:
        raise Unreadable(
            "a limit like 1-02:30:00, whole minutes, UNLIMITED or Partition_Limit"
        ) from None


def memory_mib(text: str) -> tuple[int, str] | None:
    """Mebibytes, rounded up, and ``c`` or ``n`` if they are per core or node; None if unknown."""
    if text.lower() in NEVER - {"0"} or text.endswith("?"):
        return None
    found = _MEMORY.fullmatch(text)
    if not found:
        raise Unreadable("memory like 4G, 4000M, 4Gc or 4Gn")
    return math.ceil(float(found[1]) * MIB[found[2]]), found[3]


def count(text: str) -> int:
    """A whole number; 0 for an empty text."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise Unreadable("a whole number")
    return int(text)


def resources(text: str) -> dict[str, str]:
    """The parts of a TRES string: ``cpu=4,mem=4G,gres/gpu:a100=2`` by name."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise Unreadable("resources like cpu=4,mem=4G,node=1")
        found[name.strip()] = value.strip()
    return found


def gpus_of(held: dict[str, str]) -> tuple[int, bool]:
    """GPUs in a TRES string, and whether it names types, whose counts repeat those without."""
    # gres/gpu counts all GPUs, gres/gpu:a100 those of a type once more.
    typed = [value for name, value in held.items() if name.startswith("gres/gpu:")]
    if "gres/gpu" in held:
        return count(held["gres/gpu"]), bool(typed)
    return sum(map(count, typed)), bool(typed)


def num_tasks(text: str) -> int:
    """Elements of an array in one row: 5 for ``18_[0-2,7,9%2]``; 1 for anything else."""
    _, _, tasks = text.partition("_")
    found = _TASKS.fullmatch(tasks)
    if not found:
        return 1
    total = 0
    for part in found[1].partition("%")[0].split(","):
        ends = _RANGE.fullmatch(part)
        if ends:
            first, last, step = ends[1], ends[2] or ends[1], ends[3] or "1"
            total += max((int(last) - int(first)) // max(int(step), 1) + 1, 1)
    return max(total, 1)
