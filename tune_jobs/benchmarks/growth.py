"""How fast the processes of a soak grow once they are warm, and whether that is too fast."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import theilslopes

from tune_jobs.benchmarks.processes import TOTAL, Reading

LIMITS: Mapping[str, float] = {
    "heap_mib": 0.5,
    "descriptors": 0.1,
    "threads": 0.1,
    "blocks": 2000.0,
}
"""What a process may gain a minute. Half a MiB a minute is 720 MiB a day, and so are 2,000 blocks
of 256 bytes."""
TOTAL_LIMITS: Mapping[str, float] = {name: 2 * limit for name, limit in LIMITS.items()}
"""What all processes together may gain a minute: a dozen that grow a little are a leak as well."""


def limits_of(process: str) -> Mapping[str, float]:
    """What a process, or all of them together, may gain a minute."""
    return TOTAL_LIMITS if process == TOTAL else LIMITS


@dataclass(frozen=True)
class Growth:
    """How one quantity of one process changed after the warm-up.

    Attributes:
        process: whose.
        quantity: a field of `Reading`.
        slope: change a minute, the median over all pairs of readings, which a few odd ones do not
            move.
        first: median of the first tenth of the readings.
        last: median of the last tenth.
        limit: largest slope that is allowed.
    """

    process: str
    quantity: str
    slope: float
    first: float
    last: float
    limit: float

    @property
    def is_too_fast(self) -> bool:
        """Whether it grows faster than it may."""
        return self.slope > self.limit


def growths(readings: Iterable[Reading], warm_up_min: float) -> list[Growth]:
    """The growth of every process that was there from the warm-up to the end, against its limits.

    Args:
        readings: in the order of time.
        warm_up_min: readings of earlier minutes do not count.
    """
    rows = list(readings)
    end = max((row.minutes for row in rows), default=0.0)
    found = []
    for process in dict.fromkeys(row.process for row in rows):
        own = [row for row in rows if row.process == process]
        late = [row for row in own if row.minutes >= warm_up_min]
        there_all_the_time = own[0].minutes <= warm_up_min and own[-1].minutes == end
        if not there_all_the_time or len(late) < 3:
            continue
        minutes = np.array([row.minutes for row in late])
        for quantity, limit in limits_of(process).items():
            values = np.array([getattr(row, quantity) for row in late])
            counted = np.isfinite(values)
            if np.count_nonzero(counted) >= 3:
                found.append(_fit(process, quantity, minutes[counted], values[counted], limit))
    return found


def _fit(
    process: str, quantity: str, minutes: np.ndarray, values: np.ndarray, limit: float
) -> Growth:
    tenth = max(1, values.size // 10)
    return Growth(
        process,
        quantity,
        slope=float(theilslopes(values, minutes).slope),
        first=float(np.median(values[:tenth])),
        last=float(np.median(values[-tenth:])),
        limit=limit,
    )
