"""What a guard's decision is worth on other jobs: of a log, those of later weeks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.evaluation import (
    GuardDecision,
    PolicyGroup,
    Result,
    compare_policies,
    get_metric,
)
from cluster_env.worlds import get_heuristic
from tune_jobs.comparing.protocol import EvaluationProtocol

_SLACK = 1e-9  # of what is compared in the last digits


@dataclass(frozen=True, eq=False)
class Later:
    """What became of a decision on other jobsets.

    Attributes:
        num_jobsets: how many.
        num_disjoint: how many of them fit side by side into the log's later part; none where
            jobsets are drawn one by one.
        results: of the reference, of what was chosen, and of the learned policy if it was not.
        chosen: name of what was chosen.
        beyond: for each limit that what was chosen does not keep there, by how much its metric is
            worse than the reference's, as a share.
    """

    num_jobsets: int
    num_disjoint: int | None
    results: tuple[Result, ...]
    chosen: str
    beyond: Mapping[str, float]


def look_later(
    protocol: EvaluationProtocol, decision: GuardDecision, learned: Policy, name: str
) -> Later:
    """Evaluates a decision on the held-out jobsets of a task.

    Args:
        protocol: on what it was made.
        decision: what was decided.
        learned: the policy that it was about.
        name: what tables call it.
    """
    world, jobsets = protocol.task.world, protocol.held_out()
    policies = {decision.reference: get_heuristic(decision.reference, world)}
    policies |= {decision.name: decision.chosen, name: learned}
    return judge_later(protocol, decision, policies, jobsets)


def judge_later(
    protocol: EvaluationProtocol,
    decision: GuardDecision,
    policies: Mapping[str, Policy],
    jobsets: Sequence[JobSet],
) -> Later:
    """See `look_later`; policies by name, the reference first."""
    results = compare_policies(
        [PolicyGroup(name, (policy,)) for name, policy in policies.items()],
        jobsets,
        protocol.task.world,
        run_seed=protocol.task.seed,
        also=[protocol.metric, *decision.limits],
        warmup=protocol.warmup,
    )
    by_name = {result.name: result for result in results}
    chosen, reference = by_name[decision.name], by_name[decision.reference]
    beyond = {}
    for metric, limit in decision.limits.items():
        worse = worse_by(metric, chosen.mean(metric), reference.mean(metric))
        if worse > limit + _SLACK:
            beyond[metric] = worse
    num_disjoint = protocol.num_disjoint_held_out
    return Later(len(jobsets), num_disjoint, tuple(results), decision.name, beyond)


def worse_by(metric: str, value: float, reference: float) -> float:
    """By what share of the reference a value is worse; below 0 where it is better."""
    if not reference:
        return 0.0 if value == reference else float("inf")
    change = value / reference - 1
    return -change if get_metric(metric).higher_is_better else change
