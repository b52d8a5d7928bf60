r"""What no policy can earn more of, even one that knows all arrivals: a bound for small jobsets.

In every step :math:`t` each job that has arrived may hold any whole number of processors
:math:`0 \le x_{jt} \le K_j`, at most :math:`N` together, those of all machines, and gains its final
utility for the first clock by which its :math:`K_j L_j` units of work are done. So jobs may be
preempted, squeezed and let grow at any time, which is more than a policy may do here: it decides at
events, no job shrinks, and no processor idles beside a job that could use it. What is proven bounds
all policies; the schedule behind it may be out of their reach.

OR-tools' CP-SAT searches (the extra ``clairvoyant`` installs it), in thousandths of a unit.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.solver import cp_solver
from cluster_env.core.utility import time_utility_functions, unit_utilities
from cluster_env.worlds.accrual.world import Accrual

DEFAULT_TIME_LIMIT_S = 10.0

_SCALE = 1000


@dataclass(frozen=True, eq=False)
class UtilityBound:
    """What was found.

    Attributes:
        status: ``optimal`` if `value` is the most that the relaxed problem allows; else
            ``feasible``.
        value: utility of the best use of processors that was found.
        bound: no policy has a higher utility; equal to `value` if that is optimal, but for
            rounding.
        processors: int32 ``(num_jobs, steps)``, what each job holds in each step of that.
    """

    status: Literal["optimal", "feasible"]
    value: float
    bound: float
    processors: NDArray[np.int32]


def utility_bound(
    jobset: JobSet, world: Accrual, *, time_limit_s: float = DEFAULT_TIME_LIMIT_S, seed: int = 0
) -> UtilityBound:
    """Searches for the most utility that the jobs of a jobset can be worth together.

    The search runs in one thread; where it ends before its time is up, it gives the same result
    each time. What it needs grows with jobs times steps in which they are worth something. Of the
    machines only the number of processors together counts.

    Raises:
        InputError: if OR-tools is missing, the limit is not above 0, or a job cannot run.
    """
    cp_model = cp_solver("a clairvoyant bound")
    if time_limit_s <= 0:
        raise InputError(f"the time limit must be above 0 seconds, but {time_limit_s:g} was given")
    world.check(jobset)
    gains = [_gains(jobset, job) for job in range(jobset.num_jobs)]
    steps = int(max((jobset.arrival[j] + g.size for j, (_, g) in enumerate(gains)), default=0))
    # Processors that each job holds in each step, from its arrival until it is worth nothing.
    model = cp_model.CpModel()
    held: list[dict[int, Any]] = []
    terms, weights = [], []
    for job, (_, gain) in enumerate(gains):
        arrival, size = int(jobset.arrival[job]), int(jobset.demand[job, 0])
        work = size * int(jobset.duration[job])
        clocks = range(arrival, arrival + gain.size - 1)
        held.append({t: model.new_int_var(0, size, "") for t in clocks})
        # Whether it is done by a clock, from the last one on: each earlier clock implies the next,
        # and brings what the job is worth more then.
        later = None
        for elapsed in range(gain.size - 1, 0, -1):  # done at that clock or before
            if elapsed * size < work:
                break
            done = model.new_bool_var("")
            before = [held[job][t] for t in range(arrival, arrival + elapsed)]
            model.add(sum(before) >= work).only_enforce_if(done)
            if later is not None:
                model.add_implication(done, later)
            more = gain[elapsed] - (gain[elapsed + 1] if elapsed + 1 < gain.size else 0)
            terms.append(done)
            weights.append(int(more))
            later = done
    # No more processors are held than there are.
    for t in range(steps):
        model.add(sum(own[t] for own in held if t in own) <= world.capacity)
    model.maximize(cp_model.LinearExpr.weighted_sum(terms, weights))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.catch_sigint_signal = False  # else Ctrl-C would kill Python
    status = solver.solve(model)
    # In units of utility again, with what jobs are worth however late.
    processors = np.zeros((jobset.num_jobs, steps), np.int32)
    anyway = sum(floor for floor, _ in gains)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):  # nothing is a solution, too
        most = min(sum(weights), round(solver.best_objective_bound)) if weights else 0
        return UtilityBound("feasible", anyway, anyway + most / _SCALE, processors)
    for job, own in enumerate(held):
        for t, variable in own.items():
            processors[job, t] = solver.value(variable)
    value = anyway + solver.objective_value / _SCALE
    optimal = status == cp_model.OPTIMAL
    bound = value if optimal else anyway + solver.best_objective_bound / _SCALE
    return UtilityBound("optimal" if optimal else "feasible", value, bound, processors)


def _gains(jobset: JobSet, job: int) -> tuple[float, NDArray[np.int64]]:
    """What a job is worth however late it is, and beyond that if it takes so many steps.

    The latter in thousandths, rounded up, for 0, 1, ... steps, until nothing is left.
    """
    tuf, duration = time_utility_functions(jobset)[job : job + 1], int(jobset.duration[job])
    points = (tuf.shape[1] - 1) // 2
    elapsed = np.arange(int(np.ceil(tuf[0, points - 1] * duration)) + 1, dtype=np.int64)
    rows = np.repeat(tuf, elapsed.size, axis=0)
    unit = unit_utilities(rows, elapsed, np.full(elapsed.size, duration, np.int64))
    whole = float(jobset.demand[job, 0]) * duration
    floor = unit[-1]
    return whole * float(floor), np.ceil((unit - floor) * whole * _SCALE - 1e-6).astype(np.int64)
