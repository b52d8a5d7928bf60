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
from cluster_env.evaluation import Result, evaluate, summarize
from cluster_env.evaluation.comparison import pooled
from cluster_env.evaluation.intervals import Estimate, Pooled, ratio_interval, two_level_interval
from cluster_env.task import Task
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.terminal.own_processes import own_processes
from tune_jobs.terminal.progress import Progress
from tune_jobs.terminal.running import num_local_cpus

Starts = NDArray[np.int32]

_START_UP_S = 120.0  # for a process to import what it needs, on a busy machine


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
    progress: Progress,
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
    results, known = _evaluate(specs, protocol, jobsets, progress)
    found = _search_all(jobsets, known, protocol, time_limit_s, progress)
    cells = [[getattr(reference, name) for name in REFERENCE] for reference in found]
    return Hindsight(protocol.metric, tuple(results), pd.DataFrame(cells, columns=REFERENCE))


def _evaluate(
    specs: Sequence[PolicySpec],
    protocol: EvaluationProtocol,
    jobsets: Sequence[JobSet],
    progress: Progress,
) -> tuple[list[Result], list[list[Starts]]]:
    """A result for each spec, and for each jobset the starts of all complete schedules."""
    for spec in specs:
        spec.check(protocol)
    progress.start(len(specs), unit="evaluation")
    results: list[Result] = []
    known: list[list[Starts]] = [[] for _ in jobsets]
    for done, spec in enumerate(specs, start=1):
        group = spec.make(protocol)
        schedules = [
            evaluate(
                policy,
                jobsets,
                protocol.task.world,
                run_seed=protocol.task.seed,
                episodes_per_jobset=protocol.num_episodes,
            )
            for policy in group.members
        ]
        results.append(Result(group.name, tuple(map(summarize, schedules))))
        for schedule in schedules:
            for jobset, starts in _complete(schedule, jobsets):
                known[jobset].append(starts)
        progress.step(done, group.name)
    progress.close()
    return results, known


def _complete(schedule: Schedule, jobsets: Sequence[JobSet]) -> Iterator[tuple[int, Starts]]:
    """Jobset and starts of each episode that finished all jobs."""
    order = np.lexsort((schedule.job, schedule.episode))
    ends = np.cumsum(np.bincount(schedule.episode, minlength=schedule.num_episodes))[:-1]
    for jobset, jobs in zip(schedule.jobset.tolist(), np.split(order, ends), strict=True):
        if schedule.finished[jobs].all() and jobs.size == jobsets[jobset].num_jobs:
            yield jobset, schedule.start[jobs]


def _search_all(
    jobsets: Sequence[JobSet],
    known: Sequence[Sequence[Starts]],
    protocol: EvaluationProtocol,
    time_limit_s: float,
    progress: Progress,
) -> list[Any]:
    """The reference of each jobset, searched for in as many processes as there are cores."""
    progress.start(len(jobsets), unit="jobset")
    references: list[Any] = []
    shared = protocol.task.world, protocol.metric, time_limit_s
    problems = list(zip(jobsets, known, strict=True))
    limit_s = _START_UP_S + 3 * time_limit_s
    with own_processes(min(num_local_cpus(), len(jobsets)), limit_s) as spread:
        for done, reference in enumerate(spread(_search, shared, problems), start=1):
            references.append(reference)
            proven = sum(each.status == "optimal" for each in references)
            progress.step(done, f"best in hindsight: {proven} of {done} proven optimal")
    progress.close()
    return references


def _search(shared: tuple[World, str, float], problem: tuple[JobSet, Sequence[Starts]]) -> Any:
    (world, metric, time_limit_s), (jobset, known) = shared, problem
    optimum = spec_of(world).tools.optimum
    assert optimum is not None
    return optimum.search(jobset, world, metric, known=known, time_limit_s=time_limit_s)
