"""How well policies adapt to the tasks of a split: what comparisons of methods rest on."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import choose
from meta.adaptation import MetaPolicy, adapt_policy, single_threaded
from meta.fine_tuning import ReinforcePolicy, fine_tune
from meta.plan import StudyPlan
from meta.scoring import baseline_of, costs_on, heuristics_for
from meta.tasks import Task, TaskDistribution

Adapt = Callable[[Task, Sequence[int], int], Sequence[Policy]]
"""From a task, numbers of steps (ascending) and a seed to the policies after as many steps."""

Each = Callable[[Callable[[Any, Any], Any], Any, Sequence[Any]], Iterable[Any]]
"""Calls a function of what all pieces share and of a piece, for each of some pieces, in order."""


def one_by_one(
    function: Callable[[Any, Any], Any], shared: Any, pieces: Sequence[Any]
) -> Iterator[Any]:
    """In this process; see `Each`."""
    return (function(shared, piece) for piece in pieces)


@dataclass(frozen=True)
class Baseline:
    """The lowest cost of the heuristics on a task, which other costs are divided by."""

    heuristic: str
    cost: float


@dataclass(frozen=True)
class Measured:
    """What a policy cost on a task after some steps of one adaptation.

    Attributes:
        task: the task's index.
        seed: of the adaptation.
        step: steps that were taken.
        cost: on the task's held-out jobsets.
        num_unfinished: jobs that did not finish there, or were dropped.
        price: see `meta.scoring.Cost`.
    """

    task: int
    seed: int
    step: int
    cost: float
    num_unfinished: int
    price: Mapping[str, float] = field(default_factory=dict)


def baselines_of(
    tasks: Sequence[Task], num_jobsets: int, split: Split = Split.HELD_OUT
) -> list[Baseline]:
    """The baseline of each task, on so many jobsets of a split."""
    baselines = []
    for task in tasks:
        pairs = heuristics_for(task, task.kind.baselines)
        policies = [policy for _, policy in pairs]
        costs = costs_on(policies, task, num_jobsets=num_jobsets, split=split)
        by_name = {name: cost for (name, _), cost in zip(pairs, costs, strict=True)}
        best = baseline_of(task.kind, by_name)
        baselines.append(Baseline(best.policy, best.value))
    return baselines


def adapter(policy: MetaPolicy | ReinforcePolicy, plan: StudyPlan) -> Adapt:
    """Adapts a policy as a plan says."""
    numbers = {"num_episodes": plan.num_episodes, "num_jobsets": plan.num_jobsets}

    def adapt(task: Task, steps: Sequence[int], seed: int) -> Sequence[Policy]:
        if isinstance(policy, ReinforcePolicy):
            return fine_tune(policy, task, steps, **numbers, seed=seed)
        policies = adapt_policy(policy, task, steps[-1], **numbers, seed=seed).policies(plan.decode)
        return [policies[step] for step in steps]

    return adapt


def measure(
    adapt: Adapt,
    tasks: Sequence[Task],
    plan: StudyPlan,
    *,
    split: Split = Split.HELD_OUT,
    num_seeds: int | None = None,
) -> Iterator[Measured]:
    """Adapts to every task, and evaluates on jobsets that no step has seen.

    Args:
        adapt: what is measured.
        tasks: what it adapts to; their indices count from 0.
        plan: steps, seeds and jobsets.
        split: of the jobsets that costs are measured on.
        num_seeds: adaptations of each task, if not the plan's.

    Yields:
        What was measured, by task, then seed, then step. The policy after 0 steps is the same for
        all seeds, and evaluated once.
    """
    for index, task in enumerate(tasks):
        unadapted = None
        for seed in range(plan.num_seeds if num_seeds is None else num_seeds):
            with single_threaded():
                policies = zip(plan.steps, adapt(task, plan.steps, seed), strict=True)
                wanted = [policy for step, policy in policies if step or unadapted is None]
                costs = costs_on(wanted, task, num_jobsets=plan.num_evaluation_jobsets, split=split)
            if plan.steps[0] == 0:
                unadapted = unadapted or costs[0]
                costs = costs if len(costs) == len(plan.steps) else [unadapted, *costs]
            for step, cost in zip(plan.steps, costs, strict=True):
                yield Measured(index, seed, step, cost.value, cost.num_unfinished, cost.price)


def choose_rate(
    policy: MetaPolicy, distribution: TaskDistribution, plan: StudyPlan, each: Each = one_by_one
) -> tuple[float, Mapping[float, float]]:
    """Chooses the inner rate of a policy on validation tasks.

    The rate with the lowest mean ratio of cost to baseline wins, over the tasks and over the plan's
    steps but 0, with one adaptation of each; the first of equals.

    Args:
        policy: what is adapted.
        distribution: where the tasks come from; those of `Split.VALIDATION` are used.
        plan: rates, tasks, steps and jobsets.
        each: has each rate tried.

    Returns:
        The rate, and the mean ratio of each that was tried.
    """
    tasks = plan.split(distribution, Split.VALIDATION)
    baselines = baselines_of(tasks, plan.num_evaluation_jobsets, Split.VALIDATION)
    found = each(_ratio_at, (policy, tasks, baselines, plan), plan.rates)
    scores = dict(zip(plan.rates, found, strict=True))
    return choose(scores, float), scores


def _ratio_at(
    shared: tuple[MetaPolicy, Sequence[Task], Sequence[Baseline], StudyPlan], rate: float
) -> float:
    """Mean ratio of cost to baseline at an inner rate, see `choose_rate`."""
    policy, tasks, baselines, plan = shared
    adapt = adapter(policy.with_rate(rate), plan)
    found = measure(adapt, tasks, plan, split=Split.VALIDATION, num_seeds=1)
    ratios = [one.cost / baselines[one.task].cost for one in found if one.step]
    return float(np.nanmean(ratios)) if ratios else 0.0
