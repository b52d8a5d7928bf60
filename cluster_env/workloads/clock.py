"""Times as logs write them: seconds since 1970 or dates, with a zone or without."""

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cluster_env.core.errors import InputError
from cluster_env.workloads.numbers import as_shown

NEVER = {"", "0", "unknown", "none", "n/a", "(null)"}
"""What stands for a time that has not come, in small letters."""

ZONELESS, DOUBLED = "has times without a zone", "has a time at which clocks were changed"

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
)
_EPOCH = re.compile(r"\d{6,11}")


class Unreadable(ValueError):
    """A text that is not what its field holds; the message says what was expected."""


@dataclass
class Clock:
    """Reads times, and remembers what was doubtful about them.

    Attributes:
        zone: of times that name none; UTC if it is None.
        doubtful: what was doubtful about the latest times: `ZONELESS`, and `DOUBLED` where the
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

    def doubts(self) -> list[str]:
        """What was doubtful since this was asked last."""
        if not self.doubtful:
            return []
        found, self.doubtful = sorted(self.doubtful), set()
        return found

    def readings(self, text: str) -> tuple[int | None, ...]:
        """Unix times that a text may mean, two in the hour that clocks have twice.

        For a time that has not come it is (None,).

        Raises:
            Unreadable: if it is no time.
        """
        if text.lower() in NEVER:
            return (None,)
        if _EPOCH.fullmatch(text):
            return (int(text),)
        return self.dates(text)

    def dates(self, text: str) -> tuple[int, ...]:
        """Unix times that a date may mean, see `readings`.

        Raises:
            Unreadable: if it is no date with a time of day.
        """
        if not _TIME.fullmatch(text):
            raise Unreadable("a time like 2026-03-01T08:00:00 or seconds since 1970")
        try:
            time = datetime.fromisoformat(re.sub(r" ?(?:UTC|Z)$", "+00:00", text))
        except ValueError:
            raise Unreadable("a time of the calendar") from None
        if time.tzinfo is not None:
            return (math.floor(time.timestamp()),)
        self.doubtful.add(ZONELESS)
        time = time.replace(tzinfo=self.zone or UTC)
        first, second = (math.floor(time.replace(fold=fold).timestamp()) for fold in (0, 1))
        if first != second:
            self.doubtful.add(DOUBLED)
        # In the hour in which clocks are turned back, a time without a zone may mean two. Where
        # they are turned on an hour is missing: there the second reading lies before the first.
        return (first, second) if first < second else (first,)
