"""Tables of named numbers with their units, for people and for programs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SECONDS, SHARE, COUNT, RATIO, TEXT = "s", "share", "count", "ratio", "text"
"""Units of columns. A share of 0.7 is shown as 70 %, seconds in the unit that suits them."""

_LENGTHS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        name: of its file, without ending.
        title: what it shows.
        units: of the columns by their names, in order.
        rows: values by the columns' names; a missing one is empty, a NaN unknown.
        note: a sentence that belongs under it.
        titles: of columns that are not called by their names.
    """

    name: str
    title: str
    units: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> list[list[str]]:
        """What people read: the head, then the rows."""
        head = [self.titles.get(name, name).replace("_", " ") for name in self.units]
        return [
            head,
            *(
                [shown(row.get(name, ""), unit) for name, unit in self.units.items()]
                for row in self.rows
            ),
        ]


def shown(value: Any, unit: str) -> str:
    """A value as people read it: ``70%``, ``1.5 h``, ``12,345``; ``-`` if it is unknown."""
    if isinstance(value, str) or unit == TEXT:
        return str(value)
    number = float(value)
    if math.isnan(number):
        return "-"
    if unit == SECONDS:
        return duration(number)
    if unit == SHARE:
        return f"{number:.1%}" if 0 < abs(number) < 0.0995 else f"{number:.0%}"
    if unit == COUNT:
        return f"{number:,.0f}"
    return f"{number:,.2f}" if abs(number) < 1000 else f"{number:,.0f}"


def duration(seconds: float) -> str:
    """``90 s``, ``2.5 h``, ``40 d``: in the largest unit of which there are at least two."""
    for length, unit in _LENGTHS:
        if abs(seconds) >= 2 * length or unit == "s":
            value = seconds / length
            return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"
    raise AssertionError
