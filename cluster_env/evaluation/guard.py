"""Never worse than the best heuristic: a learned policy is used only where it has proven itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.world import World, kind_of
from cluster_env.evaluation.comparison import PolicyGroup, Result, compare_policies
from cluster_env.evaluation.intervals import Estimate
from cluster_env.evaluation.metrics import get_metric


@dataclass(frozen=True)
class Candidate:
    """What one policy did on the calibration jobsets.

    Attributes:
        name: what tables call it.
        mean: its mean, with the 95 % interval over jobsets.
        difference: its mean minus that of the best heuristic on the same jobsets, with the 95 %
            interval of the paired bootstrap.
        num_unfinished: jobs that it left unfinished.
    """

    name: str
    mean: Estimate
    difference: Estimate
    num_unfinished: int


@dataclass(frozen=True)
class GuardDecision:
    """What the guard lets decide, and why.

    Attributes:
        chosen: the learned policy, or the best heuristic.
        name: what tables call it.
        learned_is_used: whether it is the learned one.
        reason: one sentence.
        candidates: the heuristics from best to worst, then the learned policy.
        seconds: that the decision took, without what `Guard` did before for all policies.
    """

    chosen: Policy
    name: str
    learned_is_used: bool
    reason: str
    candidates: tuple[Candidate, ...]
    seconds: float


class Guard:
    """Heuristics on calibration jobsets, which learned policies have to beat there.

    A learned policy is used if its mean is better than that of the best heuristic with the whole
    95 % interval of the paired difference, and if it leaves no more jobs unfinished. In every
    other case the best heuristic is used, which is the one with the best mean among those that
    finish all jobs, if any does. As the best of several is picked on the same jobsets, it looks a
    little better than it is, so that the guard errs on the side of the heuristics. What it
    protects from is a policy that is worse on jobs like the calibration's; it cannot know that
    tomorrow's jobs are others.

    Args:
        baselines: heuristics, one policy each, tuned on other jobsets.
        jobsets: calibration jobsets of the operator's task: neither tuned nor reported on.
        world: see `evaluate`.
        metric: name of the metric that decides; by default the world's headline.
        run_seed: see there.
        warmup: see `summarize`.

    Attributes:
        heuristic: the best of the baselines.
        seconds: that evaluating the baselines took.
    """

    def __init__(
        self,
        baselines: Sequence[PolicyGroup],
        jobsets: Sequence[JobSet],
        world: World,
        *,
        metric: str | None = None,
        run_seed: int = 0,
        warmup: int = 0,
    ) -> None:
        started = perf_counter()
        self._jobsets = jobsets
        self._world = world
        metric = metric or kind_of(world).headline
        self._metric = get_metric(metric)
        self._run_seed = run_seed
        self._warmup = warmup
        results = [self._evaluate(baseline) for baseline in baselines]
        order = sorted(range(len(results)), key=lambda k: rank_finishing(results[k], metric))
        self.heuristic = baselines[order[0]]
        self._ranking = [results[k] for k in order]
        self.seconds = perf_counter() - started

    def decide(self, policy: Policy, name: str | None = None) -> GuardDecision:
        """Lets a learned policy prove itself.

        Args:
            policy: the learned policy.
            name: what tables call it; by default its own name.
        """
        started = perf_counter()
        learned = self._evaluate(PolicyGroup(name or policy.name, (policy,)))
        candidates = [self._candidate(result) for result in [*self._ranking, learned]]
        used, reason = self._judge(candidates[-1], candidates[0])
        chosen = policy if used else self.heuristic.members[0]
        return GuardDecision(
            chosen=chosen,
            name=learned.name if used else self.heuristic.name,
            learned_is_used=used,
            reason=reason,
            candidates=tuple(candidates),
            seconds=perf_counter() - started,
        )

    def _judge(self, learned: Candidate, best: Candidate) -> tuple[bool, str]:
        """Whether the learned policy is used, and why."""
        over = f"{best.name}, the best heuristic"
        if learned.num_unfinished > best.num_unfinished:
            return False, (
                f"{learned.name} left {learned.num_unfinished:,} jobs unfinished, "
                f"{over}, {best.num_unfinished:,}"
            )
        gap, label = learned.difference, self._metric.label
        interval = f"95% interval of the difference {gap.low:.3g} to {gap.high:.3g}"
        if not (gap.high < 0 or gap.low > 0):
            return False, (
                f"the {label} of {learned.name} cannot be told from that of {over} ({interval})"
            )
        word = "lower" if gap.high < 0 else "higher"
        return (gap.low > 0) == self._metric.higher_is_better, (
            f"the {label} of {learned.name} is {abs(gap.value):.3g} {word} than that of {over} "
            f"({interval})"
        )

    def _candidate(self, result: Result) -> Candidate:
        return Candidate(
            result.name,
            result.estimate(self._metric.name),
            result.difference(self._ranking[0], self._metric.name),
            int(result.means["unfinished"]),
        )

    def _evaluate(self, group: PolicyGroup) -> Result:
        return compare_policies(
            [group],
            self._jobsets,
            self._world,
            run_seed=self._run_seed,
            also=[self._metric.name],
            warmup=self._warmup,
        )[0]


def rank_finishing(result: Result, metric: str) -> tuple[bool, float]:
    """Smaller for a better result; one that leaves jobs unfinished comes after all that do not."""
    return result.means["unfinished"] > 0, get_metric(metric).rank(result.mean(metric))
