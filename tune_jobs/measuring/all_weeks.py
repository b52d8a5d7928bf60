"""A stretch of a log in one go, beside the windows that a guard decides on.

Windows last for days. Queues of a busy machine build up over months: a rule that lets some jobs
starve may look good in all windows, and a bound on waits hardly ever binds there.
"""

from collections.abc import Mapping
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
    """Jobs of a log in one go, and the heuristic that is best on them.

    Attributes:
        protocol: whose log, world, metric and limits count.
        jobset: all of the jobs.
        reference: what the best heuristic achieves.
    """

    protocol: EvaluationProtocol
    jobset: JobSet
    reference: Result

    @classmethod
    def of(
        cls, protocol: EvaluationProtocol, heuristics: Mapping[str, Policy], *, later: bool = False
    ) -> "AllWeeks | None":
        """The weeks before the held-out jobs, or theirs; None where jobs are of no log.

        Args:
            protocol: see `AllWeeks`.
            heuristics: one or more by name, of which the best is the reference.
            later: whether the weeks are those of the held-out jobs.
        """
        workload = protocol.task.workload
        if not heuristics or not isinstance(workload, LogWorkload):
            return None
        part = workload.part(Split.HELD_OUT) if later else workload.before_held_out()
        jobset = part.recorded.jobset()
        results = [_play(protocol, jobset, name, rule) for name, rule in heuristics.items()]
        best = min(results, key=lambda result: rank_finishing(result, protocol.metric))
        return cls(protocol, jobset, best)

    def violation(self, name: str, policy: Policy) -> str:
        """In which metrics a policy is worse than the reference by more than a limit, in words."""
        if name == self.reference.name:
            return ""
        means, words = _play(self.protocol, self.jobset, name, policy).means, []
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


def worse_by(metric: str, value: float, reference: float) -> float:
    """By what share of a reference's mean another one is worse; infinity where that is 0."""
    if value == reference:
        return 0.0
    if not reference:
        return float("inf")
    change = value / reference - 1
    return -change if get_metric(metric).higher_is_better else change


def _play(protocol: EvaluationProtocol, jobset: JobSet, name: str, policy: Policy) -> Result:
    (result,) = compare_policies(
        [PolicyGroup(name, (policy,))],
        [jobset],
        protocol.task.world,
        run_seed=protocol.task.seed,
        also=[protocol.metric, *protocol.side_metrics],
    )
    return result
