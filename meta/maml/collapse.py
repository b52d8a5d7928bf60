"""Whether a run has ended in a policy that nothing can be learned from, and where it was best."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[np.float32]]

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


@dataclass
class CollapseDetector:
    """Detects that a run has collapsed, and keeps the weights with which it was best.

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
    because a gain can be had from a poor start.

    Attributes:
        average: moving average of the value, NaN at first.
        seen: iterations that it has seen, since the last reset.
        best_average: highest average of a settled run.
        best: weights of that average; None before the first iteration.
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
    recent: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    best_median: float = -math.inf
    reason: str = ""
    scale: float = 1.0
    collapses: int = 0

    def reset(self) -> None:
        """Forgets values and weights, because those to come are of other tasks."""
        self.set_state(asdict(CollapseDetector(scale=self.scale, collapses=self.collapses)))

    def observe(
        self, weights: Weights, value: float, entropy: float, finite: bool
    ) -> Weights | None:
        """Takes note of an iteration; returns the weights to go back to, None if all is well.

        Its tasks were sampled with the weights, and the value is the mean over them, see above. The
        entropy is the mean over the decisions of the last stages, in nats.
        """
        self.seen += 1
        if math.isnan(self.average):
            self.average = value
        else:
            # A task on which any policy fails must not hide ten iterations.
            counted = max(value, _far_below(self.average))
            self.average = _MEMORY * self.average + (1 - _MEMORY) * counted
        self.low = self.low + 1 if entropy < LOW_ENTROPY else 0
        self.recent = (*self.recent, value)[-LAST:]
        self.values = (*self.values, value)
        self.reason = self._reason(finite)
        settled = self.seen > _SETTLED
        better = settled and self.average > self.best_average and not self.reason
        if self.best is None or better:
            # Before it has settled an average says little, so the first weights stand for it.
            self.best = {name: array.copy() for name, array in weights.items()}
            self.best_average = self.average if settled else -math.inf
        if not self.reason:
            return None
        # Go on from the best: what was seen since does not count.
        self.low, self.recent, self.values = 0, (), self.values[:-LAST]
        if math.isfinite(self.best_average):
            self.average = self.best_average
        else:
            self.average, self.seen = math.nan, 1
        self.scale /= 2
        self.collapses += 1
        return self.best

    def _reason(self, finite: bool) -> str:
        """Why the run has collapsed; empty if it has not."""
        if not finite:
            return "a gradient was not finite"
        if self.low >= PATIENCE:
            return f"policies left nothing to chance for {PATIENCE} iterations"
        if len(self.recent) < LAST:
            return ""
        # The noise is that of values before the last ones, which are judged by it, unless there
        # are hardly others; a median, because a few values are far off.
        median = float(np.median(self.recent))
        known = np.asarray(self.values if len(self.values) < 3 * LAST else self.values[:-LAST])
        noise = float(_TO_DEVIATION * np.median(np.abs(known - np.median(known))))
        if median < min(_far_below(self.best_median), self.best_median - NOISE * noise):
            return (
                f"the run diverged: the median return of {LAST} iterations is {median:.3g} times "
                f"what a heuristic has, and was {self.best_median:.3g}"
            )
        self.best_median = max(self.best_median, median)
        return ""

    def get_state(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return asdict(self)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what `get_state` gave."""
        for name, value in state.items():
            setattr(self, name, value)


def _far_below(value: float) -> float:
    """What is `DIVERGED` times as bad; values of costs are below 0, of gains above."""
    return min(DIVERGED * value, value / DIVERGED, value - LEAST_FALL)
