"""What others published, to repeat it: RLScheduler's event loop and windows, and whole logs.

RLScheduler (Zhang et al., SC 2020) differs from ordinary practice: a job once chosen blocks the
others until it fits and is never chosen anew; one event is one arrival or one completion, also
where several happen at an instant; backfilling has no rule for spare processors; and wfp and unicep
use a waiting time that is always -1 minus the time of submission, so that they prefer long jobs. So
its loop is no heuristic of this world, but belongs to the protocol that compares with its table.
"""

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.spec import Heuristic, NamedJobsets, Value
from cluster_env.workloads.log import RECORDED, LogWorkload
from cluster_env.worlds.hpc.events import Jobs, add_units, fits

WINDOWS, JOBS, SEED = 10, 1024, 1
"""Of RLScheduler's published table (tables V and VI)."""

LOOPS = ("rls", "rls_easy")
"""Its event loop without and with backfilling."""

SCORES = ("fcfs", "sjf", "wfp", "uni", "f1", "f2", "f3", "f4", "smallest")
"""Orders under its own names."""


@dataclass(frozen=True)
class PublishedPolicy:
    """One of `SCORES` as an order in one of `LOOPS`, RLScheduler's event loops."""

    name: str
    loop: str
    order: str

    def play(self, simulator: Any, keys: NDArray[np.uint64]) -> None:
        """Plays all episodes; the loop knows no end of time. See `PlayedPolicy`.

        Raises:
            InputError: in a world with a bound on waits, or another scheduling pass than usual,
                neither of which the published loop has.
        """
        for name, usual in (("max_wait", 0), ("scheduling_pass", "instant")):
            if getattr(simulator.world, name) != usual:
                raise InputError(
                    f"'{self.name}' repeats what others published, with an event loop of its own; "
                    f"leave out {name}"
                )
        jobs, rows, capacity = simulator.jobs, simulator.rows, simulator.machine.capacity
        arrival, size = jobs.records.arrival, jobs.demand[:, 0]
        estimate = jobs.records.order_estimate
        score = peer_scores(self.order, estimate, size, simulator.submits())
        parts = zip(jobs.first[:-1], jobs.first[1:], strict=True)
        order = np.concatenate(
            [np.lexsort((score[a:b], arrival[a:b])).astype(np.int64) for a, b in parts]
        )
        room = PlayedMachine.of(simulator.batch.most_jobs, capacity.size)
        for row, k in enumerate(simulator.batch.jobset):
            begin = simulator.batch.place[row]
            start = rows.start[begin : begin + jobs.first[k + 1] - jobs.first[k]]
            start[:] = -1
            backfilling = self.loop == "rls_easy"
            simulator.time[row] = play_like_rlscheduler(
                jobs, int(k), capacity, score, order, backfilling, room, start
            )
        simulator.active[:] = False

    def act(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """It cannot act, and says so by an `InputError`."""
        raise InputError(
            f"'{self.name}' repeats what others published, plays whole episodes and decides about "
            f"no state and no real machine; take a rule like sjf:easy"
        )


def peer_scores(
    name: str, estimate: NDArray[np.int32], size: NDArray[np.int32], submit: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Scores as its code has them, lower first, float64 ``(num_jobs,)``.

    From requested seconds, processors, and seconds of submission by the log's clock.
    """
    r, n, s = (np.asarray(column, np.float64) for column in (estimate, size, submit))
    later = np.log10(np.where(s > 0, s, np.nan))
    later[np.isnan(later)] = -np.inf
    scores: dict[str, Callable[[], Any]] = {
        "fcfs": lambda: s,
        "sjf": lambda: r,
        "wfp": lambda: -np.float_power((-1 - s) / r, 3) * n,
        "uni": lambda: -((-1 - s) + 1e-15) / (np.log2(n + 1e-15) * r),
        "f1": lambda: np.log10(r) * n + 870 * later,
        "f2": lambda: np.sqrt(r) * n + 25_600 * later,
        "f3": lambda: r * n + 6_860_000 * later,
        "f4": lambda: r * np.sqrt(n) + 530_000 * later,
        "smallest": lambda: n,
    }
    return np.asarray(scores[name](), np.float64)


class PlayedMachine(NamedTuple):
    """What a jobset is played in."""

    end: NDArray[np.int64]  # (num_jobs,), of the longest jobset, as the next three
    expected: NDArray[np.int64]
    running: NDArray[np.int32]
    waiting: NDArray[np.bool_]
    free: NDArray[np.int64]  # (num_resources,)
    spare: NDArray[np.int64]  # (num_resources,)

    @staticmethod
    def of(num_jobs: int, num_resources: int) -> "PlayedMachine":
        """Room for jobsets of up to so many jobs."""
        times = np.empty((2, num_jobs), np.int64)
        units = np.empty((2, num_resources), np.int64)
        running, waiting = np.empty(num_jobs, np.int32), np.empty(num_jobs, np.bool_)
        return PlayedMachine(times[0], times[1], running, waiting, units[0], units[1])


@njit_kernel
def play_like_rlscheduler(
    jobs: Jobs,
    k: int,
    capacity: NDArray[np.int64],
    score: NDArray[np.float64],
    order: NDArray[np.int64],
    backfilling: bool,
    room: PlayedMachine,
    start: NDArray[np.int64],
) -> int:
    """Plays jobset k, and returns the clock at the last completion.

    Scores are of all jobs, lower first, equals by time of submission. ``order`` has the jobs of
    each jobset from 0 on, in which they are tried while the chosen one waits, by time of submission
    and then by score. ``start`` is written, int64 ``(num_jobs of the jobset,)``.
    """
    first, last = jobs.first[k], jobs.first[k + 1]
    num_jobs = last - first
    records, score = jobs.records[first:last], score[first:last]
    demand = jobs.demand[first:last]
    # Of jobs that end at the same time, that goes first which stands first in its list of running
    # jobs; the list is sorted now by true ends, now by expected ones, and equals stay as they are.
    end, expected, running, waiting, free, spare = room
    # The first job waits on an empty machine.
    for job in range(num_jobs):
        waiting[job] = job == 0
    for r in range(free.size):
        free[r] = capacity[r]
    now, last_end = np.int64(records[0].arrival), np.int64(0)
    coming, num_running, lowest = int(np.int64(1)), int(np.int64(0)), int(np.int64(0))
    while True:
        while lowest < coming and not waiting[lowest]:
            lowest += 1  # no job before it waits
        # Nobody waits: time goes on to the next arrival.
        if lowest == coming:
            if coming == num_jobs:
                break
            while num_running and end[running[0]] < records[coming].arrival:
                num_running = _complete(running, num_running, end, demand, free)
            now = np.int64(records[coming].arrival)
            waiting[coming] = True
            coming += 1
            continue
        # The first of the order is chosen, and blocks the others until it fits.
        pick = lowest
        for job in range(lowest + 1, coming):
            if waiting[job] and score[job] < score[pick]:
                pick = job
        waiting[pick] = False
        # When it would fit, if those that run took as long as they asked for.
        known = coming
        reservation = now
        if backfilling and not fits(demand, pick, free):
            _sort(running, num_running, expected)
            for r in range(free.size):
                spare[r] = free[r]
            for place in range(num_running):
                add_units(spare, demand, running[place], 1)
                reservation = expected[running[place]]
                if fits(demand, pick, spare):
                    break
        while not fits(demand, pick, free):
            # Those that were known when the choice was made come first, and then the others.
            for place in range(num_jobs + coming - known if backfilling else 0):
                job = order[first + place] if place < num_jobs else known + place - num_jobs
                if place < num_jobs and job >= known:
                    continue
                fit = waiting[job] and fits(demand, job, free)
                if fit and now + records[job].estimate < reservation:
                    waiting[job] = False
                    start[job], end[job] = now, now + records[job].duration
                    expected[job] = now + records[job].estimate
                    running[num_running] = job
                    num_running += 1
                    last_end = max(last_end, end[job])
                    add_units(free, demand, job, -1)
            # One event: an arrival, or one completion if that is earlier.
            _sort(running, num_running, end)
            if coming < num_jobs and records[coming].arrival <= end[running[0]]:
                now = np.int64(records[coming].arrival)
                waiting[coming] = True
                coming += 1
            else:
                now = end[running[0]]
                num_running = _complete(running, num_running, end, demand, free)
        start[pick], end[pick] = now, now + records[pick].duration
        expected[pick] = now + records[pick].estimate
        running[num_running] = pick
        num_running += 1
        last_end = max(last_end, end[pick])
        add_units(free, demand, pick, -1)
        _sort(running, num_running, end)
    return int(last_end)


@njit_inlined
def _complete(
    running: NDArray[np.int32],
    num_running: int,
    end: NDArray[np.int64],
    demand: NDArray[np.int32],
    free: NDArray[np.int64],
) -> int:
    """Lets the first of the list end; returns how many are left."""
    add_units(free, demand, running[0], 1)
    for place in range(num_running - 1):
        running[place] = running[place + 1]
    return num_running - 1


@njit_inlined
def _sort(running: NDArray[np.int32], size: int, key: NDArray[np.int64]) -> None:
    """Sorts a list of jobs by their keys; equals stay in order."""
    for place in range(1, size):
        job, hole = running[place], place
        while hole > 0 and key[running[hole - 1]] > key[job]:
            running[hole] = running[hole - 1]
            hole -= 1
        running[hole] = job


def window_starts(num_jobs: int) -> list[int]:
    """Where its windows begin, as Gym 0.15 seeded its environments: the first job of each.

    Raises:
        InputError: if the log is too short.
    """
    if num_jobs < 2 * JOBS + 1:
        raise InputError(
            f"windows of {JOBS:,} jobs as RLScheduler cuts them need a log of {2 * JOBS + 1:,} "
            f"jobs, but this one has {num_jobs:,}"
        )
    words = struct.unpack("<2I", hashlib.sha512(str(SEED).encode()).digest()[:8])
    drawn = np.random.RandomState(words)
    return [int(drawn.randint(JOBS, num_jobs - JOBS)) for _ in range(WINDOWS)]


def _published(task: Any) -> Sequence[JobSet]:
    recorded = _log_of(task).recorded
    starts = window_starts(recorded.num_jobs)
    return [recorded.jobset(slice(start, start + JOBS)) for start in starts]


def _whole(task: Any) -> Sequence[JobSet]:
    return [_log_of(task).recorded.jobset()]


def _log_of(task: Any) -> LogWorkload:
    workload = task.workload
    if not isinstance(workload, LogWorkload):
        raise InputError("windows of a log need a log: --set task.workload.kind=trace")
    if workload.estimates != RECORDED:
        raise InputError(
            f"these jobs are compared with their recorded estimates, so leave out "
            f"estimates={workload.estimates}"
        )
    return workload


def _columns(jobsets: Sequence[JobSet]) -> Mapping[str, Value]:
    return {"jobset_size": jobsets[0].num_jobs, "window_s": 0}


def _in_loop(loop: str) -> Callable[[Any, str], Policy]:
    def make(world: Any, argument: str) -> Policy:
        name = f"{loop}:{argument}" if argument else loop
        order = argument or "sjf"
        if order not in SCORES:
            raise InputError(
                f"'{loop}:' needs one of RLScheduler's orders, {', '.join(SCORES)}, not "
                f"'{argument}'"
            )
        return PublishedPolicy(name, loop, order)

    return make


PROTOCOLS = {
    "rlscheduler": NamedJobsets(
        "RLScheduler's windows",
        _published,
        _columns,
        policies={loop: Heuristic(_in_loop(loop)) for loop in LOOPS},
    ),
    "whole": NamedJobsets("the whole log", _whole, _columns),
}
