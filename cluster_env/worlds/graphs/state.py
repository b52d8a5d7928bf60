"""Records that compiled code works on, and columns of the states that policies see.

Kernels get `Clusters`, all episodes side by side, and take out of it an `Episode`, views of one:
its arrays begin with its own first element and go on with those of others.

A stage is named by its *number* in the episode: job times width plus stage. Executors stand in
*pools*: that of a stage has its number, behind those come the pools of jobs, and then the common
one of executors that belong to no job.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch, CostTable
from cluster_env.core.compiled import new_records, njit
from cluster_env.core.graphs import Stages, stages_of
from cluster_env.worlds.graphs.tables import Durations

NOWHERE = -1
"""In place of a pool, a job or a stage, where there is none."""

JOB = np.dtype(
    [
        ("arrival", np.int64),
        ("num_stages", np.int64),
        ("seed", np.int64),  # of the draws of its durations, with the next
        ("number", np.int64),
        ("row", np.int64),  # of its first stage among measured durations; -1 if it has none
        ("work", np.float64),  # executors x time
        ("log_work", np.float64),
    ]
)

STAGE = np.dtype(
    [
        ("tasks", np.int64),
        ("first_task", np.int64),  # where its tasks begin among those of its job
        ("parents", np.int64),  # a bit for each
        ("time", np.float64),  # mean of a task
        ("path", np.float64),  # time to the end of the job on the longest path
        ("log_path", np.float64),
    ]
)

PROGRESS = np.dtype(
    [
        # Bits of stages: with tasks that no executor is at, moves to or is promised to; that have
        # not ended; with tasks that have not begun; and that were chosen in this round.
        *((name, np.int64) for name in ("wanting", "unfinished", "unstarted", "chosen")),
        ("held", np.int64),  # executors at it, on the way to it, or promised by other jobs
        ("present", np.int64),  # executors at it
        ("start", np.int64),  # -1 before
        ("finish", np.int64),  # -1 before
        ("work_left", np.float64),  # of tasks that have not begun
    ]
)
"""What has become of a job in an episode."""

STAGE_PROGRESS = np.dtype(
    [(name, np.int64) for name in ("unstarted", "ended", "coming", "promised")]
)
"""Tasks of a stage that have not begun and that have ended; executors on the way and promised."""

POOL = np.dtype([("standing", np.int64), ("promised", np.int64)])
"""Executors that stand there or run its tasks, and how many of them are promised to stages."""

EXECUTOR = np.dtype(
    [
        ("pool", np.int64),  # NOWHERE on the way
        ("job", np.int64),  # that it is at
        ("stage", np.int64),  # of its last task there; NOWHERE makes it a fresh one
        ("target", np.int64),  # number of the stage of its task, or that it moves to
        ("since", np.int64),
        ("until", np.int64),
        ("order", np.int64),  # of its event, among those of one instant
        ("busy", np.bool_),  # runs a task
    ],
    align=True,
)

PROMISE = np.dtype([(name, np.int64) for name in ("source", "target", "count")])
"""So many executors of a pool go to a stage, or to the common pool, as soon as they are idle."""

EPISODE = np.dtype(
    [
        ("first_job", np.int64),  # where its jobs begin among those of all jobsets
        ("num_jobs", np.int64),
        ("place", np.int64),  # where they begin among those of all episodes
        ("window", np.int64),
        ("time", np.int64),
        ("num_arrived", np.int64),
        ("num_here", np.int64),  # jobs that have arrived and not finished
        ("num_events", np.int64),
        ("num_promises", np.int64),
        ("next_order", np.int64),
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
    """Columns that a state begins with, each an int32; candidates follow."""

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
    width: int  # most stages of a job
    candidates: int
    items: int  # candidates or executors, whichever are more
    max_time: int


class Clusters(NamedTuple):
    """All episodes side by side."""

    options: Options
    costs: CostTable  # of all jobs
    durations: Durations
    jobs: NDArray[np.void]  # (num_jobs,) of `JOB`, of all jobsets
    stages: NDArray[np.void]  # (num_jobs * width,) of `STAGE`
    episodes: NDArray[np.void]  # (num_rows,) of `EPISODE`
    progress: NDArray[np.void]  # (num_places,) of `PROGRESS`, of the jobs of all episodes
    stage_progress: NDArray[np.void]  # (num_places * width,) of `STAGE_PROGRESS`
    pools: NDArray[np.void]  # (num_places * (width + 1) + num_rows,) of `POOL`
    here: NDArray[np.int64]  # (num_places,), the first `num_here` of an episode are jobs
    shares: NDArray[np.float64]  # (num_places, 3), room for rules that share executors out
    first_task: NDArray[np.int64]  # (num_places,), where the tasks of each job begin in the next
    tasks: NDArray[np.int32]  # (num_tasks, 3): begin, end and executor; the end is -1 before
    executors: NDArray[np.void]  # (num_rows, executors) of `EXECUTOR`
    events: NDArray[np.int64]  # (num_rows, executors), a heap of executors by `until` and `order`
    promises: NDArray[np.void]  # (num_rows, executors + 1) of `PROMISE`, in their order
    states: NDArray[np.int32]  # (num_rows, state_size)


class Episode(NamedTuple):
    """One episode; see `Clusters`. A type checker knows nothing of the fields of records."""

    options: Options
    costs: CostTable  # of all jobs; its own begin at `first_job`
    durations: Durations
    record: Any  # of `EPISODE`
    jobs: Any  # of `JOB`
    stages: Any  # of `STAGE`
    progress: Any  # of `PROGRESS`
    stage_progress: Any  # of `STAGE_PROGRESS`
    pools: Any  # of `POOL`
    here: NDArray[np.int64]
    shares: NDArray[np.float64]
    first_task: NDArray[np.int64]
    tasks: NDArray[np.int32]  # of all episodes
    executors: Any  # (executors,) of `EXECUTOR`
    events: NDArray[np.int64]  # (executors,)
    promises: Any  # (executors + 1,) of `PROMISE`
    state: NDArray[np.int32]  # (state_size,)


@njit(inline="always")
def episode_of(clusters: Clusters, row: int) -> Episode:
    """The episode of a row."""
    record, width = clusters.episodes[row], clusters.options.width
    first, place = record.first_job, record.place
    return Episode(
        clusters.options,
        clusters.costs,
        clusters.durations,
        record,
        clusters.jobs[first:],
        clusters.stages[first * width :],
        clusters.progress[place:],
        clusters.stage_progress[place * width :],
        clusters.pools[place * (width + 1) + row :],
        clusters.here[place:],
        clusters.shares[place:],
        clusters.first_task[place:],
        clusters.tasks,
        clusters.executors[row],
        clusters.events[row],
        clusters.promises[row],
        clusters.states[row],
    )


@njit(inline="always")
def candidate_of(state: NDArray[np.int32], k: int) -> NDArray[np.int32]:
    """The columns of the k-th candidate: a view."""
    begin = len(HEADER) + k * len(CANDIDATE)
    return state[begin : begin + len(CANDIDATE)]


def allocate_clusters(
    batch: Batch, options: Options, durations: Durations, graph_rows: NDArray[np.int64]
) -> Clusters:
    """Makes room for episodes that are to begin.

    Args:
        batch: their jobs, whose stages have ``options.width`` columns.
        options: of the world.
        durations: that were measured.
        graph_rows: rows there of the first stages of all graphs of a library.
    """
    stages = Stages(*map(np.concatenate, zip(*map(stages_of, batch.jobsets), strict=True)))
    num_rows, num_places = batch.num_episodes, batch.num_places
    episodes = new_records(num_rows, EPISODE)
    episodes["first_job"] = batch.first[batch.jobset]
    episodes["num_jobs"], episodes["place"] = batch.num_jobs, batch.place
    episodes["window"] = batch.window[batch.jobset]
    per_place = stages.tasks.sum(axis=1)[batch.job_of_place]
    size = len(HEADER) + options.items * len(CANDIDATE)
    return Clusters(
        options=options,
        costs=batch.costs,
        durations=durations,
        jobs=_jobs(batch, stages, graph_rows),
        stages=_stages(stages),
        episodes=episodes,
        progress=new_records(num_places, PROGRESS),
        stage_progress=new_records(num_places * options.width, STAGE_PROGRESS),
        pools=new_records(num_places * (options.width + 1) + num_rows, POOL),
        here=np.zeros(num_places, np.int64),
        shares=np.zeros((num_places, 3)),
        first_task=np.cumsum(per_place) - per_place,
        tasks=np.zeros((int(per_place.sum()), 3), np.int32),
        executors=new_records((num_rows, options.executors), EXECUTOR),
        events=np.zeros((num_rows, options.executors), np.int64),
        promises=new_records((num_rows, options.executors + 1), PROMISE),
        states=np.zeros((num_rows, size), np.int32),
    )


DRAW, GRAPH = "draw", "graph"
"""Attributes: seed and number of the draws of a job's durations, ``(num_jobs, 2)``; and the index
of its graph in the world's library, -1 for none."""


