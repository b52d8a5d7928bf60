r"""The final utility of jobs, which decays with their completion times.

A time-utility function (TUF; Jensen, Locke and Tokuda, 1985) gives a job's *unit utility*, from 1
to 0, for each completion time. Its *final utility* is that times K L, the processors it asks for
times its duration on all of them (Vengerov, section 2), so that a job is worth as much as the K L
jobs of one processor and one step that it could be cut into.

A job carries its function as a row of the attribute ``tuf``: breakpoints, the values there, and an
exponent. Times are multiples of the job's duration L. Between breakpoints the function is a
straight line, before the first and after the last it is level, and all of it is raised to the
exponent.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule

ATTRIBUTE = "tuf"


@njit(cache=True, nogil=True)
def unit_utility(tuf: NDArray[np.float64], elapsed: int, duration: int) -> float:
    """Unit utility of a job that is done so many steps after its arrival.

    ``tuf`` is float64 ``(2 P + 1,)``: P times over the duration, P values, the exponent.
    """
    # Breakpoints come first, then the values there, and the exponent at last.
    points = (tuf.size - 1) // 2
    when = elapsed / duration
    if when <= tuf[0]:
        value = tuf[points]
    elif when >= tuf[points - 1]:
        value = tuf[2 * points - 1]
    else:
        # On the straight line from the breakpoint before to the one behind.
        behind = 1
        while tuf[behind] < when:
            behind += 1
        share = (when - tuf[behind - 1]) / (tuf[behind] - tuf[behind - 1])
        before, after = tuf[points + behind - 1], tuf[points + behind]
        value = before + share * (after - before)
    power = tuf[2 * points]
    return float(value) if power == 1.0 else float(value**power)


@njit(cache=True, nogil=True)
def unit_utilities(
    tuf: NDArray[np.float64], elapsed: NDArray[np.int64], duration: NDArray[np.int64]
) -> NDArray[np.float64]:
    """`unit_utility` of several jobs, float64 ``(n,)``; the arguments have a row for each."""
    out = np.empty(elapsed.size)
    for j in range(elapsed.size):
        out[j] = unit_utility(tuf[j], elapsed[j], duration[j])
    return out


def time_utility_functions(jobs: JobSet | Schedule) -> NDArray[np.float64]:
    """The functions that jobs carry, float64 ``(num_jobs, 2 P + 1)``.

    Raises:
        InputError: if they carry none.
    """
    if ATTRIBUTE not in jobs.attributes:
        raise InputError(
            f"the utility of a job needs a time-utility function, the attribute '{ATTRIBUTE}', "
            f"which these jobs do not have; the workloads of the world 'accrual' give it"
        )
    return np.ascontiguousarray(jobs.attributes[ATTRIBUTE], np.float64)


def largest_utility(jobs: JobSet | Schedule) -> NDArray[np.float64]:
    """K L of each job, the final utility of one that is done in time, float64 ``(num_jobs,)``."""
    return np.asarray(jobs.demand[:, 0] * jobs.duration.astype(np.int64), np.float64)


def final_utility(schedule: Schedule) -> NDArray[np.float64]:
    """What each job was worth when it finished, 0 if it did not, float64 ``(num_jobs,)``."""
    unit = unit_utilities(
        time_utility_functions(schedule),
        schedule.completion.astype(np.int64),
        schedule.duration.astype(np.int64),
    )
    return np.where(schedule.finished, unit * largest_utility(schedule), 0.0)
