"""What policies cost on a task, and the heuristics that they are measured against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.core.spec import WorldSpec, get_heuristic
from cluster_env.evaluation import (
    Metric,
    by_size,
    check_warmup,
    choose,
    evaluate,
    get_metric,
    nonnegative_cost,
    tuned_numbers,
)
from cluster_env.evaluation.summary import is_measured
from cluster_env.task import Task

P = TypeVar("P", bound=Policy)

Keep = Literal["best", "last"]
"""Whether adaptation keeps the best of its steps by validation jobsets, or all steps."""

TUNING_JOBSETS = 100
"""Validation jobsets on which the numbers of heuristics are chosen, for each task anew."""

DEFAULT_JOBSETS = 100
"""Held-out jobsets of a task that costs are means over."""


@dataclass(frozen=True)
class Cost:
    """What a policy costs on a task.

    Attributes:
        policy: its name.
        value: mean of the task's cost over all jobs that are measured, or episodes, of all jobsets;
            NaN without any.
        num_unfinished: measured jobs that had not finished when their episode ended, or were
            dropped; they make the cost a lower bound.
        side_metrics: means of `WorldSpec.side_metrics`, which a low cost may be bought with, and of
            the world's headline by size of jobs.
    """

    policy: str
    value: float
    num_unfinished: int
    side_metrics: Mapping[str, float] = field(default_factory=dict)


def mean_cost(metric: Metric, schedule: Schedule) -> float:
    """Mean of a metric over all jobs that count, or episodes, of a schedule; NaN if none do."""
    values = metric.values(schedule)
    if metric.per == "job":
        kept = is_measured(schedule, 0)
        values = values[kept if metric.counts is None else kept & metric.counts(schedule)]
    elif metric.counts is not None:
        values = values[metric.counts(schedule)]
    return float(values.mean()) if values.size else float("nan")


def costs_on(
    policies: Sequence[Policy],
    task: Task,
    *,
    num_jobsets: int = DEFAULT_JOBSETS,
    split: Split = Split.HELD_OUT,
    warmup: int = 0,
) -> list[Cost]:
    """Evaluates policies on the same jobsets of a task, with the same random numbers.

    The jobsets are the first of a split, at least 1; what is reported rests on `Split.HELD_OUT`.
    Jobs of a warm-up at both ends of a window, in units of time, are not measured, see
    `cluster_env.evaluation.summarize`.

    Raises:
        InputError: if the warm-up leaves nothing of a window.
    """
    jobsets = _jobsets(task, split, num_jobsets, warmup)
    return [_cost(policy, task, jobsets) for policy in policies]


def best_so_far(policies: Sequence[P], task: Task, *, warmup: int = 0) -> list[P]:
    """In place of each policy, the one with the lowest cost among it and those before it.

    Costs are those on as many validation jobsets of the task as heuristics are tuned on; the first
    of equals wins. So a step of adaptation that does not pay is taken back. For the warm-up see
    `costs_on`.
    """
    costs = costs_on(
        policies, task, num_jobsets=TUNING_JOBSETS, split=Split.VALIDATION, warmup=warmup
    )
    best = 0
    kept = []
    for place, cost in enumerate(costs):
        best = place if cost.value < costs[best].value else best
        kept.append(policies[best])
    return kept


def heuristics_for(task: Task, names: Sequence[str], *, warmup: int = 0) -> dict[str, Policy]:
    """Heuristics for a task, by name; the name of one that takes a number says which.

    It gets the one with the lowest cost on validation jobsets of the task, the first of equals;
    this makes it stronger than any fixed one. For the warm-up see `costs_on`.
    """
    jobsets = _jobsets(task, Split.VALIDATION, TUNING_JOBSETS, warmup)
    heuristics = {}
    for name in names:
        numbers = tuned_numbers(name, task.world)
        if not numbers:
            heuristics[name] = get_heuristic(name, task.world)
            continue
        by_number = {number: get_heuristic(f"{name}:{number}", task.world) for number in numbers}
        best = choose(by_number, lambda policy: _cost(policy, task, jobsets).value)
        heuristics[name] = by_number[best]
    return heuristics


def all_heuristics(task: Task) -> tuple[str, ...]:
    """The names of the world's baselines, then of all others."""
    return tuple(dict.fromkeys((*task.spec.baselines, *task.spec.heuristics.names())))


def heuristic_costs(
    task: Task,
    names: Sequence[str] | None = None,
    *,
    num_jobsets: int = DEFAULT_JOBSETS,
    split: Split = Split.HELD_OUT,
    warmup: int = 0,
) -> dict[str, Cost]:
    """Costs of heuristics on a task, by name; arguments after ``names`` are those of `costs_on`.

    By default they are `all_heuristics`.
    """
    if names is None:
        names = all_heuristics(task)
    policies = heuristics_for(task, names, warmup=warmup)
    costs = costs_on(
        [*policies.values()], task, num_jobsets=num_jobsets, split=split, warmup=warmup
    )
    return dict(zip(policies, costs, strict=True))


def baseline_of(spec: WorldSpec, costs: Mapping[str, Cost], names: Sequence[str] = ()) -> Cost:
    """The lowest cost of some baselines, by which others are divided; the first of equals.

    By default they are those of the world.
    """
    return min((costs[name] for name in names or spec.baselines), key=lambda cost: cost.value)


def baselines_of(
    tasks: Sequence[Task],
    num_jobsets: int,
    split: Split = Split.HELD_OUT,
    *,
    warmup: int = 0,
    names: Sequence[str] = (),
) -> list[Cost]:
    """The lowest cost of the baselines on each task, on so many jobsets of a split.

    For the warm-up see `costs_on`, for the names `baseline_of`.
    """
    lowest = []
    for task in tasks:
        measured = names or task.spec.baselines
        costs = heuristic_costs(task, measured, num_jobsets=num_jobsets, split=split, warmup=warmup)
        lowest.append(baseline_of(task.spec, costs, measured))
    return lowest


def _jobsets(task: Task, split: Split, count: int, warmup: int) -> list[JobSet]:
    """The first jobsets of a split, of which jobs of a warm-up do not count."""
    jobsets = task.jobsets(split, range(count))
    check_warmup(warmup, (jobset.window for jobset in jobsets))
    return [jobset.counting(warmup) for jobset in jobsets]


def _cost(policy: Policy, task: Task, jobsets: Sequence[JobSet]) -> Cost:
    """What a policy costs on jobsets, beside what a low cost may be bought with."""
    schedule, spec = evaluate(policy, jobsets, task.world), task.spec
    unfinished = int((~schedule.finished & is_measured(schedule, 0)).sum())
    sizes = by_size(spec.headline, spec.metrics) if spec.side_metrics else ()
    names = (*spec.side_metrics, *sizes)
    side_metrics = {name: mean_cost(get_metric(name), schedule) for name in names}
    mean = mean_cost(nonnegative_cost(task.objective), schedule)
    return Cost(policy.name, mean, unfinished, side_metrics)
