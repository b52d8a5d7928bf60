"""What a policy sees of a machine, and the records that compiled code works on.

Kernels get `Servers`, all episodes side by side. They take out of it a `Pool`, one episode with its
jobs and its queue, and out of that a `Server`, one of its machines. These are views, and nothing is
allocated, so that nothing has to count references to arrays.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch, CostTable
from cluster_env.core.compiled import new_records, njit
from cluster_env.core.errors import InputError
from cluster_env.core.utility import time_utility_functions

MILLION = 1_000_000
_FAR = 2**40

BEGINNING, PREEMPTING, SQUEEZING, PASSING = range(-1, 3)
"""What is still to be decided on a machine at an instant: first preemption, then squeezing, then
nothing. Before the first instant an episode is beginning."""


class Header(NamedTuple):
    """Columns that a state begins with, each an int32; the candidates follow."""

    stage: int  # 1 + the stage that is to be decided; 0 if nothing can be
    unit_utility: int  # x1 of the machine as it is, in millionths
    time_left: int  # x2, in steps
    idle: int  # x3, processors
    waiting: int  # jobs
    waiting_work: int  # processors x steps
    waiting_utility: int  # mean unit utility of waiting jobs if they started now, in millionths
    slope: int  # processors that waiting jobs ask for which are still worth something
    promised: int  # final utility that running jobs are expected to reach


class CandidateColumns(NamedTuple):
    """Columns of each candidate, each an int32; all are 0 where no candidate is."""

    present: int
    unit_utility: int  # x1 of the machine if this candidate were taken, in millionths
    time_left: int  # x2
    idle: int  # x3
    job_utility: int  # unit utility that the job would reach, in millionths
    size: int  # processors that it asks for
    steps: int  # that it would still run
    full_utility: int  # that the job would reach if it had all that it asks for from now on
    wait_utility: int  # or from the next finish on
    lost: int  # final utility that preempted jobs lose if they wait until it is done


HEADER = Header(*range(len(Header._fields)))
CANDIDATE = CandidateColumns(*range(len(CandidateColumns._fields)))

JOB = np.dtype(
    [(name, np.int64) for name in ("arrival", "width", "duration", "deadline", "project")]
)
"""A job: clock of its arrival, processors that it asks for, its steps on all of them, the clock
from which it is worth nothing, and its project, whose priority rises with its number."""

PROGRESS = np.dtype(
    [
        ("work_left", np.int64),  # processors x steps, when it got the processors that it holds
        ("held", np.int64),  # processors
        ("since", np.int64),  # clock at which it got them
        ("end", np.int64),  # clock at which it will finish on them
        ("unit_utility", np.float64),  # that it will reach then
        ("start", np.int64),  # clock of its first start, -1 before
        ("finish", np.int64),  # clock of its finish, -1 before
    ]
)
"""What has become of a job in an episode."""

EPISODE = np.dtype(
    [
        ("first_job", np.int64),  # where its jobs begin among those of all jobsets
        ("num_jobs", np.int64),
        ("place", np.int64),  # where they begin among those of all episodes
        ("window", np.int64),
        ("time", np.int64),
        ("num_arrived", np.int64),
        ("num_waiting", np.int64),
        ("order", np.int64),  # in which fitting jobs start
        ("project", np.int64),  # whose jobs start and decide
        ("turn", np.int64),  # number of the machine that decides
        ("stage", np.int64),  # that it has come to
        ("pending_reward", np.float64),  # since the last decision
        ("active", np.bool_),
        ("truncated", np.bool_),
        ("decided", np.bool_),  # whether a decision has been taken
        ("paused", np.bool_),  # in the middle of a step, while there is no room for more pieces
    ],
    align=True,
)

MACHINE = np.dtype(
    [
        ("free", np.int64),  # processors that the project may use: idle, or held by lower ones
        ("lower", np.int64),  # processors that jobs of lower projects hold
        ("num_running", np.int64),
        ("num_pieces", np.int64),
        ("busy", np.int64),  # processors x steps that jobs have used
        ("earned", np.float64),  # final utility of all that has finished on it
        ("changed", np.bool_),  # a job finished or started at this instant
        ("considered", np.bool_),  # there was a candidate at this instant, of the project
        ("acted", np.bool_),  # a job was preempted or squeezed at this instant, by the project
    ],
    align=True,
)
"""A machine of an episode. Compiled code reads records faster than as many arrays, and compiles
faster."""


class Options(NamedTuple):
    """The options of `cluster_env.worlds.accrual.world.Accrual`, as compiled code reads them."""

    processors: int
    longest: int  # MaxJobLength
    machines: int
    projects: int
    by_job: bool  # whether each job looks for a machine, rather than each machine for jobs
    preempt: bool
    squeeze: bool
    candidates: int
    drop_expired: bool
    max_time: int


class Scratch(NamedTuple):
    """Room to work in, for one machine at a time: an element for every job and processor."""

    order: NDArray[np.int64]
    held: NDArray[np.int64]
    soonest: NDArray[np.int64]
    planned: NDArray[np.int64]
    urgency: NDArray[np.float64]
    weights: NDArray[np.float64]


class Servers(NamedTuple):
    """All episodes side by side, and their machines, those of an episode one after the other."""

    options: Options
    costs: CostTable  # of all jobs
    jobs: NDArray[np.void]  # (num_jobs,) of `JOB`, of all jobsets
    functions: NDArray[np.float64]  # (num_jobs, 2 P + 1), time-utility functions
    episodes: NDArray[np.void]  # (num_rows,) of `EPISODE`
    machines: NDArray[np.void]  # (num_rows * machines,) of `MACHINE`
    gained: NDArray[np.float64]  # (num_rows * machines, projects), what they earned by project
    progress: NDArray[np.void]  # (num_places,) of `PROGRESS`, of the jobs of all episodes
    waiting: NDArray[np.int64]  # (num_places,), the queues
    running: NDArray[np.int64]  # (num_rows * machines, processors), jobs
    shown: NDArray[np.int64]  # (num_rows, candidates), jobs
    pieces: NDArray[np.int32]  # (num_rows * machines, room, 4): job, begin, end, processors
    states: NDArray[np.int32]  # (num_rows, state_size)
    scratch: Scratch


class Pool(NamedTuple):
    """One episode: its jobs, its queue, and its machines.

    Arrays of its jobs begin with the first of them, and have further elements that are not its own.
    """

    options: Options
    costs: CostTable  # of all jobs; those of the episode begin at `first_job`
    jobs: NDArray[np.void]  # (num_jobs...,) of `JOB`
    functions: NDArray[np.float64]  # (num_jobs..., 2 P + 1)
    episode: Any  # a record of `EPISODE`
    progress: NDArray[np.void]  # (num_jobs...,) of `PROGRESS`
    waiting: NDArray[np.int64]  # (num_jobs...,), the first `num_waiting` are jobs by arrival
    shown: NDArray[np.int64]  # (candidates,), job of each candidate
    state: NDArray[np.int32]  # (state_size,)
    scratch: Scratch
    first_machine: int  # where its machines begin in the next four
    machines: NDArray[np.void]  # of all episodes, as in `Servers`
    gained: NDArray[np.float64]
    running: NDArray[np.int64]
    pieces: NDArray[np.int32]


class Server(NamedTuple):
    """One machine of an episode."""

    pool: Pool
    machine: Any  # a record of `MACHINE`
    running: NDArray[np.int64]  # (processors,), the first `num_running` are jobs
    pieces: NDArray[np.int32]  # (room, 4)


@njit(inline="always")
def pool_of(servers: Servers, row: int) -> Pool:
    """The episode of a row."""
    episode = servers.episodes[row]
    # Views of its jobs go on to the end of the arrays: what cuts nothing off is faster.
    first, place = episode.first_job, episode.place
    return Pool(
        servers.options,
        servers.costs,
        servers.jobs[first:],
        servers.functions[first:],
        episode,
        servers.progress[place:],
        servers.waiting[place:],
        servers.shown[row],
        servers.states[row],
        servers.scratch,
        row * servers.options.machines,
        servers.machines,
        servers.gained,
        servers.running,
        servers.pieces,
    )


@njit(inline="always")
def server_of(pool: Pool, number: int) -> Server:
    """A machine of an episode, by its number there."""
    index = pool.first_machine + number
    return Server(pool, pool.machines[index], pool.running[index], pool.pieces[index])


@njit(inline="always")
def candidate_of(state: NDArray[np.int32], k: int) -> NDArray[np.int32]:
    """The columns of the k-th candidate: a view."""
    begin = len(HEADER) + k * len(CANDIDATE)
    return state[begin : begin + len(CANDIDATE)]


def allocate_servers(batch: Batch, options: Options, state_size: int) -> Servers:
    """Makes room for episodes that are to begin.

    Raises:
        InputError: if the jobs' time-utility functions have different numbers of breakpoints.
    """
    counts = {(time_utility_functions(one).shape[1] - 1) // 2 for one in batch.jobsets}
    if len(counts) > 1:
        raise InputError(
            f"jobs that run side by side need time-utility functions of as many breakpoints, but "
            f"there are some of {' and '.join(map(str, sorted(counts)))}"
        )
    functions = batch.column(time_utility_functions, np.float64)
    jobs = new_records(functions.shape[0], JOB)
    jobs["arrival"] = batch.column("arrival", np.int64)
    jobs["duration"] = batch.column("duration", np.int64)
    jobs["width"] = batch.column("demand", np.int64)[:, 0]
    jobs["project"] = batch.column("job_class", np.int64)
    # A job expires at its function's first value of 0; others have a deadline that never comes.
    points = (functions.shape[1] - 1) // 2
    worthless = functions[:, points : 2 * points] <= 0
    expires = worthless.any(axis=1)
    last = functions[np.arange(jobs.size), np.where(expires, worthless.argmax(axis=1), -1)]
    deadline = jobs["arrival"] + np.floor(last * jobs["duration"])
    jobs["deadline"] = np.where(expires, deadline, _FAR)

    # Where each episode finds its jobs, among all jobs and among places.
    episodes = new_records(batch.num_episodes, EPISODE)
    episodes["first_job"] = batch.first[batch.jobset]
    episodes["num_jobs"], episodes["place"] = batch.num_jobs, batch.place
    episodes["window"] = batch.window[batch.jobset]

    # Some room for pieces to begin with: it grows where jobs are preempted often, see `has_room`.
    num_machines = episodes.size * options.machines
    scratch = batch.most_jobs + options.processors + 1
    pieces = batch.most_jobs + 12 * options.processors + 16
    return Servers(
        options=options,
        costs=batch.costs,
        jobs=jobs,
        functions=functions,
        episodes=episodes,
        machines=new_records(num_machines, MACHINE),
        gained=np.zeros((num_machines, options.projects)),
        progress=new_records(batch.num_places, PROGRESS),
        waiting=np.zeros(batch.num_places, np.int64),
        running=np.zeros((num_machines, options.processors), np.int64),
        shown=np.zeros((episodes.size, options.candidates), np.int64),
        pieces=np.zeros((num_machines, pieces, 4), np.int32),
        states=np.zeros((episodes.size, state_size), np.int32),
        scratch=Scratch(*np.zeros((4, scratch), np.int64), *np.zeros((2, scratch))),
    )
