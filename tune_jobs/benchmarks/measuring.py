"""Throughput of one thing against another, in turns, so that both meet the same disturbances.

The clock is the CPU time of this process: what runs on one core and never waits then comes out
nearly the same when other processes take turns on that core.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Work = Callable[[], float]
"""Does a piece of work and returns how much it was."""

ROUNDS = 5


@dataclass(frozen=True)
class Entry:
    """One line of a benchmark; of repeated measurements, the median is reported."""

    name: str  # ``simulator.steps``
    unit: str  # of both numbers
    measured: Sequence[float]  # ours, one for each round
    reference: str  # what it is compared with, in words
    reference_measured: Sequence[float]
    higher_is_better: bool = True
    share: float | None = None  # of an iteration's time, 0 to 1, where this is a part of one
    parts: Mapping[str, float] = field(default_factory=dict)  # by name with the unit at its end

    @property
    def ratio(self) -> float:
        """How many times better than the reference."""
        ours, theirs = median(self.measured), median(self.reference_measured)
        return ours / theirs if self.higher_is_better else theirs / ours

    def as_dict(self) -> dict[str, Any]:
        """The entry as ``--json`` prints it."""
        return {
            "name": self.name,
            "value": median(self.measured),
            "unit": self.unit,
            "reference": self.reference,
            "reference_value": median(self.reference_measured),
            "ratio": self.ratio,
            "min": min(self.measured),
            "max": max(self.measured),
            "reference_min": min(self.reference_measured),
            "reference_max": max(self.reference_measured),
            **({} if self.share is None else {"share": self.share}),
            **({"parts": dict(self.parts)} if self.parts else {}),
        }


def rates(
    work: Work, other: Work, seconds: float, rounds: int = ROUNDS
) -> tuple[list[float], list[float]]:
    """Amounts of work a second of CPU time, of two things in turns; `seconds` for each in all.

    Each is called once before the clock starts, so that nothing is compiled while it runs.
    """
    work()
    other()
    pairs = [(rate(work, seconds / rounds), rate(other, seconds / rounds)) for _ in range(rounds)]
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


def rate(work: Work, seconds: float) -> float:
    """Amount of work a second of CPU time, called again and again for at least that long."""
    amount = 0.0
    began = time.process_time()
    while True:
        amount += work()
        elapsed = time.process_time() - began
        if elapsed >= seconds:
            return amount / elapsed
