"""Records that compiled code works on, and columns of the states that policies see.

A stage is named by its *number* in the episode: job times `Options.span` plus stage. Executors
stand in *pools*: that of a stage has its number. The last number of a job is no stage but the pool
of executors that wait at the job; behind all jobs comes the common pool, of those that belong to
none.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch, CostTable
from cluster_env.core.compiled import new_records, njit
from cluster_env.core.graphs import Stages, stages_of
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.graphs.tables import Durations, Library

NUM_WEIGHTS = 11
"""Of the scorer, see `cluster_env.worlds.graphs.rules`."""

EXECUTOR_BITS = 12
MOST_EXECUTORS = 1 << EXECUTOR_BITS

NOWHERE = -1
"""In place of a pool, a job or a stage, where there is none."""

JOB = np.dtype(
    [
        ("arrival", np.int64),
        ("num_stages", np.int64),
        ("num_tasks", np.int64),
        ("seed", np.int64),  # of the draws of its durations, with the next
        ("number", np.int64),
        ("row", np.int64),  # of its first stage among measured durations; -1 if it has none
        ("work", np.float64),  # executors x time
        ("log_work", np.float64),
        # Bits of stages: with tasks that no executor is at, moves to or is promised to; that have
        # not ended; with tasks that have not begun; and that were chosen in this round.
        *((name, np.int64) for name in ("wanting", "unfinished", "unstarted", "chosen")),
        ("held", np.int64),  # executors at it, on the way to it, or promised by other jobs
        ("present", np.int64),  # executors at it
        ("start", np.int64),  # -1 before
        ("finish", np.int64),  # -1 before
        ("work_left", np.float64),  # of tasks that have not begun
        # What the scorer needs twice in a decision, because logarithms take most of its time.
        *((name, np.float64) for name in ("share", "log_left", "log_age")),
    ]
)

STAGE = np.dtype(
    [
        ("tasks", np.int64),
        ("first_task", np.int64),  # where its tasks begin among those of the episode
        ("parents", np.int64),  # a bit for each
        ("time", np.float64),  # mean of a task
        ("path", np.float64),  # time to the end of the job on the longest path
        ("log_path", np.float64),
        ("unstarted", np.int64),  # tasks
        ("ended", np.int64),  # tasks
        ("wanted", np.int64),  # unstarted tasks that no executor moves to or is promised to
        ("standing", np.int64),  # executors that stand in this pool or run its tasks
        ("owed", np.int64),  # of these, promised to other stages
    ]
)

EXECUTOR = np.dtype(
    [
        ("pool", np.int64),  # NOWHERE on the way
        ("job", np.int64),  # that it is at
        ("stage", np.int64),  # of its last task there; NOWHERE makes it a fresh one
        ("target", np.int64),  # number of the stage of its task, or that it moves to
        ("since", np.int64),  # of its task
        ("busy", np.bool_),  # runs a task
    ],
    align=True,
)

PROMISE = np.dtype([(name, np.int64) for name in ("source", "target", "count")])
"""So many executors of a pool go to a stage, or to the common pool, as soon as they are idle."""

EPISODE = np.dtype(
    [
        ("num_jobs", np.int64),
        ("num_tasks", np.int64),
        ("window", np.int64),
        ("time", np.int64),
        ("num_arrived", np.int64),
        ("num_here", np.int64),  # jobs that have arrived and not finished
        ("num_events", np.int64),
        ("num_promises", np.int64),
        ("source", np.int64),  # pool whose executors are to be assigned
        ("picked", np.int64),  # stage that gets some of them; NOWHERE where one is to be picked
        ("skipped", np.int64),  # stages that this decision has been shown and did not take
        ("busy", np.int64),  # executors that run tasks
        ("rate", np.float64),  # cost of a time step by the jobs that are here
        ("pending_reward", np.float64),  # since the last decision
        ("recent_log_work", np.float64),  # mean over the last arrivals, see `events.observe`
        ("recent_burst", np.float64),
        ("deciding", np.bool_),  # a round of decisions is under way
        ("decided", np.bool_),  # and there was one
        ("forced", np.bool_),  # and one executor has to go, because nothing else will happen
        ("active", np.bool_),
        ("truncated", np.bool_),
    ],
    align=True,
)


class Header(NamedTuple):
    """Columns that a state begins with, each an int32.

    Candidates follow, then nodes with the same columns, and then two numbers for each node: the
    bits of its parents, the first 31 of them and the others.
    """

    phase: int  # 0 if there is nothing to decide, 1 to pick a stage, 2 to say how many executors
    free: int  # executors that are to be assigned
    most: int  # of them that the picked stage can take
    more: int  # 1 if more stages can get executors than are shown; void shows the next
    must: int  # 1 if void is not allowed
    jobs: int  # here
    busy: int  # executors
    work_left: int  # of all jobs here, in seconds
    recent_log_work: int  # mean of ln(work) over the last arrivals, in thousandths
    recent_burst: int  # how bursty they came, in thousandths, from -1000 to 1000


class CandidateColumns(NamedTuple):
    """Columns of a candidate: a stage, or with `number` so many executors for the picked one."""

    here: int  # 1
    job: int  # index
    stage: int
    number: int  # of executors; 0 while a stage is to be picked
    own: int  # 1 if the executors are at its job
    ready: int  # 1 if its parents have ended
    held: int  # executors of the job
    wanted: int  # tasks that nobody is to run yet
    time: int  # mean of a task
    path: int  # to the end of the job
    work_left: int  # of the job, in seconds
    work: int  # of the job, in seconds
    age: int  # of the job


HEADER = Header(*range(len(Header._fields)))
CANDIDATE = CandidateColumns(*range(len(CandidateColumns._fields)))


class Options(NamedTuple):
    """The options of `cluster_env.worlds.graphs.world.Graphs`, as compiled code reads them."""

    executors: int
    delay: int
    warmup: int
    spread: float
    span: int  # numbers of a job: one for each stage that it can have, and one for its own pool
    candidates: int
    items: int  # candidates or executors, whichever are more
    nodes: int  # stages that a state shows beside them
    max_time: int


class Episode(NamedTuple):
    """One episode, or some side by side, whose arrays have a row for each episode.

    A type checker knows nothing of the fields of records.
    """

    options: Options
    costs: CostTable  # of all jobs
    durations: Durations
    first_job: Any  # where its jobs begin among those of all jobsets
    record: Any  # of `EPISODE`
    jobs: Any  # (most_jobs,) of `JOB`
    stages: Any  # (most_jobs * span + 1,) of `STAGE`
    here: NDArray[np.int64]  # (most_jobs,), the first `num_here` are jobs
    tasks: NDArray[np.int32]  # (most_tasks, 3): begin, end and executor; the end is -1 before
    executors: Any  # (executors,) of `EXECUTOR`
    events: NDArray[np.int64]  # (executors,), see `cluster_env.worlds.graphs.events.add_event`
    promises: Any  # (executors + 1,) of `PROMISE`, in their order
    weights: NDArray[np.float64]  # (NUM_WEIGHTS,), those of the scorer in a context
    state: NDArray[np.int32]  # (state_size,)


@njit(inline="always")
def episode_of(every: Episode, row: int) -> Episode:
    """The episode of a row, of all episodes."""
    return Episode(
        every.options,
        every.costs,
        every.durations,
        every.first_job[row],
        every.record[row],
        every.jobs[row],
        every.stages[row],
        every.here[row],
        every.tasks[row],
        every.executors[row],
        every.events[row],
        every.promises[row],
        every.weights[row],
        every.state[row],
    )


def state_size(items: int, nodes: int) -> int:
    """Number of columns of a state."""
    return len(HEADER) + (items + nodes) * len(CANDIDATE) + 2 * nodes


@njit(inline="always")
def candidate_of(state: NDArray[np.int32], k: int) -> NDArray[np.int32]:
    """The columns of the k-th candidate: a view."""
    begin = len(HEADER) + k * len(CANDIDATE)
    return state[begin : begin + len(CANDIDATE)]


def first_episodes(batch: Batch, options: Options, library: Library) -> Episode:
    """The beginnings of episodes, where nothing has happened, with a row for each jobset.

    Args:
        batch: their jobs, whose stages have ``options.span - 1`` columns.
        options: of the world.
        library: of the world.
    """
    num_rows, num_jobs, span = len(batch.jobsets), batch.most_jobs, options.span
    jobs = new_records((num_rows, num_jobs), JOB)
    stages = new_records((num_rows, num_jobs * span + 1), STAGE)
    for row, jobset in enumerate(batch.jobsets):
        count = jobset.num_jobs
        _fill_jobs(jobs[row, :count], jobset, library)
        own = stages[row, : count * span].reshape(count, span)
        _fill_stages(own[:, :-1], stages_of(jobset))
        stages["standing"][row, count * span] = options.executors
    record = new_records(num_rows, EPISODE)
    record["num_jobs"], record["window"] = np.diff(batch.first), batch.window
    record["num_tasks"] = jobs["num_tasks"].sum(axis=1)
    record["source"] = record["picked"] = NOWHERE
    record["active"] = record["num_jobs"] > 0
    executors = new_records((num_rows, options.executors), EXECUTOR)
    executors["pool"] = record["num_jobs"][:, None] * span
    executors["job"] = executors["stage"] = NOWHERE
    tasks = np.zeros((num_rows, record["num_tasks"].max(), 3), np.int32)
    tasks[:, :, 1] = -1
    return Episode(
        options=options,
        costs=batch.costs,
        durations=library.durations,
        first_job=batch.first[:-1],
        record=record,
        jobs=jobs,
        stages=stages,
        here=np.zeros((num_rows, num_jobs), np.int64),
        tasks=tasks,
        executors=executors,
        events=np.zeros((num_rows, options.executors), np.int64),
        promises=new_records((num_rows, options.executors + 1), PROMISE),
        weights=np.zeros((num_rows, NUM_WEIGHTS)),
        state=np.zeros((num_rows, state_size(options.items, options.nodes)), np.int32),
    )


DRAW, GRAPH = "draw", "graph"
"""Attributes: seed and number of the draws of a job's durations, ``(num_jobs, 2)``; and the index
of its graph in the world's library, -1 for none."""


