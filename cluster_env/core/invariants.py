"""What every schedule must satisfy, computed from the schedule and the jobsets alone.

Nothing here knows how a simulator works, so that a fault of a simulator cannot hide itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.graphs import STAGE_TASKS
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule

_ROUNDING = 1e-9
"""Share of a job's work, or of the capacity, that fractions of units may be off by."""


class ScheduleFault(ValueError):
    """A schedule breaks a rule that holds for every cluster; the fault is the simulator's."""


def check_schedule(
    schedule: Schedule,
    jobsets: Sequence[JobSet],
    complete_until: int | None = None,
    node_capacity: NDArray[np.int32] | None = None,
) -> None:
    """Makes sure that a schedule could have happened.

    Each job that arrived while its episode lasted is there exactly once and as its jobset says. It
    starts when it has arrived or later, runs for its whole length without a pause, and counts as
    finished exactly if that was before the episode ended. The jobs that run at one time never hold
    more than the capacity; a job that finishes at some time makes room for one that starts then.

    Where the schedule has pieces, they say what was held: they lie between start and finish, and a
    job is finished exactly if they add up to its work, demand times duration of each resource. Jobs
    that are graphs of stages have a piece for each task instead.

    Args:
        schedule: jobs of ended episodes, in any order.
        jobsets: those that ``schedule.jobset`` counts.
        complete_until: if given, an episode that ended at this clock or before must have finished
            all jobs of its jobset; for rules that end an episode when all is done and drop no
            job, this is the ``max_time`` of the simulator.
        node_capacity: int32 ``(num_nodes, num_resources)``; if given, the pieces on each node must
            not hold more than it has.

    Raises:
        ScheduleFault: for the first rule that is broken; the message names a job and an episode.
    """
    for broken, what in _rules(schedule, jobsets, complete_until, node_capacity):
        if broken.any():
            first = int(np.argmax(broken))
            raise ScheduleFault(
                f"job {schedule.job[first]} of episode {schedule.episode[first]} {what}"
            )


