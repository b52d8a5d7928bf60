"""Never worse than the best heuristic: a learned policy is used only where it has proven itself.

A mean slowdown can be bought: who keeps long jobs waiting, and the machines idle, has a low one in
a short window. So nothing is used, learned or not, that is far worse than a baseline in what such a
mean costs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from cluster_env.core.policy import Policy
from cluster_env.evaluation.comparison import PolicyGroup, Result
from cluster_env.evaluation.intervals import Estimate
from cluster_env.evaluation.metrics import get_metric

MIN_DISJOINT = 5
"""Windows that fit side by side into a log, without which its windows prove nothing: with fewer,
nobody can say how much one stretch of the log differs from the next."""


@dataclass(frozen=True)
class Candidate:
    """What one policy did on the calibration jobsets.

    Attributes:
        mean: its mean, with the 95 % interval over jobsets.
        difference: its mean minus that of the best heuristic on the same jobsets, with the 95 %
            interval of the paired bootstrap.
        num_unfinished: jobs that it left unfinished.
        side_metrics: its means of the limited metrics, by their names.
        too_dear: in which of them it may be beyond a limit, in words; empty if it surely keeps all.
        means: its means of all that was measured.
    """

    name: str
    mean: Estimate
    difference: Estimate
    num_unfinished: int
    side_metrics: Mapping[str, float] = field(default_factory=dict)
    too_dear: str = ""
    means: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GuardDecision:
    """What the guard lets decide, and why.

    Attributes:
        chosen: the learned policy, or the best heuristic; `name` is what tables call it.
        reason: one sentence.
        candidates: the heuristics from best to worst, then the learned policy.
        seconds: that the decision took, without what was done before for all policies.
        reference: name of the heuristic that side metrics are compared with.
        limits: by what share each metric may be worse than the reference's.
        num_disjoint: of a log, how many windows like the calibration's fit side by side into it;
            none where jobsets are drawn one by one.
    """

    chosen: Policy
    name: str
    learned_is_used: bool
    reason: str
    candidates: tuple[Candidate, ...]
    seconds: float
    reference: str
    limits: Mapping[str, float]
    num_disjoint: int | None = None


class Judge:
    """Decides by what heuristics and a learned policy have achieved on the same jobsets.

    The reference is a heuristic that is given, or the best of the baselines: the one with the best
    mean among those that finish all jobs, if any does. Nothing else is used unless each side metric
    is within its limit with the whole 95 % interval, as if its utilization is surely no more than a
    tenth below the reference's. The best heuristic is the best of the reference and of those other
    heuristics that keep all limits. A learned policy is used if it keeps them, too, if its mean is
    better than that of the best heuristic with the whole 95 % interval of the paired difference,
    and if it leaves no more jobs unfinished. Windows of one log share jobs, which the interval
    knows (`overlapping_interval`); where fewer than `MIN_DISJOINT` of them fit side by side, they
    prove nothing. In every other case the best heuristic is used. As the best of several is picked
    on the same jobsets, it looks a little better than it is, so that the guard errs on the side of
    the heuristics. What it protects from is a policy that is worse on jobs like the calibration's;
    it cannot know that tomorrow's jobs are others.

    Args:
        baselines: what heuristics have achieved, one policy each.
        others: what further heuristics have, for instance such as keep jobs waiting on purpose.
        limits: by what share metrics may be worse than the reference's, by their names: with
            ``{"wait": 0.25}``, the mean wait may be a quarter longer. Infinity is no limit.
        metric: name of the metric that decides.
        reference: which of these results side metrics are compared with; by default that of the
            best baseline.
        num_disjoint: where the jobsets are windows of one log, how many of them fit side by side.
        refused: names of heuristics that are not used for another reason, in words.

    `best` is the place of the best heuristic, among the baselines and then the others.
    """

    def __init__(
        self,
        baselines: Sequence[Result],
        others: Sequence[Result] = (),
        *,
        limits: Mapping[str, float],
        metric: str,
        reference: Result | None = None,
        num_disjoint: int | None = None,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self._refused = refused or {}
        self.limits, self._metric = dict(limits), get_metric(metric)
        self._num_disjoint = num_disjoint
        # The best first; who leaves jobs unfinished comes after all who finish.
        results = [*baselines, *others]
        order = sorted(range(len(results)), key=lambda k: rank_finishing(results[k], metric))
        self._ranking = [results[k] for k in order]
        best_baseline = results[next(k for k in order if k < len(baselines))]
        self._reference = best_baseline if reference is None else reference
        self.reference = self._reference.name
        self.best = next(k for k in order if not self._beyond_limits(results[k]))
        self._best = results[self.best]

    def decide(
        self, learned: Result, policy: Policy, heuristic: PolicyGroup, refused: str = ""
    ) -> GuardDecision:
        """Whether a learned policy has proven itself, or the best heuristic stays.

        A reason not to use the policy may be known from elsewhere, in words.
        """
        started = perf_counter()
        candidates = [self._candidate(result) for result in self._ranking]
        last = self._candidate(learned)
        candidates.append(replace(last, too_dear=last.too_dear or refused))
        best = next(one for one in candidates if one.name == self._best.name)
        used, reason = self._judge(candidates[-1], best)
        return GuardDecision(
            chosen=policy if used else heuristic.members[0],
            name=learned.name if used else heuristic.name,
            learned_is_used=used,
            reason=reason,
            candidates=tuple(candidates),
            seconds=perf_counter() - started,
            reference=self.reference,
            limits=self.limits,
            num_disjoint=self._num_disjoint,
        )

    def _judge(self, learned: Candidate, best: Candidate) -> tuple[bool, str]:
        """Whether the learned policy is used, and why."""
        over, windows = f"{best.name}, the best heuristic", self._num_disjoint
        # First what proves nothing: a short log, and means of fewer finished jobs.
        if windows is not None and windows < MIN_DISJOINT:
            return False, (
                f"the log has room for {windows} window{'s' if windows > 1 else ''} without "
                f"overlap, and fewer than {MIN_DISJOINT} prove nothing; a log "
                f"{math.ceil(10 * MIN_DISJOINT / windows) / 10:g} times as long, or windows "
                f"of {windows / MIN_DISJOINT:.0%} of their length, would suffice"
            )
        if learned.num_unfinished > best.num_unfinished:
            return False, (
                f"{learned.name} left {learned.num_unfinished:,} jobs unfinished, "
                f"{over}, {best.num_unfinished:,}"
            )
        gap, label = learned.difference, self._metric.label
        interval = f"95% interval of the difference {gap.low:.3g} to {gap.high:.3g}"
        if windows is not None:
            interval += f", of a log with room for {windows} windows without overlap"
        # Then the gain, with its whole interval on one side of 0, and at last its price.
        if not (gap.high < 0 or gap.low > 0):
            return False, (
                f"the {label} of {learned.name} is not significantly different from that of "
                f"{over} ({interval})"
            )
        better = (gap.low > 0) == self._metric.higher_is_better
        word = "lower" if gap.high < 0 else "higher"
        reason = (
            f"the {label} of {learned.name} is {abs(gap.value):.3g} {word} than that of {over} "
            f"({interval})"
        )
        if better and learned.too_dear:
            return False, f"{reason}, but {learned.too_dear}"
        return better, reason

    def _candidate(self, result: Result) -> Candidate:
        return Candidate(
            result.name,
            result.estimate(self._metric.name, self._num_disjoint),
            result.difference(self._best, self._metric.name, self._num_disjoint),
            int(result.means["unfinished"]),
            {name: result.mean(name) for name in self.limits},
            self._beyond_limits(result),
            result.means,
        )

    def _beyond_limits(self, result: Result) -> str:
        """In which metrics a result may be too much worse than the reference, in words."""
        if result is self._reference:
            return ""
        violations = (
            self._beyond(result, name, limit)
            for name, limit in self.limits.items()
            if math.isfinite(limit)
        )
        return ", and ".join(words for words in violations if words) or self._refused.get(
            result.name, ""
        )

    def _beyond(self, result: Result, name: str, limit: float) -> str:
        """How a result may break a limit; empty if it keeps it with the whole interval."""
        metric = get_metric(name)
        sign = -1.0 if metric.higher_is_better else 1.0
        # The difference to what the limit allows, in pairs: its interval is as narrow as it can be.
        value, reference = result.mean(name), self._reference.mean(name)
        gap = result.difference(self._reference, name, self._num_disjoint, times=1 + sign * limit)
        worst = -gap.low if metric.higher_is_better else gap.high  # beyond the limit
        if worst <= 0:
            return ""
        side = "below" if metric.higher_is_better else "above"
        words = f"its {metric.label} of {value:.3g}", f"the {reference:.3g} of {self.reference}"
        if sign * gap.value > 0:
            return f"{words[0]} is more than {limit:.0%} {side} {words[1]}"
        if math.isnan(worst):
            return f"it is unknown whether {words[0]} stays within {limit:.0%} of {words[1]}"
        most = limit + worst / reference
        beyond, allowed = told_apart(most, limit)
        return f"{words[0]} may be {beyond} {side} {words[1]}, which is more than {allowed}"


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Two shares in percent with as many digits as tell them apart: 25% is not more than 25%."""
    digits = next((k for k in range(4) if f"{first:.{k}%}" != f"{second:.{k}%}"), 4)
    return f"{first:.{digits}%}", f"{second:.{digits}%}"


def rank_finishing(result: Result, metric: str) -> tuple[bool, float]:
    """Smaller for a better result; one that leaves jobs unfinished comes after all that do not."""
    return result.means["unfinished"] > 0, get_metric(metric).rank(result.mean(metric))
