"""What every step in this world keeps, beside what the checker of environments knows."""

from typing import Any

import numpy as np

from cluster_env.core.graphs import stages_of
from cluster_env.envs.checker import Moment, require
from cluster_env.worlds.graphs.state import HEADER


def check_step(
    core: Any, before: Moment, after: Moment, action: int, reward: float, where: str
) -> None:
    """Time stands still only where an executor was there to be assigned.

    No more executors run or are free than there are. At the end all tasks of the jobs have run.
    """
    goes_on = not (after.terminated or after.truncated)
    offered = bool(before.mask[:-1].any())
    require(after.time > before.time or offered or not goes_on, f"time stands still {where}")
    header, executors = core.simulator.states[0], core.world.executors
    for name in ("free", "busy"):
        value = int(header[getattr(HEADER, name)])
        require(0 <= value <= executors, f"{value} of {executors} executors are {name} {where}")
    require(int(header[HEADER.most]) <= int(header[HEADER.free]), f"too many may be sent {where}")
    if after.terminated:
        check_tasks(after.schedule)


def check_tasks(schedule: Any) -> None:
    """No executor runs two tasks at a time, and every task of the jobs has run."""
    pieces = schedule.pieces
    order = np.lexsort((pieces.begin, pieces.node))
    node, begin, end = (column[order] for column in (pieces.node, pieces.begin, pieces.end))
    require(
        bool(((node[1:] != node[:-1]) | (begin[1:] >= end[:-1])).all()),
        "an executor runs two tasks at a time",
    )
    run = np.bincount(pieces.job, minlength=schedule.job.size)
    expected = stages_of(schedule).tasks.sum(axis=1)
    require(bool((run == expected).all()), "a job has run other than all of its tasks")
