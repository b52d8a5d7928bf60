"""What simulators of all worlds share: the jobs of a batch, their costs, and schedules.

A batch is a few jobsets and many episodes that run them. The jobs of all jobsets stand one after
the other; so do the jobs of all episodes, whose indices are called *places*. Compiled code of a
world adds what it needs to these arrays.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule, join_attributes
from cluster_env.objectives.objective import Objective


class CostTable(NamedTuple):
    """What an objective says of the jobs of a batch; jobs of a warm-up cost and gain nothing.

    The last two belong to the machine and not to jobs: they count all jobs, as the metrics of the
    makespan and of the utilization do.
    """

    rate: NDArray[np.float64]  # (num_jobs,), cost of a unit of time in the system
    late_rate: NDArray[np.float64]  # (num_late, num_jobs), beside it
    late_after: NDArray[np.int64]  # (num_late, num_jobs), once a job is in the system for so long
    finish_gain: NDArray[np.float64]  # (num_jobs,)
    utility_gain: NDArray[np.float64]  # (num_jobs,), weight of a job's final utility
    busy_cost: float  # of a unit of time in which jobs are unfinished
    utilization_gain: float  # of a unit of time in which the whole machine is in use

    @classmethod
    def of(cls, jobsets: Sequence[JobSet], objective: Objective) -> "CostTable":
        """Asks an objective about each jobset by itself.

        Raises:
            InputError: if a job is to be late before it arrives.
        """
        counted = np.concatenate([one.counted for one in jobsets])

        def column(term: Callable[[JobSet], Any]) -> NDArray[np.float64]:
            return _joined(jobsets, term, np.float64) * counted

        num_jobs, late = sum(one.num_jobs for one in jobsets), objective.late_costs
        after = np.array([_joined(jobsets, cost.after, np.int64) for cost in late], np.int64)
        if after.size and after.min() < 0:
            raise InputError(
                f"the objective '{objective.name}' charges a job {-after.min()} steps before it "
                f"arrives; let a late cost begin after 0 steps or more"
            )
        gain = objective.finish_gain
        return cls(
            rate=column(objective.job_cost),
            late_rate=np.reshape([column(cost.cost) for cost in late], (len(late), num_jobs)),
            late_after=after.reshape(len(late), num_jobs),
            finish_gain=np.zeros(num_jobs) if gain is None else column(gain),
            utility_gain=objective.utility_gain * counted.astype(np.float64),
            busy_cost=float(objective.busy_cost),
            utilization_gain=float(objective.utilization_gain),
        )


class Batch:
    """Jobsets as their world serves them, and the episodes that run each, one after the other.

    Attributes:
        jobsets: at least one.
        costs: of all jobs.
        jobset: int32 ``(num_episodes,)``, index of the jobset that each episode runs.
        first: int64 ``(num_jobsets + 1,)``, where the jobs of each begin among all, and their
            number.
        num_jobs: int64 ``(num_episodes,)``.
        place: int64 ``(num_episodes,)``, where the jobs of each episode begin among places.
    """

    def __init__(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        counts = np.array([one.num_jobs for one in jobsets], np.int64)
        self.jobsets = tuple(jobsets)
        self.costs = CostTable.of(jobsets, objective)
        self.jobset = np.repeat(np.arange(counts.size, dtype=np.int32), episodes_per_jobset)
        self.first = np.concatenate([[0], np.cumsum(counts)])
        self.num_jobs = counts[self.jobset]
        self.place = np.cumsum(self.num_jobs) - self.num_jobs

    @classmethod
    def load(
        cls,
        world: Any,
        jobsets: Sequence[JobSet],
        objective: Objective,
        episodes_per_jobset: int = 1,
        check: Callable[[JobSet], None] | None = None,
    ) -> Self:
        """Makes sure that a world can run jobsets, and takes them as it serves them.

        ``check`` refuses a jobset that cannot run; by default the world's own does.

        Raises:
            InputError: if there is no jobset, or a job cannot run in this world.
        """
        if not jobsets:
            raise InputError("at least one jobset is needed")
        for jobset in jobsets:
            (check or world.check)(jobset)
        return cls([served(world, one) for one in jobsets], objective, episodes_per_jobset)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return int(self.jobset.size)

    @property
    def num_places(self) -> int:
        """Number of jobs of all episodes."""
        return int(self.num_jobs.sum())

    @property
    def most_jobs(self) -> int:
        """Number of jobs of the largest jobset."""
        return int(np.diff(self.first).max())

    @property
    def window(self) -> NDArray[np.int64]:
        """Arrival window of each jobset, int64 ``(num_jobsets,)``."""
        return np.array([one.window for one in self.jobsets], np.int64)

    def column(self, term: str | Callable[[JobSet], Any], dtype: DTypeLike) -> NDArray[Any]:
        """A field of all jobs, or what a function says of each jobset, ``(num_jobs, ...)``."""
        return _joined(self.jobsets, term, dtype)

    @cached_property
    def job_of_place(self) -> NDArray[np.int64]:
        """Index among all jobs of the job in each place, int64 ``(num_places,)``."""
        shift = self.first[self.jobset] - self.place
        index: NDArray[np.int64] = np.arange(self.num_places) + np.repeat(shift, self.num_jobs)
        return index

    def places(
        self, episodes: NDArray[np.int32], most: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """The places of the jobs of some episodes, one after the other, int64.

        With ``most``, int64 ``(m,)``, those of so many first jobs of each.
        """
        counts = self.num_jobs[episodes]
        if most is not None:
            counts = np.minimum(counts, most)
        shift = self.place[episodes] - (np.cumsum(counts) - counts)
        places: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(shift, counts)
        return places

    def copy_places(
        self,
        other: "Batch",
        source: NDArray[np.int32],
        target: NDArray[np.int32],
        columns: Iterable[tuple[NDArray[Any], NDArray[Any]]],
    ) -> None:
        """Copies what stands in the places of some episodes of another batch.

        Episodes ``source`` of the other one run the jobsets of ``target`` here, both int32
        ``(m,)``; ``columns`` are pairs of arrays, here and there, with an element for each place.
        Jobsets may differ in the jobs that have not arrived yet, and in their number.
        """
        here = self.places(target, other.num_jobs[source])
        there = other.places(source, self.num_jobs[target])
        for own, others in columns:
            own[here] = others[there]

    def finish_of(self, start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.int64]:
        """Finishes of jobs that run once and without a pause, int64 ``(num_places,)``.

        From their starts and the clocks of the episodes; -1 for what has not started, or finished.
        """
        duration = self.column("duration", np.int64)[self.job_of_place]
        finish = start + duration
        ended = (start >= 0) & (finish <= np.repeat(end, self.num_jobs))
        return np.where(ended, finish, -1)

    def schedule(
        self,
        *,
        arrived: NDArray[Any],
        start: NDArray[Any],
        finish: NDArray[Any],
        end: NDArray[Any],
        capacity: ArrayLike,
        pieces: Pieces | None = None,
    ) -> Schedule:
        """What has become of the jobs that have arrived in each episode.

        ``arrived`` (number of jobs) and ``end`` (clock) are integers ``(num_episodes,)``, ``start``
        and ``finish`` ``(num_places,)`` with -1 for never, ``capacity`` is ``(num_resources,)``.
        Pieces name a job by its row among those that have arrived, see `first_rows`.
        """
        episode = np.repeat(np.arange(self.num_episodes, dtype=np.int32), arrived)
        job = np.arange(episode.size) - self.first_rows(arrived)[episode]
        place = self.place[episode] + job
        index = self.job_of_place[place]
        attributes = join_attributes([one.attributes for one in self.jobsets])
        return Schedule(
            episode=episode,
            job=job.astype(np.int32),
            arrival=self.column("arrival", np.int32)[index],
            start=start[place].astype(np.int32),
            finish=finish[place].astype(np.int32),
            duration=self.column("duration", np.int32)[index],
            demand=self.column("demand", np.int32)[index],
            end=np.array(end, np.int32),
            window=self.window[self.jobset].astype(np.int32),
            jobset=self.jobset.copy(),
            capacity=np.asarray(capacity, np.int32),
            job_class=self.column("job_class", np.uint8)[index],
            attributes={name: column[index] for name, column in attributes.items()},
            pieces=pieces,
        )

    @staticmethod
    def first_rows(arrived: NDArray[Any]) -> NDArray[np.int64]:
        """The row of a schedule where each episode's jobs begin, int64 ``(num_episodes,)``."""
        return np.asarray(np.cumsum(arrived) - arrived, np.int64)