def _jobs(batch: Batch, stages: Stages, graph_rows: NDArray[np.int64]) -> NDArray[np.void]:
    jobs: NDArray[np.void] = new_records(stages.tasks.shape[0], JOB)
    jobs["arrival"] = batch.column("arrival", np.int64)
    jobs["num_stages"] = (stages.tasks > 0).sum(axis=1)
    jobs["work"] = stages.work
    jobs["log_work"] = np.log(stages.work)
    numbers = [np.arange(one.num_jobs) for one in batch.jobsets]
    jobs["number"], jobs["row"] = np.concatenate(numbers), NOWHERE
    if DRAW in batch.jobsets[0].attributes:
        jobs["seed"], jobs["number"] = batch.column(lambda one: one.attributes[DRAW], np.int64).T
    if GRAPH in batch.jobsets[0].attributes and graph_rows.size:
        graph = batch.column(lambda one: one.attributes[GRAPH], np.int64)
        jobs["row"] = np.where(graph < 0, NOWHERE, graph_rows[graph])
    return jobs


def _stages(stages: Stages) -> NDArray[np.void]:
    records: NDArray[np.void] = new_records(stages.tasks.size, STAGE)
    records["tasks"] = stages.tasks.ravel()
    records["first_task"] = (np.cumsum(stages.tasks, axis=1) - stages.tasks).ravel()
    records["parents"], records["time"] = stages.parents.ravel(), stages.time.ravel()
    records["path"] = stages.paths().ravel()
    records["log_path"] = np.log(np.maximum(records["path"], 1.0))
    return records
