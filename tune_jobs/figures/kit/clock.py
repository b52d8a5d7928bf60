"""Axes of a log's time: dates where the log knows them, else days or hours."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

_DAY_S = 86_400.0
_DAY = "%-d %b"
_TICKS = ["%Y", "%b", _DAY, "%H:%M", "%H:%M", "%S.%f"]
_ZEROS = ["", "%Y", _DAY, _DAY, "%H:%M", "%H:%M"]
_OFFSETS = ["", "%Y", "%Y", "%-d %b %Y", "%-d %b %Y", "%-d %b %Y %H:%M"]
"""Formats of ticks, of those at the first of a unit, and of what stands beside all ticks; by unit,
from years to seconds. A day has its month, since a log may begin in the middle of one."""

_UNITS = ((_DAY_S, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True)
class Clock:
    """How seconds since the first submission of a log are drawn.

    Attributes:
        longest: of the seconds that are drawn.
        origin: Unix time of the first submission; None where the log knows no dates.
    """

    longest: float
    origin: int | None = None

    def x(self, seconds: Any) -> Any:
        """Places on the axis, of a number or an array."""
        if self.origin is not None:  # matplotlib counts the days since 1970
            return (seconds + self.origin) / _DAY_S
        return seconds / time_unit(self.longest)[0]

    def label(self, axes: Axes, words: str = "") -> None:
        """Puts ticks and a label at the x axis; its limits are as they will be."""
        name = "UTC"
        if self.origin is None:
            name = f"{time_unit(self.longest)[1]} since the first submission"
        else:
            dates = AutoDateLocator(minticks=4, maxticks=9)
            axes.xaxis.set_major_locator(dates)
            style = {"zero_formats": _ZEROS, "offset_formats": _OFFSETS}
            axes.xaxis.set_major_formatter(ConciseDateFormatter(dates, formats=_TICKS, **style))
        axes.set_xlabel(f"{name}; {words}" if words else name)


def time_unit(seconds: float) -> tuple[float, str]:
    """The largest unit of time of which there are at least two."""
    return next((one for one in _UNITS if seconds >= 2 * one[0]), _UNITS[-1])
