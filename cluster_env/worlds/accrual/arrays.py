"""What the compiled functions of this world work on: arrays with a row for each episode."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BEST_FIT, EDF, DENSITY, DASA, LBESA = range(5)
BY_ARRIVAL, BY_UTILITY, BY_SHORTFALL = range(3)

BEGINNING, PREEMPTING, SQUEEZING, PASSING = range(-1, 3)
"""What is still to be decided at an instant: first preemption, then squeezing, then time passes.
Before the first instant an episode is beginning."""

HEADER = (
    "stage",  # 1 + the stage that is to be decided; 0 if nothing can be
    "unit_utility",  # x1 of the server as it is, in millionths
    "time_left",  # x2, in steps
    "idle",  # x3, processors
    "waiting",  # jobs
    "waiting_work",  # processors x steps
    "waiting_utility",  # mean unit utility of waiting jobs if they started now, in millionths
    "slope",  # processors that waiting jobs ask for which are still worth something
    "promised",  # final utility that running jobs are expected to reach
)
"""What a state begins with, each an int32; then the candidates."""

CANDIDATE = (
    "present",
    "unit_utility",  # x1 of the server if this candidate were taken, in millionths
    "time_left",  # x2
    "idle",  # x3
    "job_utility",  # unit utility that the job would reach, in millionths
    "size",  # processors that it asks for
    "steps",  # that it would still run
    "full_utility",  # that the job would reach if it had all that it asks for from now on
    "wait_utility",  # or from the next finish on
    "lost",  # final utility that preempted jobs lose if they wait until it is done
)
"""What a state has of each candidate; 0 where none is."""

MILLION = 1_000_000


class Machine(NamedTuple):
    """The server and its rules; see `cluster_env.worlds.accrual.world.Accrual`."""

    processors: int
    longest: int  # MaxJobLength
    preempt: bool
    squeeze: bool
    candidates: int
    growth: int
    grow_first: bool
    drop_expired: bool
    max_time: int


JOB = np.dtype(
    [(name, np.int64) for name in ("arrival", "size", "duration", "deadline")]
    + [(name, np.float64) for name in ("rate", "finish_gain")]
)
"""Of a job; `deadline` is the clock from which it is worth nothing. The last two are costs."""

PLACE = np.dtype(
    [(name, np.int64) for name in ("left", "held", "since", "end", "start", "finish")]
    + [("unit", np.float64)]
)
"""Of a job in an episode: work that was left when it got the processors that it holds, these, and
since when; the clock at which it will finish on them; the clock of its first start and of its
finish, -1 before; and the unit utility that it will reach at ``end``."""

ROW = np.dtype(
    [
        ("jobset", np.int64),
        # where its jobs lie among all, how many there are, and where among places
        *((name, np.int64) for name in ("first", "count", "place", "window")),
        *((name, np.int64) for name in ("time", "free", "coming", "num_waiting", "num_running")),
        *((name, np.int64) for name in ("num_pieces", "stage")),
        *((name, np.bool_) for name in ("active", "truncated")),
        ("paused", np.bool_),  # there was no room for more pieces
        ("changed", np.bool_),  # a job finished or started at this instant
        ("considered", np.bool_),  # there was something to decide at this instant
        ("made", np.bool_),  # a job was preempted or squeezed at this instant
        ("owed", np.float64),  # rewards since the last decision
        ("earned", np.float64),  # final utility of all that has finished
        ("busy", np.int64),  # processors x steps that jobs have used
    ],
    align=True,
)
"""Of an episode. Compiled code reads records faster than as many arrays, and compiles faster."""


class Jobs(NamedTuple):
    """The jobs of all jobsets, one after the other."""

    of: NDArray[np.void]  # (num_jobs,) of `JOB`
    tuf: NDArray[np.float64]  # (num_jobs, 2 P + 1)


class Costs(NamedTuple):
    """What an objective takes and gives beside what `JOB` says."""

    late_rate: NDArray[np.float64]  # (num_late, num_jobs)
    late_after: NDArray[np.int64]  # (num_late, num_jobs)
    busy_cost: float
    utilization_gain: float
    utility_gain: float


class Work(NamedTuple):
    """Room to work in, for one row at a time: an element for every job and processor.

    Compiled functions allocate nothing: then nothing has to count references to arrays, which else
    costs more than the work itself.
    """

    order: NDArray[np.int64]
    held: NDArray[np.int64]
    soonest: NDArray[np.int64]
    planned: NDArray[np.int64]
    urgency: NDArray[np.float64]
    weights: NDArray[np.float64]


class Rows(NamedTuple):
    """Episodes side by side."""

    of: NDArray[np.void]  # (num_rows,) of `ROW`
    job: NDArray[np.void]  # (places,) of `PLACE`
    waiting: NDArray[np.int64]  # (places,), in order of arrival
    running: NDArray[np.int64]  # (num_rows, processors)
    shown: NDArray[np.int64]  # (num_rows, candidates), jobs
    pieces: NDArray[np.int32]  # (num_rows, room, 4): job, begin, end, processors
    states: NDArray[np.int32]  # (num_rows, state_size)
    work: Work
