"""What keeps a run from ending in a policy that nothing can be learned from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[np.float32]]

HIGHEST_COEFFICIENT = 0.1
LOWEST_COEFFICIENT = 1e-4  # above 0, so that a factor brings it up again
_GAIN = 0.2  # of the controller; from 0.02 to the cap takes eight iterations

LOW_ENTROPY = 0.01
"""Mean entropy of adapted policies, in nats, below which there is nothing left to adapt."""
PATIENCE = 20
"""Iterations in a row below it that count as a collapse."""
LAST = 5
"""Iterations whose median says what the run is at; single ones draw tasks that anyone fails at."""
DIVERGED = 2.0
"""How many times the least cost so far that median is where a run has diverged, or what part of the
largest gain; at least `LEAST_FALL` away from it."""
LEAST_FALL = 0.5  # of what the heuristic has
NOISE = 5.0
"""Standard deviations of single values that the median must have fallen by, besides: the best of
many medians is above what a run is at, and the next is below it, by chance alone."""
_TO_DEVIATION = 1.4826  # from a normal distribution's median absolute deviation
_MEMORY = 0.9  # of the moving average: that of about ten iterations
_SETTLED = 10  # iterations before an average is trusted


def next_coefficient(coefficient: float, entropy: float, target: float) -> float:
    """The entropy bonus of the next iteration.

    It is multiplied where the entropy is below the target and divided where it is above, by more
    the further it is away, and stays within `LOWEST_COEFFICIENT` and `HIGHEST_COEFFICIENT`; 0 for
    a target of 0.

    Args:
        coefficient: of this iteration.
        entropy: mean over the decisions of this iteration's last stages, in nats.
        target: what the entropy should be.
    """
    if target <= 0:
        return 0.0
    missing = min(1.0, max(-1.0, (target - entropy) / target))
    moved = coefficient * math.exp(_GAIN * missing)
    return min(HIGHEST_COEFFICIENT, max(LOWEST_COEFFICIENT, moved))


@dataclass
class CollapseGuard:
    """Knows when a run has collapsed, and where it was best before.

    Collapsed means that the entropy was below `LOW_ENTROPY` for `PATIENCE` iterations in a row,
    that a gradient was not finite (the learner leaves such an update out), or that the run has
    diverged: the median value of the last `LAST` iterations costs `DIVERGED` times what the best
    such median did, and is further below it than chance explains (`NOISE`): tasks whose gains
    differ have values that do. The run then goes back to the best weights so far, at half the
    learning rate.

    The best are those under which the moving average of `meta.maml.stages.StageScore.value` after
    adaptation was highest. That value counts in units of a fixed heuristic on the same jobsets, so
    iterations with other tasks can be compared; the average over some ten iterations, because a
    single one draws easy or hard tasks; the value after adaptation and not the gain from it,
    because a gain can be had from a poor start. A value beyond `DIVERGED` times the average counts
    as that much, so that a task on which any policy fails does not hide ten iterations.

    Attributes:
        average: moving average of the value, NaN at first.
        seen: iterations that it has seen, since the last reset.
        best_average: highest average of a settled run, and its weights.
        best: those; empty if there are none yet.
        low: iterations in a row with too little entropy.
        recent: the last values since a collapse, at most `LAST`.
        values: all of them since the last reset, without those that a collapse was seen by.
        best_median: highest median of so many.
        reason: why the last iteration was a collapse, in words; empty if it was none.
        scale: of the learning rate, halved by each collapse.
        collapses: how many there were.
    """

    average: float = math.nan
    seen: int = 0
    best_average: float = -math.inf
    best: Weights | None = None
    low: int = 0
    recent: Sequence[float] = field(default_factory=tuple)
    values: Sequence[float] = field(default_factory=tuple)
    best_median: float = -math.inf
    reason: str = ""
    scale: float = 1.0
    collapses: int = 0

    def reset(self) -> None:
        """Forgets values and weights, because those to come are of other tasks."""
        self.average, self.seen = math.nan, 0
        self.best_average, self.best = -math.inf, None
        self.low, self.reason = 0, ""
        self.recent, self.values, self.best_median = (), (), -math.inf

    def observe(
        self, weights: Weights, value: float, entropy: float, finite: bool
    ) -> Weights | None:
        """Takes note of an iteration.

        Args:
            weights: with which its tasks were sampled.
            value: mean over its tasks, see above.
            entropy: mean over the decisions of the last stages, in nats.
            finite: whether all gradients were.

        Returns:
            The weights to go back to, None if all is well.
        """
        self.seen += 1
        fresh = math.isnan(self.average)
        counted = value if fresh else max(value, _far_below(self.average))
        self.average = value if fresh else _MEMORY * self.average + (1 - _MEMORY) * counted
        self.low = self.low + 1 if entropy < LOW_ENTROPY else 0
        self.reason = self._what_is_wrong(value, finite)
        better = self.seen > _SETTLED and self.average > self.best_average
        if self.best is None or (better and not self.reason):
            # Before it has settled an average says little, so the first weights stand for it.
            self.best = {name: array.copy() for name, array in weights.items()}
            self.best_average = self.average if self.seen > _SETTLED else -math.inf
        if not self.reason:
            return None
        self.low, self.recent, self.values = 0, (), self.values[:-LAST]
        self.average = self.best_average if math.isfinite(self.best_average) else math.nan
        self.seen = self.seen if math.isfinite(self.best_average) else 1
        self.scale /= 2
        self.collapses += 1
        return self.best

    def _what_is_wrong(self, value: float, finite: bool) -> str:
        self.recent = (*self.recent, value)[-LAST:]
        self.values = (*self.values, value)
        if not finite:
            return "a gradient was not finite"
        if self.low >= PATIENCE:
            return f"policies left nothing to chance for {PATIENCE} iterations"
        if len(self.recent) < LAST:
            return ""
        median = float(np.median(self.recent))
        if median < min(_far_below(self.best_median), self.best_median - NOISE * self._noise()):
            return (
                f"the run diverged: the median return of {LAST} iterations is {median:.3g} times "
                f"what a heuristic has, and was {self.best_median:.3g}"
            )
        self.best_median = max(self.best_median, median)
        return ""

    def _noise(self) -> float:
        """Standard deviation of the values, which a few that are far off do not change.

        The last ones, which are judged by it, do not count, unless there are hardly others.
        """
        known = np.asarray(self.values if len(self.values) < 3 * LAST else self.values[:-LAST])
        return float(_TO_DEVIATION * np.median(np.abs(known - np.median(known))))

    def get_state(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return asdict(self)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what `get_state` gave."""
        for name, value in state.items():
            setattr(self, name, value)


def _far_below(value: float) -> float:
    """What is `DIVERGED` times as bad; values of costs are below 0, of gains above."""
    scaled = min(DIVERGED * value, value / DIVERGED)
    return min(scaled, value - LEAST_FALL)
