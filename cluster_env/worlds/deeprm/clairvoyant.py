r"""What a scheduler that knows every arrival in advance could have reached: an optimum, or a bound.

The problem is the offline one: start each job at its arrival or later, never hold more than the
capacity, and minimize the sum of :math:`C_j / T_j` (``slowdown``) or of :math:`C_j`
(``completion_time``), with :math:`C_j` the time from arrival to finish and :math:`T_j` the
duration. It knows neither slots nor a horizon, and no cap on the makespan beyond what some optimal
schedule keeps anyway, so every policy that finishes all jobs has a schedule that is possible here:
what is proven here bounds them all. Online policies cannot know the arrivals, so the optimum is
a reference and not a target.

OR-tools' CP-SAT searches (the extra ``clairvoyant`` installs it), in whole numbers: the weights
are the least common multiple of the durations, divided by each duration. It starts from the best
schedule of some heuristics. The bound is the better of its own and that of
`cluster_env.evaluation.relaxation`, which is far better wherever the search does not end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch
from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.schedule import Schedule
from cluster_env.core.solver import cp_solver
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation.relaxation import relaxed_bound
from cluster_env.evaluation.rollouts import evaluate
from cluster_env.objectives import get_objective
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.world import DeepRM

DEFAULT_TIME_LIMIT_S = 12.0

METRICS = ("slowdown", "completion_time")
"""What can be minimized."""

HINTS = ("sjf", "packer", "tetris", "hold:4", "hold:8", "hold:16")
"""Heuristics whose best schedule on a jobset is where the search begins."""

Status = Literal["optimal", "feasible"]
Starts = NDArray[np.int32]

_LARGEST_COST = 2**53  # whole numbers up to here are exact as floats too


@dataclass(frozen=True, eq=False)
class ClairvoyantReference:
    """The best schedule that is known for a jobset, and what no schedule can beat.

    Attributes:
        metric: what was minimized: ``slowdown`` or ``completion_time``.
        status: ``optimal`` if no schedule is better, which is proven; else ``feasible``.
        value: sum of the metric over the jobs of the schedule; 0 without jobs.
        bound: proven lower bound of that sum, at most `value`, and equal to it if optimal.
        schedule: one episode, with all jobs finished.
    """

    metric: str
    status: Status
    value: float
    bound: float
    schedule: Schedule

    @property
    def num_jobs(self) -> int:
        """Number of jobs, for means."""
        return int(self.schedule.job.size)


def require_solver() -> None:
    """Raises an `InputError` that says how to install the solver, if it is not installed."""
    cp_solver("a clairvoyant reference")


def clairvoyant_reference(
    jobset: JobSet,
    cluster: Cluster,
    metric: str = "slowdown",
    *,
    known: Sequence[Starts] = (),
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    seed: int = 0,
) -> ClairvoyantReference:
    """Searches for the best schedule of a jobset in hindsight.

    The search runs in one thread. It gives the same result each time where it ends before its
    time is up; where it does not, `status` is ``feasible``, and `value` depends on the machine.

    Args:
        jobset: what is scheduled.
        cluster: what it runs on; of slots and horizon only the heuristics know.
        metric: ``slowdown`` or ``completion_time``.
        known: starts of possible schedules, int32 ``(num_jobs,)`` each. The result is at least as
            good as the best of them and of `HINTS`.
        time_limit_s: seconds that the search may take, above 0.
        seed: of the search.

    Raises:
        InputError: if OR-tools is missing, the metric is another, the limit is not above 0, or a
            job cannot run on the cluster.
        ScheduleFault: if a known schedule is impossible.
    """
    solver = cp_solver("a clairvoyant reference")
    if metric not in METRICS:
        raise unknown("metric of a clairvoyant reference", metric, METRICS)
    if time_limit_s <= 0:
        raise InputError(f"the time limit must be above 0 seconds, but {time_limit_s:g} was given")
    cluster.check(jobset)
    if jobset.num_jobs == 0:
        empty = _schedule(jobset, cluster, np.empty(0, np.int32))
        return ClairvoyantReference(metric, "optimal", 0.0, 0.0, empty)
    for start in known:
        check_schedule(_schedule(jobset, cluster, start), [jobset])
    weights, scale = _weights(jobset, metric)

    def cost(start: Starts) -> int:
        return _cost(jobset, weights, start)

    # Begin with the best that is known, each schedule improved as far as is easy.
    candidates = (*known, *_heuristic_starts(jobset, cluster))
    start = min((_moved_left(jobset, cluster, one) for one in candidates), key=cost)
    # Costs are whole numbers, so that a bound can be rounded up, but for its own rounding errors.
    relaxed = relaxed_bound(jobset, cluster.capacity, weights, start)
    bound = math.ceil(relaxed - 1e-3 - 1e-9 * abs(relaxed))
    # Search where that is not proven to be best already.
    if bound < cost(start):
        best, proven = _search(solver, jobset, cluster, weights, start, time_limit_s, seed)
        bound, start = max(bound, proven), min(start, best, key=cost)
    schedule = _schedule(jobset, cluster, start)
    check_schedule(schedule, [jobset])
    value = float(np.sum(schedule.completion / _divisor(jobset, metric)))
    if bound >= cost(start):
        return ClairvoyantReference(metric, "optimal", value, value, schedule)
    return ClairvoyantReference(metric, "feasible", value, min(bound / scale, value), schedule)


def _search(
    cp_model: Any,
    jobset: JobSet,
    cluster: Cluster,
    weights: NDArray[np.int64],
    hint: Starts,
    time_limit_s: float,
    seed: int,
) -> tuple[Starts, int]:
    """The best starts that CP-SAT finds, the hint if none, and its bound of the weighted sum."""
    # Each job is an interval that begins at its arrival or later.
    model = cp_model.CpModel()
    duration, arrival = jobset.duration.tolist(), jobset.arrival.tolist()
    horizon = _latest_finish(jobset)
    starts = [model.new_int_var(a, horizon - d, "") for a, d in zip(arrival, duration, strict=True)]
    intervals = [
        model.new_fixed_size_interval_var(start, d, "")
        for start, d in zip(starts, duration, strict=True)
    ]
    # No resource is ever used beyond its capacity.
    for resource, units in enumerate(cluster.capacity):
        model.add_cumulative(intervals, jobset.demand[:, resource].tolist(), units)
    for start, first in zip(starts, hint.tolist(), strict=True):
        model.add_hint(start, first)
    # What is weighed is starts; the rest of the completion times is a constant.
    fixed = int(weights @ (jobset.duration - jobset.arrival))
    model.minimize(cp_model.LinearExpr.weighted_sum(starts, weights.tolist()) + fixed)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_time_in_seconds = time_limit_s
    # Else it takes the signal for itself and never gives it back, and Ctrl-C would kill Python.
    solver.parameters.catch_sigint_signal = False
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best = np.array([solver.value(start) for start in starts], np.int32)
        done = status == cp_model.OPTIMAL
        return best, _cost(jobset, weights, best) if done else round(solver.best_objective_bound)
    if status == cp_model.UNKNOWN:  # its time was up
        return hint, 0
    raise RuntimeError(f"CP-SAT calls a jobset {solver.status_name(status)} that has a schedule")


def _latest_finish(jobset: JobSet) -> int:
    """Time step at which some optimal schedule is done.

    Where no job can be moved to the left, one runs in every step from the last arrival on.
    """
    return int(jobset.arrival[-1]) + int(jobset.duration.sum())


def _divisor(jobset: JobSet, metric: str) -> NDArray[np.int64]:
    """What a job's completion time is divided by, int64 ``(num_jobs,)``."""
    divisor = jobset.duration.astype(np.int64)
    return divisor if metric == "slowdown" else np.ones_like(divisor)