class BatchSimulator(ABC):
    """A simulator of a world whose episodes are those of a `Batch`; see `Simulator`.

    A world's own one allocates its arrays in `allocate`, and shows five of them to all: `episode`,
    `states`, `time`, `active` and `truncated`, views that change. Where these are fields of
    records, it sets them in `show`. It adds `reset`, `step`, `take_over` and `schedule`.
    """

    episode: NDArray[np.int32]
    states: NDArray[Any]
    time: NDArray[Any]
    active: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __init__(self, world: Any) -> None:
        self.world = world
        self.batch: Batch
        self.objective: Objective

    @property
    def num_rows(self) -> int:
        """Number of deciders that are loaded."""
        return int(self.episode.size)

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets; see `Simulator.load`."""
        self.require(objective)
        self.objective = objective
        self.batch = Batch.load(self.world, jobsets, objective, episodes_per_jobset, self.check)
        self.episode = np.arange(self.batch.num_episodes, dtype=np.int32)
        self.allocate()
        self.show()
        self.reset()

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy of a field of records is no view of the copied records.
        self.__dict__.update(state)
        if "batch" in state:
            self.show()

    def show(self) -> None:  # noqa: B027 - whole arrays are the same in a copy
        """Sets the views that are fields of records, after `allocate` and in a copy."""

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can be simulated: by default, that the world takes them all.

        Raises:
            InputError: if one cannot.
        """
        self.world.check(jobset)

    def require(self, objective: Objective) -> None:  # noqa: B027 - most worlds take all
        """Refuses an objective that this world cannot reward.

        Raises:
            InputError: if it is one.
        """

    @abstractmethod
    def allocate(self) -> None:
        """Makes room for the episodes of `batch`; sets the five views, or leaves it to `show`."""

    @abstractmethod
    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all rows, or the given ones, back to the beginning; see `Simulator.reset`."""


def served(world: Any, jobset: JobSet) -> JobSet:
    """The jobs of a jobset as a world serves them: most worlds do so as they are.

    A world with a method ``served`` may change them: one that kills jobs at the estimate cuts their
    durations. Rewards, metrics and schedules are those of the jobs as served.
    """
    change = getattr(world, "served", None)
    return jobset if change is None else change(jobset)


def _joined(
    jobsets: Sequence[JobSet], term: str | Callable[[JobSet], Any], dtype: DTypeLike
) -> NDArray[Any]:
    if isinstance(term, str):
        parts = [getattr(one, term) for one in jobsets]
    else:
        parts = [np.asarray(term(one)) for one in jobsets]
    return np.concatenate(parts).astype(dtype)
