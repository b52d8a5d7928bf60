"""What an iteration costs with any number of runners, from costs that were measured with a few.

An iteration has four parts, one after the other:

    broadcast   the weights are put into the object store, and the last runner has fetched them
    sample      the runners work side by side, for as long as their units take
    gather      one call and one answer for each runner, and the rows of the answers, in the driver
    learn       the learners work through all rows

With n runners, u units each and r rows in a unit:

    broadcast = b + n c_fetch
    sample    = u t
    gather    = g + n c_call + n u r c_row
    learn     = n u r c_learn / learners

So decisions a second grow with n until the driver and the learner, which see every row, take longer
than the runners do; no number of runners goes beyond 1 / (c_row + c_learn / learners).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Parts:
    """Seconds of the parts of an iteration."""

    broadcast: float
    sample: float
    gather: float
    learn: float = 0.0

    @property
    def total(self) -> float:
        """Seconds of the iteration."""
        return self.broadcast + self.sample + self.gather + self.learn

    def named(self) -> dict[str, float]:
        """The parts by names that say their unit."""
        return {
            "broadcast_s": self.broadcast,
            "sample_s": self.sample,
            "gather_s": self.gather,
            "learn_s": self.learn,
        }


@dataclass(frozen=True)
class IterationParts:
    """An iteration that was timed.

    Attributes:
        runners: how many there were.
        rows: decisions that all of them returned.
        parts: where the time went.
    """

    runners: int
    rows: int
    parts: Parts


@dataclass(frozen=True)
class Costs:
    """The measured costs; see the formulas above.

    Attributes:
        broadcast_s: b, of the weights once.
        fetch_s: c_fetch, of the weights for each runner.
        unit_s: t, of sampling a unit.
        unit_rows: r, decisions of a unit.
        gather_s: g, of waiting for answers at all.
        call_s: c_call, of a runner's call and answer.
        row_s: c_row, of a decision on its way into the driver's arrays.
        learn_row_s: c_learn, of a decision in a learner.
        learners: learners that share the rows.
    """

    broadcast_s: float
    fetch_s: float
    unit_s: float
    unit_rows: float
    gather_s: float
    call_s: float
    row_s: float
    learn_row_s: float = 0.0
    learners: int = 1

    def predict(self, runners: int, units: int = 1) -> Parts:
        """Parts of an iteration.

        Args:
            runners: n.
            units: u, of each runner.
        """
        rows = runners * units * self.unit_rows
        return Parts(
            broadcast=self.broadcast_s + runners * self.fetch_s,
            sample=units * self.unit_s,
            gather=self.gather_s + runners * self.call_s + rows * self.row_s,
            learn=rows * self.learn_row_s / self.learners,
        )

    def decisions_per_s(self, runners: int, units: int = 1) -> float:
        """Decisions a second of all runners together."""
        return runners * units * self.unit_rows / self.predict(runners, units).total

    def ceiling(self) -> float:
        """Decisions a second that no number of runners gets beyond."""
        return 1 / (self.row_s + self.learn_row_s / self.learners)

    def runners_for(self, share: float, units: int = 1) -> int:
        """Fewest runners that reach a share of the ceiling.

        Args:
            share: above 0, below 1.
            units: of each runner; with few of them the costs of calls may keep it out of reach.

        Returns:
            The number; 0 if a million does not reach it.
        """
        counts = np.unique(np.logspace(0, 6, 2000).astype(int))
        speeds = np.array([self.decisions_per_s(int(count), units) for count in counts])
        reached = np.flatnonzero(speeds >= share * self.ceiling())
        return int(counts[reached[0]]) if reached.size else 0

    def with_learning(self, seconds: Sequence[float], rows: Sequence[int]) -> "Costs":
        """These costs and that of learning, from updates of several sizes."""
        (slope,) = _non_negative(np.array([rows], float).T, np.array(seconds, float))
        return replace(self, learn_row_s=slope)


def fit(measured: Sequence[IterationParts], unit_s: float, unit_rows: float) -> Costs:
    """Least squares over iterations with different numbers of runners and of rows.

    Args:
        measured: at least two numbers of runners, and two of rows for one of them.
        unit_s: seconds that a runner takes for a unit.
        unit_rows: decisions of a unit.
    """
    runners = np.array([each.runners for each in measured], float)
    rows = np.array([each.rows for each in measured], float)
    broadcast = np.array([each.parts.broadcast for each in measured])
    gather = np.array([each.parts.gather for each in measured])
    ones = np.ones(len(measured))
    base_s, fetch_s = _non_negative(np.stack([ones, runners], axis=1), broadcast)
    wait_s, call_s, row_s = _non_negative(np.stack([ones, runners, rows], axis=1), gather)
    return Costs(base_s, fetch_s, unit_s, unit_rows, wait_s, call_s, row_s)


def _non_negative(columns: np.ndarray, values: np.ndarray) -> list[float]:
    """Coefficients of least squares of relative errors, none below 0: a cost is no gain."""
    scale = 1 / np.maximum(values, 1e-9)
    found, _ = nnls(columns * scale[:, None], np.ones(len(values)))
    return [float(value) for value in found]
