"""Jobs that are graphs of stages: how jobsets and schedules say them.

A *stage* is a number of equal tasks, each of which runs on one executor. It may begin when all of
its parents have ended. Jobs say their stages by three attributes with a column for each stage; a
job of fewer stages has zeros behind its own. Parents have lower numbers than their children.

* ``stage_tasks``: number of tasks, integers ``(num_jobs, width)``.
* ``stage_time``: mean time of a task, ``(num_jobs, width)``.
* ``stage_parents``: a bit for each parent, int64 ``(num_jobs, width)``: bit p for stage p.

`graph_jobs` makes such jobs. Their duration is the length of the critical path, below which no
machine can be; their demand is the mean number of executors that would keep them to it, so that
demand times duration is about the work. In schedules each task is a piece of one executor.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST, NO_ATTRIBUTES, JobSet
from cluster_env.core.schedule import Schedule

STAGE_TASKS, STAGE_TIME, STAGE_PARENTS = "stage_tasks", "stage_time", "stage_parents"
MOST_STAGES = 62
"""Of a job, so that the parents of a stage are the bits of one number."""


class Stages(NamedTuple):
    """The stages of jobs, see above."""

    tasks: NDArray[np.int64]  # (num_jobs, width)
    time: NDArray[np.float64]  # (num_jobs, width)
    parents: NDArray[np.int64]  # (num_jobs, width)

    @property
    def work(self) -> NDArray[np.float64]:
        """Executors times time of each job, float64 ``(num_jobs,)``."""
        total: NDArray[np.float64] = (self.tasks * self.time).sum(axis=1)
        return total

    def paths(self) -> NDArray[np.float64]:
        """Time from the beginning of each stage to the end of its job on the longest path below.

        By the mean times of tasks, float64 ``(num_jobs, width)``.
        """
        longest = np.where(self.tasks > 0, self.time, 0.0)
        # Children come behind their parents, so that one pass from the last stage on is enough.
        for child in range(longest.shape[1] - 1, 0, -1):
            linked = (self.parents[:, child, None] >> np.arange(child)) & 1 > 0
            through = self.time[:, :child] + longest[:, child, None]
            above = longest[:, :child]
            np.maximum(above, through, out=above, where=linked)
        return longest

    def of(self, rows: NDArray[np.int64]) -> "Stages":
        """The stages of some rows, int64 ``(n,)``."""
        return Stages(self.tasks[rows], self.time[rows], self.parents[rows])

    def resized(self, width: int) -> "Stages":
        """The same stages with so many columns; those that are cut off have no tasks."""
        missing = ((0, 0), (0, max(width - self.tasks.shape[1], 0)))
        tasks, time, parents = (
            self.tasks[:, :width],
            self.time[:, :width],
            self.parents[:, :width],
        )
        return Stages(np.pad(tasks, missing), np.pad(time, missing), np.pad(parents, missing))


def stages_of(jobs: JobSet | Schedule) -> Stages:
    """The stages of jobs.

    Raises:
        InputError: if they say none, or such as cannot be.
    """
    if STAGE_TASKS not in jobs.attributes:
        raise InputError(
            f"jobs of task graphs need the attributes {STAGE_TASKS}, {STAGE_TIME} and "
            f"{STAGE_PARENTS}, which these jobs do not have; the workloads of the world 'graphs' "
            "give them"
        )
    stages = Stages(
        np.asarray(jobs.attributes[STAGE_TASKS], np.int64),
        np.asarray(jobs.attributes[STAGE_TIME], np.float64),
        np.asarray(jobs.attributes[STAGE_PARENTS], np.int64),
    )
    width = stages.tasks.shape[-1]
    if len({part.shape for part in stages}) > 1 or stages.tasks.ndim != 2 or width > MOST_STAGES:
        raise InputError(
            f"stages need as many columns of tasks, times and parents, at most {MOST_STAGES}, but "
            f"{' and '.join(str(part.shape) for part in stages)} were given"
        )
    present = stages.tasks > 0
    gaps = (np.diff(present.astype(np.int8), axis=1) > 0).any(axis=1) | ~present[:, 0]
    later = (stages.parents < 0) | (stages.parents >= np.int64(1) << np.arange(width))
    for broken, what in (
        ((stages.tasks < 0).any(axis=1) | gaps, "needs stages of at least 1 task, side by side"),
        ((present & (stages.time < 1)).any(axis=1), "has tasks that last less than 1 time step"),
        (later.any(axis=1), "has a stage whose parents are not among the stages before it"),
    ):
        if broken.any():
            raise InputError(f"job {int(np.argmax(broken))} {what}")
    return stages


def graph_jobs(
    arrival: ArrayLike,
    stages: Stages,
    window: int = 0,
    attributes: Mapping[str, ArrayLike] = NO_ATTRIBUTES,
) -> JobSet:
    """Jobs of stages, with durations and demands that follow from these.

    Raises:
        InputError: if there can be no such jobs.
    """
    path = stages.paths().max(axis=1, initial=1.0)
    duration = np.clip(np.ceil(path), 1, LARGEST)
    demand = np.clip(np.rint(stages.work / path), 1, LARGEST)
    named = dict(zip((STAGE_TASKS, STAGE_TIME, STAGE_PARENTS), stages, strict=True))
    jobs = JobSet.of(arrival, duration, demand[:, None], window, attributes={**attributes, **named})
    stages_of(jobs)
    return jobs
