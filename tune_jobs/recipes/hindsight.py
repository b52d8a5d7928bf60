"""Policies and, on the same unseen jobsets, the best that anybody could have done in hindsight."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import Optimum, spec_of
from cluster_env.core.world import World
from cluster_env.evaluation import Result, summarize
from cluster_env.evaluation.comparison import pooled
from cluster_env.evaluation.intervals import Estimate, Pooled, ratio_interval, two_level_interval
from cluster_env.task import Task
from tune_jobs.measuring.evaluating import measure
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.work import Work

Starts = NDArray[np.int32]


REFERENCE = ("status", "value", "bound", "num_jobs")
"""Of the best schedule that is known for a jobset, see `cluster_env.core.spec.Optimum`: status,
sum of the metric over its jobs, what no schedule can beat, and number of jobs."""


@dataclass(frozen=True)
class Hindsight:
    """What policies did, and what they could have done.

    Attributes:
        metric: what is compared: ``completion_time`` if that is the task's objective, else
            ``slowdown``.
        results: what each spec did.
        references: the columns `REFERENCE`, a row for each jobset.
    """

    metric: str
    results: tuple[Result, ...]
    references: pd.DataFrame

    @property
    def num_proven(self) -> int:
        """Number of jobsets whose best schedule is proven optimal."""
        return int((self.references["status"] == "optimal").sum())

    def ratio(self, result: Result) -> Estimate:
        """A mean over that of the best schedules, both pooled over jobs, with a 95 % interval.

        It is over jobsets, and over seeds too if there are several, as in `Result.estimate`.
        """
        sums, counts = (self.references[name].to_numpy(float) for name in ("value", "num_jobs"))
        best = Pooled(sums, counts)
        within = ratio_interval(pooled(result.members, self.metric), best)
        if len(result.members) == 1:
            return within
        means = [member.mean(self.metric) / best.mean for member in result.members]
        return two_level_interval([means], within, int(np.sum(counts > 0)))


def optimum_of(task: Task) -> Optimum:
    """How the best schedules of a task are found, which needs to be possible here.

    Raises:
        InputError: if nobody knows how in its world, or a package is missing.
    """
    optimum = task.spec.tools.optimum
    if optimum is None:
        raise InputError(
            f"the world {task.world.kind} has no method to find the best schedule in "
            "hindsight; register one as its optimum"
        )
    optimum.require()
    return optimum


def metric_in_hindsight(task: Task) -> str:
    """The metric that is compared where a policy is trained for a task's objective.

    Raises:
        InputError: see `optimum_of`.
    """
    known = optimum_of(task).metrics
    return task.objective.name if task.objective.name in known else known[0]


def look_back(
    specs: Sequence[PolicySpec],
    protocol: EvaluationProtocol,
    *,
    time_limit_s: float,
    work: Work,
) -> Hindsight:
    """Evaluates policies on held-out jobsets and searches for the best schedule of each jobset.

    The policies' schedules are where the search begins. The metric of the protocol is one of
    `metric_in_hindsight`.

    Raises:
        InputError: if OR-tools is not installed, no job arrives, or a policy is for another
            world.
    """
    optimum_of(protocol.task)
    jobsets = protocol.held_out()
    if not any(jobset.num_jobs for jobset in jobsets):
        raise InputError(
            f"no job arrives in these {len(jobsets)} jobsets; give more with --jobsets"
        )
    played = measure(protocol, specs, _played, work)
    known: list[list[Starts]] = [[] for _ in jobsets]
    for _, complete in played:
        for jobset, starts in complete:
            if starts.size == jobsets[jobset].num_jobs:
                known[jobset].append(starts)
    proven = 0

    def name(problem: object, reference: Any) -> str:
        nonlocal proven
        proven += reference.status == "optimal"
        return f"best in hindsight, {proven} proven optimal"

    shared = protocol.task.world, protocol.metric, time_limit_s
    problems = list(zip(jobsets, known, strict=True))
    found = work.measure(_search, shared, problems, unit="jobset", name=name)
    cells = [[getattr(reference, name) for name in REFERENCE] for reference in found]
    results = tuple(result for result, _ in played)
    return Hindsight(protocol.metric, results, pd.DataFrame(cells, columns=REFERENCE))


def _played(
    protocol: EvaluationProtocol, spec: PolicySpec, name: str, schedules: Sequence[Schedule]
) -> tuple[Result, list[tuple[int, Starts]]]:
    """What a spec did, and jobset and starts of all episodes in which all jobs finished."""
    result = Result(name, tuple(map(summarize, schedules)))
    return result, [one for schedule in schedules for one in _complete(schedule)]


def _complete(schedule: Schedule) -> Iterator[tuple[int, Starts]]:
    """Jobset and starts of each episode whose jobs all finished; some may not have arrived."""
    order = np.lexsort((schedule.job, schedule.episode))
    ends = np.cumsum(np.bincount(schedule.episode, minlength=schedule.num_episodes))[:-1]
    for jobset, jobs in zip(schedule.jobset.tolist(), np.split(order, ends), strict=True):
        if schedule.finished[jobs].all():
            yield jobset, schedule.start[jobs]


def _search(shared: tuple[World, str, float], problem: tuple[JobSet, Sequence[Starts]]) -> Any:
    (world, metric, time_limit_s), (jobset, known) = shared, problem
    optimum = spec_of(world).tools.optimum
    assert optimum is not None
    return optimum.search(jobset, world, metric, known=known, time_limit_s=time_limit_s)
