"""What policies cost on a task, and the heuristics that they are measured against."""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import SWEEPS, evaluate
from cluster_env.worlds.deeprm.heuristics import get_heuristic
from meta.tasks.task import Task, mean_cost

BASELINES = ("tetris", "sjf", "packer")
"""Heuristics whose lowest cost on a task is what costs are divided by."""

HEURISTICS = (*BASELINES, "hold", "random")
"""Heuristics that are measured on every task."""

TUNING_JOBSETS = 100
"""Validation jobsets on which the numbers of tetris and hold are chosen, for each task anew."""

DEFAULT_JOBSETS = 100
"""Held-out jobsets of a task that costs are means over."""


@dataclass(frozen=True)
class Cost:
    """What a policy costs on a task.

    Attributes:
        policy: its name.
        value: mean of the task's cost over all jobs, or episodes, of all jobsets; NaN without any.
        unfinished: jobs that had not finished when their episode ended, or were dropped; they make
            the cost a lower bound.
    """

    policy: str
    value: float
    unfinished: int


def costs_on(
    policies: Sequence[Policy],
    task: Task,
    *,
    jobsets: int = DEFAULT_JOBSETS,
    split: Split = Split.HELD_OUT,
    seed: int = 0,
) -> list[Cost]:
    """Evaluates policies on the same jobsets of a task, with the same random numbers.

    Args:
        policies: what decides.
        task: jobs, cluster and cost.
        jobsets: how many of its jobsets, from the first, at least 1.
        split: which of them; what is reported rests on `Split.HELD_OUT`.
        seed: of the policies' random numbers, at least 0.
    """
    drawn = task.jobsets(split, range(jobsets))
    return [_cost(policy, task, drawn, seed) for policy in policies]


def heuristics_for(
    task: Task, names: Sequence[str] = HEURISTICS, *, jobsets: int = TUNING_JOBSETS
) -> list[tuple[str, Policy]]:
    """Heuristics for a task, by name.

    ``tetris`` and ``hold`` get the number with the lowest cost on validation jobsets of the task,
    the first of equals; that makes them stronger than any fixed one.

    Args:
        task: what they are for.
        names: as `cluster_env.heuristics.get_heuristic` takes them.
        jobsets: validation jobsets to choose on.

    Returns:
        Each name with its policy, whose own name says the number.
    """
    drawn = task.jobsets(Split.VALIDATION, range(jobsets))
    return [(name, _chosen(name, task, drawn)) for name in names]


def heuristic_costs(
    task: Task,
    *,
    jobsets: int = DEFAULT_JOBSETS,
    split: Split = Split.HELD_OUT,
    seed: int = 0,
) -> dict[str, Cost]:
    """Costs of all `HEURISTICS` on a task, by name; arguments as in `costs_on`."""
    pairs = heuristics_for(task)
    costs = costs_on([policy for _, policy in pairs], task, jobsets=jobsets, split=split, seed=seed)
    return {name: cost for (name, _), cost in zip(pairs, costs, strict=True)}


def baseline_of(costs: dict[str, Cost]) -> Cost:
    """The lowest cost of the heuristics in `BASELINES`."""
    return min((costs[name] for name in BASELINES), key=lambda cost: cost.value)


def _chosen(name: str, task: Task, jobsets: Sequence[JobSet]) -> Policy:
    if name not in SWEEPS:
        return get_heuristic(name, task.cluster)
    candidates = [get_heuristic(f"{name}:{number}", task.cluster) for number in SWEEPS[name]]
    return min(candidates, key=lambda policy: _cost(policy, task, jobsets, 0).value)


def _cost(policy: Policy, task: Task, jobsets: Sequence[JobSet], seed: int) -> Cost:
    schedule = evaluate(
        policy,
        jobsets,
        task.cluster,
        task.rules,
        run_seed=seed,
        max_time=task.section.max_time,
    )
    unfinished = int((~schedule.finished).sum())
    return Cost(policy.name, mean_cost(task.metric, schedule), unfinished)
