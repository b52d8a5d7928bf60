"""A stretch of a log in one go, beside the windows that a guard decides on.

Windows last for days. Queues of a busy machine build up over months: a rule that lets some jobs
starve may look good in all windows, and a bound on waits hardly ever binds there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import (
    PolicyGroup,
    Result,
    compare_policies,
    get_metric,
    rank_finishing,
    told_apart,
)
from cluster_env.workloads.log import LogWorkload
from tune_jobs.measuring.protocol import EvaluationProtocol


@dataclass(frozen=True, eq=False)
class AllWeeks:
    """What the best heuristic achieves on jobs of a log in one go, and what is worse.

    Attributes:
        protocol: whose metric and limits count.
        reference: what the best heuristic achieves.
    """

    protocol: EvaluationProtocol
    reference: Result

    @classmethod
    def of(cls, protocol: EvaluationProtocol, results: Sequence[Result]) -> "AllWeeks":
        """With the best of some heuristics, at least one; see `play_weeks`."""
        best = min(results, key=lambda result: rank_finishing(result, protocol.metric))
        return cls(protocol, best)

    def violation(self, result: Result) -> str:
        """In which metrics a policy is worse than the reference by more than a limit, in words."""
        if result.name == self.reference.name:
            return ""
        means, words = result.means, []
        for metric, limit in self.protocol.side_metrics.items():
            worse = worse_by(metric, means[metric], self.reference.means[metric])
            if worse > limit:
                beyond, allowed = told_apart(worse, limit)
                words.append(
                    f"its {get_metric(metric).label} of {means[metric]:.3g} over all weeks in one "
                    f"go is {beyond} worse than the {self.reference.means[metric]:.3g} of "
                    f"{self.reference.name}, which is more than {allowed}"
                )
        return ", and ".join(words)


def weeks_of(protocol: EvaluationProtocol, *, later: bool = False) -> list[JobSet]:
    """The jobs before the held-out ones in one go, or these; none where jobs are of no log.

    Limits hold there in worlds with references alone, see `Training.references`.
    """
    workload, world = protocol.task.workload, protocol.task.world
    references = protocol.task.spec.training.references(world)
    if not references or not isinstance(workload, LogWorkload):
        return []
    part = workload.part(Split.HELD_OUT) if later else workload.before_held_out()
    return [part.recorded.jobset()]


def play_weeks(
    protocol: EvaluationProtocol, weeks: Sequence[JobSet], policies: Sequence[tuple[str, Policy]]
) -> list[Result]:
    """What policies, with their names, achieve on all weeks; nothing where there are none."""
    if not weeks:
        return []
    return compare_policies(
        [PolicyGroup(name, (policy,)) for name, policy in policies],
        weeks,
        protocol.task.world,
        run_seed=protocol.task.seed,
        also=[protocol.metric, *protocol.side_metrics],
    )


def worse_by(metric: str, value: float, reference: float) -> float:
    """By what share of a reference's mean another one is worse; infinity where that is 0."""
    if value == reference:
        return 0.0
    if not reference:
        return float("inf")
    change = value / reference - 1
    return -change if get_metric(metric).higher_is_better else change