def _rules(
    schedule: Schedule,
    jobsets: Sequence[JobSet],
    complete_until: int | None,
    node_capacity: NDArray[np.int32] | None,
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Which jobs break a rule, bool ``(n,)``, and the rest of the sentence; rule by rule."""
    yield from _same_jobs(schedule, jobsets)
    _all_present(schedule, jobsets)
    started = schedule.start >= 0
    end = schedule.end[schedule.episode]
    yield started & (schedule.start < schedule.arrival), "starts before it arrives"
    yield schedule.finished & ~started, "finishes without a start"
    yield schedule.finished & (schedule.finish > end), "finishes after the end of its episode"
    if schedule.pieces is None:
        yield from _rectangles(schedule)
    else:
        yield from _of_pieces(schedule, schedule.pieces, node_capacity)
    if complete_until is not None:
        yield (
            ~schedule.finished & (end <= complete_until),
            "never finishes though its episode is over",
        )


def _same_jobs(
    schedule: Schedule, jobsets: Sequence[JobSet]
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Each entry is a job of its jobset, with that job's arrival, duration, demand and class."""
    first = np.cumsum([0] + [jobset.num_jobs for jobset in jobsets])
    jobset = schedule.jobset[schedule.episode]
    known = (schedule.job >= 0) & (schedule.job < np.diff(first)[jobset])
    yield ~known, "is not in its jobset"
    place = first[jobset] + schedule.job
    # What a schedule says of a job is what its jobset says.
    both: list[Any] = [schedule, *jobsets]
    names = ("arrival", "duration", "demand", "job_class")
    columns = [(name, [getattr(one, name) for one in both]) for name in names]
    columns += [(name, [one.attributes[name] for one in both]) for name in schedule.attributes]
    for name, (column, *given) in columns:
        differs = column != np.concatenate(given)[place]
        wrong = differs.any(axis=1) if differs.ndim == 2 else differs
        yield wrong, f"has another {name.removeprefix('job_')} than in its jobset"


def _all_present(schedule: Schedule, jobsets: Sequence[JobSet]) -> None:
    """Each job that arrived before the end of an episode is there once, and no job twice."""
    pair = np.stack([schedule.episode, schedule.job], axis=1)
    unique, times = np.unique(pair, axis=0, return_counts=True)
    if np.any(times > 1):
        episode, job = unique[int(np.argmax(times > 1))]
        raise ScheduleFault(f"job {job} of episode {episode} is there {times.max()} times")
    count = np.bincount(schedule.episode, minlength=schedule.num_episodes)
    for episode, (k, end) in enumerate(zip(schedule.jobset, schedule.end, strict=True)):
        arrival = jobsets[k].arrival
        # Jobs arrive in the order of their numbers; none arrives in the last instant of an episode.
        if not np.sum(arrival < end) <= count[episode] <= np.sum(arrival <= end):
            raise ScheduleFault(
                f"episode {episode} has {count[episode]} jobs, but {np.sum(arrival < end)} of its "
                f"jobset arrived before its end at {end}"
            )


def _rectangles(schedule: Schedule) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """The rules of jobs that hold their demands from start to finish."""
    started = schedule.start >= 0
    full_finish = schedule.start + schedule.duration
    yield schedule.finished & (schedule.finish != full_finish), "does not run for its whole length"
    yield (
        started & (full_finish <= schedule.end[schedule.episode]) & ~schedule.finished,
        "has run to its end but is not finished",
    )
    # A job that has started is one piece, which ends when it will finish.
    jobs = np.flatnonzero(started).astype(np.int32)
    held = Pieces(jobs, schedule.start[jobs], full_finish[jobs], schedule.demand[jobs])
    over = _over_capacity(held, schedule.episode[jobs], schedule.capacity)
    yield _of_jobs(schedule, held, over), "starts when the cluster has no room for it"


def _of_pieces(
    schedule: Schedule, pieces: Pieces, node_capacity: NDArray[np.int32] | None
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """The rules of jobs that were preempted, squeezed or spread over nodes."""
    if np.any((pieces.job < 0) | (pieces.job >= schedule.job.size)):
        raise ScheduleFault("a piece belongs to a job that is not in the schedule")
    end = schedule.end[schedule.episode]
    until = np.where(schedule.finished, schedule.finish, end)[pieces.job]
    start = schedule.start[pieces.job]
    # Each piece lies between the start and the finish of its job.
    for broken, what in (
        (start < 0, "has a piece but no start"),
        (pieces.begin < schedule.arrival[pieces.job], "has a piece that begins before it arrives"),
        (pieces.begin < start, "has a piece that begins before its start"),
        (pieces.end <= pieces.begin, "has a piece that does not end after it begins"),
        (pieces.end > until, "has a piece after its finish or the end of its episode"),
        (pieces.units.min(axis=1, initial=0) < 0, "has a piece with less than 0 units"),
    ):
        yield _of_jobs(schedule, pieces, broken), what
    if STAGE_TASKS in schedule.attributes:  # each task is a piece
        tasks = np.bincount(pieces.job, minlength=schedule.job.size)
        num_tasks = schedule.attributes[STAGE_TASKS].sum(axis=1)
        yield tasks > num_tasks, "has more pieces than tasks"
        yield schedule.finished & (tasks < num_tasks), "is finished with fewer pieces than tasks"
    else:
        yield from _add_up(schedule, pieces)
    # What is held at one time fits the machine, and each node.
    episode = schedule.episode[pieces.job].astype(np.int64)
    over = _over_capacity(pieces, episode, schedule.capacity)
    yield _of_jobs(schedule, pieces, over), "has a piece when the cluster has no room for it"
    if node_capacity is not None:
        yield from _of_nodes(schedule, pieces, node_capacity)


def _add_up(schedule: Schedule, pieces: Pieces) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Pieces add up to the work of a job if it is finished, and to less if it is not."""
    work = schedule.demand * schedule.duration[:, None].astype(np.int64)
    done = np.zeros(work.shape, np.result_type(pieces.units, np.int64))
    lasting = (pieces.end - pieces.begin)[:, None].astype(np.int64)
    np.add.at(done, pieces.job, pieces.units * lasting)
    slack = _slack(pieces, work)
    yield (done > work + slack).any(axis=1), "has more work in its pieces than it asks for"
    complete = (done >= work - slack).all(axis=1)
    yield schedule.finished & ~complete, "is finished with less work in its pieces than it asks for"
    yield complete & ~schedule.finished, "has run to its end but is not finished"


def _of_nodes(
    schedule: Schedule, pieces: Pieces, node_capacity: NDArray[np.int32]
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """No node holds more than it has."""
    if pieces.node is None:
        raise ScheduleFault("capacities of nodes were given, but the pieces have no nodes")
    num_nodes = node_capacity.shape[0]
    missing = (pieces.node < 0) | (pieces.node >= num_nodes)
    yield _of_jobs(schedule, pieces, missing), "has a piece on a node that is not there"
    place = schedule.episode[pieces.job].astype(np.int64) * num_nodes + pieces.node
    over = _over_capacity(pieces, place, node_capacity[pieces.node])
    yield _of_jobs(schedule, pieces, over), "has a piece when its node has no room for it"


def _of_jobs(schedule: Schedule, pieces: Pieces, broken: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The jobs of broken pieces, bool ``(n,)``."""
    jobs = np.zeros(schedule.job.size, np.bool_)
    jobs[pieces.job[broken]] = True
    return jobs


def _over_capacity(
    pieces: Pieces, place: NDArray[Any], capacity: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Which pieces begin when there is no room for them, bool ``(num_pieces,)``.

    Pieces of the same place share a capacity, which is given once or for each piece.
    """
    # Every piece is two events; at one time units come back before others are taken.
    count = pieces.job.size
    time = np.concatenate([pieces.end, pieces.begin])
    takes = np.repeat([False, True], count)
    owner = np.tile(np.arange(count), 2)
    order = np.lexsort((takes, time, place[owner]))
    units = pieces.units[owner]
    exact = units.astype(np.result_type(units, np.int64))
    # Every place gets back all that it gives, so one running sum serves them all.
    held = np.cumsum((np.where(takes[:, None], 1, -1) * exact)[order], axis=0)
    limit = np.broadcast_to(capacity, pieces.units.shape)[owner][order]
    broken = np.zeros(count, np.bool_)
    broken[owner[order][(held > limit + _slack(pieces, limit)).any(axis=1)]] = True
    return broken


def _slack(pieces: Pieces, limit: NDArray[Any]) -> NDArray[Any]:
    """What sums of fractions may be off by; whole numbers are exact."""
    exact = np.issubdtype(pieces.units.dtype, np.integer)
    return np.zeros_like(limit) if exact else _ROUNDING * np.maximum(limit, 1)