def _weights(jobset: JobSet, metric: str) -> tuple[NDArray[np.int64], int]:
    """What a time step of each job costs, int64 ``(num_jobs,)``, and by how much that is too large.

    They are exact unless the durations are so many that costs would leave 53 bits; then they are
    rounded down, which keeps bounds true and makes optima true to about one part in a million.
    """
    divisor = _divisor(jobset, metric)
    # The costs of all jobs together have to be a whole number that a float can hold.
    most = _LARGEST_COST // (_latest_finish(jobset) * jobset.num_jobs)
    scale = min(math.lcm(*divisor.tolist()), most)
    return scale // divisor, scale


def _cost(jobset: JobSet, weights: NDArray[np.int64], start: Starts) -> int:
    return int(weights @ (start + jobset.duration - jobset.arrival))


def _heuristic_starts(jobset: JobSet, cluster: Cluster) -> list[Starts]:
    """Starts under each of `HINTS`; all of them finish all jobs."""
    patience = max(int(hint.partition(":")[2] or 0) for hint in HINTS)
    max_time = jobset.window + patience + int(jobset.duration.sum()) + 1
    world = DeepRM(cluster, max_time=max_time)
    return [evaluate(get_heuristic(hint, world), [jobset], world).start for hint in HINTS]


def _moved_left(jobset: JobSet, cluster: Cluster, start: Starts) -> Starts:
    """The same schedule with every job, in the order of starts, as early as others allow."""
    capacity = np.asarray(cluster.capacity)
    free = np.tile(capacity, (_latest_finish(jobset), 1))  # (steps, num_resources)
    moved = np.empty_like(start)
    for job in np.lexsort((np.arange(start.size), start)):
        fits = (free >= jobset.demand[job]).all(axis=1)
        first, duration = int(jobset.arrival[job]), int(jobset.duration[job])
        # Behind the last step that is too full, as long as there is one.
        while not fits[first : first + duration].all():
            first += 1 + int(np.flatnonzero(~fits[first : first + duration])[-1])
        free[first : first + duration] -= jobset.demand[job]
        moved[job] = first
    return moved


def _schedule(jobset: JobSet, cluster: Cluster, start: Starts) -> Schedule:
    """One episode with these starts, which lasts until all is done."""
    last_finish = int((start + jobset.duration).max(initial=0))
    end = np.array([max(jobset.window, last_finish)])
    batch = Batch([jobset], get_objective("slowdown"))
    return batch.schedule(
        arrived=batch.num_jobs,
        start=start,
        finish=batch.finish_of(start, end),
        end=end,
        capacity=cluster.capacity,
    )