def _fill_jobs(jobs: Any, jobset: JobSet, library: Library) -> None:
    stages = stages_of(jobset)
    jobs["arrival"] = jobset.arrival
    jobs["num_stages"] = (stages.tasks > 0).sum(axis=1)
    jobs["num_tasks"] = stages.tasks.sum(axis=1)
    jobs["work"] = jobs["work_left"] = stages.work
    jobs["log_work"] = np.log(stages.work)
    jobs["number"], jobs["row"] = np.arange(jobs.size), NOWHERE
    if DRAW in jobset.attributes:
        jobs["seed"], jobs["number"] = np.transpose(jobset.attributes[DRAW])
    if GRAPH in jobset.attributes and library.names:
        graph = np.asarray(jobset.attributes[GRAPH])
        jobs["row"] = np.where(graph < 0, NOWHERE, library.row[graph])
    for name in ("wanting", "unfinished", "unstarted"):
        jobs[name] = (np.int64(1) << jobs["num_stages"]) - 1
    jobs["start"] = jobs["finish"] = -1


def _fill_stages(records: Any, stages: Stages) -> None:
    records["tasks"] = records["unstarted"] = records["wanted"] = stages.tasks
    records["first_task"] = np.cumsum(stages.tasks).reshape(stages.tasks.shape) - stages.tasks
    records["parents"], records["time"], records["path"] = (
        stages.parents,
        stages.time,
        stages.paths(),
    )
    records["log_path"] = np.log(np.maximum(records["path"], 1.0))
