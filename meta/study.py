"""How well policies adapt to the tasks of a split: what comparisons of methods rest on.

Needs no PyTorch, so that a command that refuses its options does so at once.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import choose
from cluster_env.task import Task
from meta.costs import DEFAULT_JOBSETS, Keep, baselines_of, best_so_far, costs_on
from meta.tasks import TaskDistribution, TaskSplit, baselines_in, warmup_of
from rllib_configs.policy_files import Decode

Spread = Callable[[Callable[[Any, Any], Any], Any, Sequence[Any]], Iterable[Any]]
"""Calls a function of what all pieces share and of a piece, for each of some pieces, in order."""

RATES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Inner rates that are tried for a policy that has learned none."""


class Adaptable(Protocol):
    """A policy that can be adapted: `MetaPolicy` or `ReinforcePolicy`."""

    def after(self, task: Task, plan: "StudyPlan", seed: int) -> Sequence[Policy]:
        """The policies after each of a plan's numbers of steps on a task."""


class AdaptableAtRate(Adaptable, Protocol):
    """One that may have another inner rate: `MetaPolicy`."""

    def with_rate(self, rate: float) -> Adaptable:
        """The policy with one inner rate for all parameters."""


@dataclass(frozen=True)
class StudyPlan:
    """On what methods are compared; all methods have the same one.

    Attributes:
        num_tasks: tasks of the split, from the first, at least 1.
        task_seed: seed of the tasks, at least 0.
        num_seeds: adaptations of each task, with the seeds 0, 1, ...
        steps: after how many steps policies are evaluated, ascending.
        num_episodes: episodes of a step, over all its jobsets.
        num_jobsets: jobsets of a step.
        num_evaluation_jobsets: held-out jobsets of a task that costs are means over.
        rates: inner rates to choose from for a policy that has learned none.
        num_rate_tasks: validation tasks on which it is chosen.
        warmup: units of time at both ends of windows whose jobs do not count.
        baselines: heuristics by the best of which costs are divided; unset: those of the world.
        decode: how adapted policies act, see `rllib_configs.policy_files.LearnedPolicy`. Those of
            `meta.fine_tuning` draw, as they are trained to: the likeliest action would leave jobs
            waiting for ever.
        keep: what is evaluated after some steps: ``last``, the policy after all of them, or
            ``best``, see `meta.costs.best_so_far`, as ``metasched adapt`` keeps it.
    """

    num_tasks: int = 40
    task_seed: int = 0
    num_seeds: int = 3
    steps: tuple[int, ...] = (0, 1, 2, 3, 5, 10)
    num_episodes: int = 20
    num_jobsets: int = 4
    num_evaluation_jobsets: int = DEFAULT_JOBSETS
    rates: tuple[float, ...] = RATES
    num_rate_tasks: int = 15
    decode: Decode = "argmax"
    keep: Keep = "last"
    warmup: int = 0
    baselines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("num_tasks", "num_seeds", "num_evaluation_jobsets", "num_rate_tasks"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given")
        if not self.steps or self.steps[0] < 0 or list(self.steps) != sorted(set(self.steps)):
            raise InputError(
                f"the steps after which policies are evaluated must be whole numbers from 0, "
                f"ascending, not {list(self.steps)}"
            )
        if not self.rates or not all(0 < rate < math.inf for rate in self.rates):
            raise InputError(f"inner rates must be above 0, but {list(self.rates)} were given")

    def on(self, distribution: TaskDistribution) -> "StudyPlan":
        """The plan with the warm-up and the baselines of a distribution."""
        spec = distribution.base.build().spec
        return replace(
            self, warmup=warmup_of(distribution), baselines=baselines_in(distribution, spec)
        )

    def split(self, distribution: TaskDistribution, split: Split) -> list[Task]:
        """The tasks that are reported (`Split.HELD_OUT`), or those that rates are chosen on.

        They are as many of each kind of objective, see `TaskSplit.balanced`.
        """
        count = self.num_tasks if split is Split.HELD_OUT else self.num_rate_tasks
        return TaskSplit(distribution, self.task_seed, split).balanced(count)


@dataclass(frozen=True)
class Measured:
    """What a policy cost on a task after some steps of one adaptation.

    Attributes:
        task: the task's index.
        seed: of the adaptation.
        step: steps that were taken.
        cost: on the task's held-out jobsets.
        num_unfinished: jobs that did not finish there, or were dropped.
        side_metrics: see `meta.costs.Cost`.
    """

    task: int
    seed: int
    step: int
    cost: float
    num_unfinished: int
    side_metrics: Mapping[str, float] = field(default_factory=dict)


def measure(
    policy: Adaptable,
    tasks: Sequence[Task],
    plan: StudyPlan,
    *,
    split: Split = Split.HELD_OUT,
    num_seeds: int | None = None,
) -> Iterator[Measured]:
    """Adapts to every task, and evaluates on jobsets of a split that no step has seen.

    Yields by task, whose indices count from 0, then seed, then step. The policy after 0 steps is
    the same for all seeds, and evaluated once.
    """
    for index, task in enumerate(tasks):
        unadapted = None
        for seed in range(plan.num_seeds if num_seeds is None else num_seeds):
            # All seeds begin with the same policy.
            policies: Sequence[Policy] = policy.after(task, plan, seed)
            if plan.keep == "best":
                policies = best_so_far(policies, task, warmup=plan.warmup)
            pairs = zip(plan.steps, policies, strict=True)
            unmeasured = [one for step, one in pairs if step or unadapted is None]
            numbers = {"num_jobsets": plan.num_evaluation_jobsets, "warmup": plan.warmup}
            costs = costs_on(unmeasured, task, split=split, **numbers)
            if plan.steps[0] == 0:
                unadapted = unadapted or costs[0]
                costs = costs if len(costs) == len(plan.steps) else [unadapted, *costs]
            for step, cost in zip(plan.steps, costs, strict=True):
                measured = (cost.value, cost.num_unfinished, cost.side_metrics)
                yield Measured(index, seed, step, *measured)


def choose_rate(
    policy: AdaptableAtRate,
    distribution: TaskDistribution,
    plan: StudyPlan,
    spread: Spread | None = None,
) -> tuple[float, Mapping[float, float]]:
    """Chooses the inner rate of a policy on tasks of `Split.VALIDATION`.

    The rate with the lowest mean ratio of cost to baseline wins, over the tasks and over the plan's
    steps but 0, with one adaptation of each; the first of equals. A `Spread` tries rates side by
    side. Returns the rate, and the mean ratio of each that was tried.
    """
    tasks = plan.split(distribution, Split.VALIDATION)
    costs = baselines_of(
        *(tasks, plan.num_evaluation_jobsets, Split.VALIDATION),
        warmup=plan.warmup,
        names=plan.baselines,
    )
    baselines = [cost.value for cost in costs]
    shared = (policy, tasks, baselines, plan)
    if spread is None:
        ratios: Iterable[float] = [mean_ratio(shared, rate) for rate in plan.rates]
    else:
        ratios = spread(mean_ratio, shared, plan.rates)
    scores = dict(zip(plan.rates, ratios, strict=True))
    return choose(scores, float), scores


def mean_ratio(
    shared: tuple[AdaptableAtRate, Sequence[Task], Sequence[float], StudyPlan], rate: float
) -> float:
    """Mean ratio of cost to baseline at an inner rate: a piece of `choose_rate`, see `Spread`."""
    policy, tasks, baselines, plan = shared
    plan = replace(plan, keep="last")  # costs on validation jobsets must not be chosen by them
    results = measure(policy.with_rate(rate), tasks, plan, split=Split.VALIDATION, num_seeds=1)
    ratios = [one.cost / baselines[one.task] for one in results if one.step]
    return float(np.nanmean(ratios)) if ratios else 0.0
