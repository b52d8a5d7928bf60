"""Several policies on the same jobsets: means, differences in pairs, win rates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.spec import spec_of
from cluster_env.core.world import World
from cluster_env.evaluation.intervals import (
    Estimate,
    Pooled,
    difference_interval,
    in_both,
    jobset_interval,
    ratio_interval,
    two_level_interval,
)
from cluster_env.evaluation.metrics import get_metric
from cluster_env.evaluation.rollouts import evaluate
from cluster_env.evaluation.summary import Summary, summarize

# Two means of the same numbers may differ in the last digits when the jobs finish in another order.
_TIE = 1e-9


@dataclass(frozen=True)
class PolicyGroup:
    """A policy, or policies from training runs that differ in their seed alone; at least one."""

    name: str
    members: tuple[Policy, ...]


@dataclass(frozen=True, eq=False)
class Result:
    """What a group achieved: one summary for each of its policies, all on the same jobsets."""

    name: str
    members: tuple[Summary, ...]

    def mean(self, metric: str) -> float:
        """Mean over the members' means."""
        return float(np.mean(self._means(metric)))

    def estimate(self, metric: str, num_disjoint: int | None = None) -> Estimate:
        """The mean with a 95 % interval: over jobsets, and over seeds if there are several.

        Where jobsets are windows of one log, ``num_disjoint`` of them fit side by side; see
        `overlapping_interval`.
        """
        values = pooled(self.members, metric)
        within = jobset_interval(values, num_disjoint)
        if len(self.members) == 1:
            return within
        num_jobsets = _at_most(int(values.filled.sum()), num_disjoint)
        return two_level_interval([self._means(metric)], within, num_jobsets)

    def difference(
        self, other: "Result", metric: str, num_disjoint: int | None = None, *, times: float = 1.0
    ) -> Estimate:
        """This mean minus ``times`` another's on the same jobsets, with a 95 % interval.

        The bootstrap over jobsets takes both results of a jobset together, which makes the
        interval narrower than the two intervals of the means suggest; if there are several seeds
        on a side, they vary too. For ``num_disjoint`` see `estimate`.
        """
        values, others = pooled(self.members, metric), pooled(other.members, metric)
        others = replace(others, totals=times * others.totals)
        within = difference_interval(values, others, num_disjoint)
        if len(self.members) == len(other.members) == 1:
            return within
        num_jobsets = _at_most(in_both(values, others)[0].size, num_disjoint)
        means = [self._means(metric), [times * mean for mean in other._means(metric)]]
        return two_level_interval(means, within, num_jobsets)

    def ratio(self, other: "Result", metric: str) -> Estimate:
        """This mean over another's on the same jobsets, with a 95 % interval as in `difference`.

        The other is of a single policy, and its mean must not be 0.
        """
        values, others = pooled(self.members, metric), pooled(other.members, metric)
        within = ratio_interval(values, others)
        if len(self.members) == 1:
            return within
        shares = [mean / other.mean(metric) for mean in self._means(metric)]
        return two_level_interval([shares], within, in_both(values, others)[0].size)

    def win_rate(self, baselines: "Sequence[Result]", metric: str) -> Estimate:
        """See `win_rate`: the share over all members, against the first member of each baseline.

        The interval over seeds is Student's, cut at 0 and 1.
        """
        others = [baseline.members[0] for baseline in baselines]
        shares = [win_rate(member, others, metric) for member in self.members]
        if len(shares) == 1:
            return shares[0]
        wins = np.sum([_wins(member, others, metric) for member in self.members], axis=0)
        counts = np.sum([member.num_jobs > 0 for member in self.members], axis=0).astype(np.float64)
        within = jobset_interval(Pooled(wins, counts))
        values = [share.value for share in shares]
        wide = two_level_interval([values], within, int(np.sum(counts > 0)))
        low, high = (float(np.clip(end, 0.0, 1.0)) for end in (wide.low, wide.high))
        return replace(wide, low=low, high=high)

    def _means(self, metric: str) -> list[float]:
        return [member.mean(metric) for member in self.members]

    @property
    def means(self) -> dict[str, float]:
        """All means of `Summary.means`, averaged over the members."""
        return {
            name: float(np.mean([member.means[name] for member in self.members]))
            for name in self.members[0].means
        }


def pooled(members: Sequence[Summary], metric: str) -> Pooled:
    """The values of several policies together, by jobset."""
    totals = np.sum([member.totals[metric] for member in members], axis=0)
    return Pooled(totals, np.sum([member.counts[metric] for member in members], axis=0))


def _at_most(num_jobsets: int, num_disjoint: int | None) -> int:
    return num_jobsets if num_disjoint is None else min(num_jobsets, num_disjoint)


def compare_policies(
    groups: Sequence[PolicyGroup],
    jobsets: Sequence[JobSet],
    world: World,
    *,
    run_seed: int = 0,
    episodes_per_jobset: int = 1,
    also: Sequence[str] = (),
    warmup: int = 0,
) -> list[Result]:
    """Evaluates several policies on the same jobsets, in the order of the groups.

    For the arguments see `evaluate` and `summarize`; every policy draws from the same random
    numbers.
    """
    metrics = spec_of(world).metrics
    results = []
    for group in groups:
        members = []
        for policy in group.members:
            schedule = evaluate(
                policy, jobsets, world, run_seed=run_seed, episodes_per_jobset=episodes_per_jobset
            )
            members.append(summarize(schedule, also, warmup=warmup, metrics=metrics))
        results.append(Result(group.name, tuple(members)))
    return results


def best(results: Sequence[Result], metric: str) -> Result:
    """The result with the best mean; the first of equals."""
    rank = get_metric(metric).rank
    return min(results, key=lambda result: rank(result.mean(metric)))


def win_rate(summary: Summary, baselines: Sequence[Summary], metric: str = "slowdown") -> Estimate:
    """Share of jobsets on which a policy is at least as good as the best of its baselines there.

    A jobset that the policy leaves unfinished is lost. A baseline that leaves it unfinished cannot
    win it. Ties count as wins. Jobsets without jobs are left out. The 95 % interval is over
    jobsets.
    """
    counts = (summary.num_jobs > 0).astype(np.float64)
    return jobset_interval(Pooled(_wins(summary, baselines, metric), counts))


def _wins(summary: Summary, baselines: Sequence[Summary], metric: str) -> NDArray[np.float64]:
    """1 for each jobset on which no baseline is better, else 0, float64 ``(num_jobsets,)``."""
    # As costs, so that lower is better, and a jobset that is not finished costs infinitely much.
    sign = -1.0 if get_metric(metric).higher_is_better else 1.0
    own = _costs(summary, metric, sign)
    best_baseline = np.min([_costs(baseline, metric, sign) for baseline in baselines], axis=0)
    won = np.isfinite(own) & (own <= best_baseline + _TIE)
    return np.where(summary.num_jobs > 0, won, False).astype(np.float64)


def _costs(summary: Summary, metric: str, sign: float) -> NDArray[np.float64]:
    """Cost of each jobset, float64 ``(num_jobsets,)``; infinite where a job did not finish."""
    return np.where(summary.num_unfinished > 0, np.inf, sign * summary.rows(metric))
