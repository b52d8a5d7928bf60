"""From jobsets and an objective to the arrays that compiled functions read."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import Objective
from cluster_env.objectives.utility import time_utility_functions
from cluster_env.worlds.accrual.arrays import JOB, PLACE, ROW, Costs, Jobs, Machine, Rows, Work

_FAR = 2**40


def joined_jobs(jobsets: Sequence[JobSet], objective: Objective) -> Jobs:
    """The jobs of all jobsets, one after the other, and what an objective says of each.

    Raises:
        InputError: if their time-utility functions have different numbers of breakpoints.
    """

    def column(name: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(one, name) for one in jobsets]).astype(np.int64)

    functions = [time_utility_functions(one) for one in jobsets]
    widths = {rows.shape[1] for rows in functions}
    if len(widths) > 1:
        raise InputError(
            f"jobs that run side by side need time-utility functions of as many breakpoints, but "
            f"there are some of {' and '.join(str((width - 1) // 2) for width in sorted(widths))}"
        )
    tuf = np.concatenate(functions)
    arrival, duration = column("arrival"), column("duration")
    points = (tuf.shape[1] - 1) // 2
    worthless = tuf[:, points : 2 * points] <= 0
    last = np.where(worthless.any(axis=1), worthless.argmax(axis=1), points - 1)
    relative = tuf[np.arange(tuf.shape[0]), last] * duration
    never = ~worthless.any(axis=1)
    of = np.zeros(arrival.size, JOB)
    of["arrival"], of["size"], of["duration"] = arrival, column("demand")[:, 0], duration
    of["deadline"] = np.where(never, _FAR, arrival + np.floor(relative))
    of["rate"] = _of_jobs(jobsets, objective.job_cost)
    if objective.finish_gain is not None:
        of["finish_gain"] = _of_jobs(jobsets, objective.finish_gain)
    return Jobs(of, tuf)


def joined_costs(jobsets: Sequence[JobSet], objective: Objective) -> Costs:
    """What an objective takes and gives beside that."""
    late, num_jobs = objective.late_costs, sum(one.num_jobs for one in jobsets)
    shape = (len(late), num_jobs)
    return Costs(
        late_rate=np.reshape([_of_jobs(jobsets, one.cost) for one in late], shape),
        late_after=np.reshape([_of_jobs(jobsets, one.after) for one in late], shape).astype(
            np.int64
        ),
        busy_cost=float(objective.busy_cost),
        utilization_gain=float(objective.utilization_gain),
        utility_gain=float(objective.utility_gain),
    )


def new_rows(
    jobset: NDArray[np.int32], jobsets: Sequence[JobSet], machine: Machine, state_size: int
) -> Rows:
    """Episodes that are to begin; each runs the jobset of that index, int32 ``(num_rows,)``."""
    num_rows = jobset.size
    num_jobs = np.array([one.num_jobs for one in jobsets], np.int64)
    of = np.zeros(num_rows, ROW)
    of["jobset"], of["count"] = jobset, num_jobs[jobset]
    of["first"] = (np.cumsum(num_jobs) - num_jobs)[jobset]
    of["place"] = np.cumsum(of["count"]) - of["count"]
    of["window"] = np.array([one.window for one in jobsets])[jobset]
    places = int(of["count"].sum())
    size = int(num_jobs.max(initial=0)) + machine.processors + 1
    whole, real = np.zeros((4, size), np.int64), np.zeros((2, size))
    room = int(num_jobs.max(initial=0)) + 12 * machine.processors + 16
    return Rows(
        of=of,
        job=np.zeros(places, PLACE),
        waiting=np.zeros(places, np.int64),
        running=np.zeros((num_rows, machine.processors), np.int64),
        shown=np.zeros((num_rows, machine.candidates), np.int64),
        pieces=np.zeros((num_rows, room, 4), np.int32),
        states=np.zeros((num_rows, state_size), np.int32),
        work=Work(*whole, *real),
    )


def with_more_room(rows: Rows) -> Rows:
    """The same episodes with twice the room for pieces."""
    return rows._replace(pieces=np.concatenate([rows.pieces, rows.pieces], axis=1))


def _of_jobs(
    jobsets: Sequence[JobSet], term: Callable[[JobSet], NDArray[Any]]
) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(term(one), np.float64) for one in jobsets])
