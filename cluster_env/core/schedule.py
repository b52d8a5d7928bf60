"""What a simulator hands out: when each job arrived, started and finished."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import NO_ATTRIBUTES, Attributes, JobSet, classes_or_zeros, no_classes


@dataclass(frozen=True, eq=False)
class Pieces:
    """Which units jobs held from when to when, where a job is not one rectangle.

    A world that preempts jobs, squeezes them or spreads them over nodes says so here. Pieces stand
    in any order, and those of one job may overlap, as on two nodes.

    Attributes:
        job: int32 ``(num_pieces,)``, index of the piece's job among the rows of the schedule (not
            in its jobset).
        begin: int32 ``(num_pieces,)``.
        end: int32 ``(num_pieces,)``, after ``begin``; the units are free again at this time. A job
            that holds units when its episode ends has a piece that ends there.
        units: ``(num_pieces, num_resources)``, whole numbers or fractions: what is held meanwhile.
        node: int32 ``(num_pieces,)``, where; None in a world without nodes.
    """

    job: NDArray[np.int32]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    units: NDArray[Any]
    node: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        sizes = {self.job.shape, self.begin.shape, self.end.shape, self.units.shape[:1]}
        if self.node is not None:
            sizes.add(self.node.shape)
        if sizes != {(self.job.size,)} or self.units.ndim != 2:
            raise InputError(
                f"pieces need one job, begin, end and row of units each, but the shapes "
                f"{sorted(sizes)} were given"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """The jobs of several episodes, one entry per job; every metric is computed from this alone.

    Attributes:
        episode: int32 ``(n,)``, index of the episode that a job belongs to.
        job: int32 ``(n,)``, index of the job in its jobset.
        arrival: int32 ``(n,)``.
        start: int32 ``(n,)``, -1 if the job never started.
        finish: int32 ``(n,)``, -1 if the job had not finished when its episode ended.
        duration: int32 ``(n,)``.
        demand: int32 ``(n, num_resources)``.
        end: int32 ``(num_episodes,)``, clock at which each episode ended.
        window: int32 ``(num_episodes,)``, steps in which jobs may arrive.
        jobset: int32 ``(num_episodes,)``, index of the jobset that each episode ran.
        capacity: int32 ``(num_resources,)``.
        job_class: uint8 ``(n,)``, the class of each job; 0 if not given.
        attributes: further columns of the jobs' jobsets, one value or row for each of the n jobs.
        pieces: what jobs really held; None where each holds its demand from start to finish.
    """

    episode: NDArray[np.int32]
    job: NDArray[np.int32]
    arrival: NDArray[np.int32]
    start: NDArray[np.int32]
    finish: NDArray[np.int32]
    duration: NDArray[np.int32]
    demand: NDArray[np.int32]
    end: NDArray[np.int32]
    window: NDArray[np.int32]
    jobset: NDArray[np.int32]
    capacity: NDArray[np.int32]
    job_class: NDArray[np.uint8] = field(default_factory=no_classes)
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    pieces: Pieces | None = None

    def __post_init__(self) -> None:
        given = classes_or_zeros(self.job_class, int(self.job.size))
        object.__setattr__(self, "job_class", given)
        object.__setattr__(self, "attributes", Attributes(self.attributes, int(self.job.size)))

    def __repr__(self) -> str:
        """The first jobs as a table, below what the schedule is of."""
        episodes = f"{self.num_episodes:,} episode{'s' * (self.num_episodes != 1)}"
        capacity = ", ".join(map(str, self.capacity))
        names = ("episode", "job", "arrival", "start", "finish", "duration", "demand")
        rows = [
            [str(getattr(self, name)[k]) for name in names] for k in range(min(self.job.size, 5))
        ]
        widths = [max(map(len, cells)) for cells in zip(names, *rows, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
            for cells in (names, *rows)
        ]
        more = self.job.size - len(rows)
        lines += [f"... and {more:,} more jobs"] if more else []
        head = f"Schedule of {self.job.size:,} jobs in {episodes}, capacity {capacity}"
        return "\n".join([head, *lines])

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return int(self.end.size)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which jobs finished, bool ``(n,)``."""
        return self.finish >= 0

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which jobs cost anything and are measured, bool ``(n,)``; see `JobSet.counted`."""
        marked = self.attributes.get("counted")
        return np.ones(self.job.size, np.bool_) if marked is None else np.asarray(marked) > 0

    @property
    def completion(self) -> NDArray[np.int32]:
        """Time steps from arrival to finish, int32 ``(n,)``.

        An unfinished job counts up to the end of its episode, which is a lower bound.
        """
        until = np.where(self.finished, self.finish, self.end[self.episode])
        return (until - self.arrival).astype(np.int32)

    @property
    def slowdown(self) -> NDArray[np.float64]:
        """`completion` over duration (DeepRM, section 3.1), float64 ``(n,)``."""
        return self.completion / self.duration

    @cached_property
    def by_episode(self) -> tuple[tuple[NDArray[np.int64], JobSet], ...]:
        """Of each episode its rows, in the order of arrival, and its arrived jobs as a jobset.

        An objective can be asked what they cost. Equal arrivals go by number; that is the order of
        the jobset where no job waits for the end of another to be submitted.
        """
        order = np.lexsort((self.job, self.arrival, self.episode))
        ends = np.cumsum(np.bincount(self.episode, minlength=self.num_episodes))
        attributes = Attributes(self.attributes, int(self.job.size))
        return tuple(
            (
                rows,
                JobSet(
                    self.arrival[rows],
                    self.duration[rows],
                    self.demand[rows],
                    max(int(window), int(self.arrival[rows].max(initial=0)) + 1),
                    self.job_class[rows],
                    attributes.select(rows) if attributes else NO_ATTRIBUTES,
                ),
            )
            for rows, window in zip(np.split(order, ends[:-1]), self.window, strict=True)
        )


def join_attributes(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """One after another; each must have the same names.

    Raises:
        InputError: if one has other names.
    """
    names = {tuple(sorted(part)) for part in parts}
    if len(names) > 1:
        raise InputError(
            f"jobs that are put together need the same attributes, but some have "
            f"{' and others '.join(str(list(some)) for some in sorted(names))}"
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def join_pieces(schedules: Sequence[Schedule]) -> Pieces | None:
    """The pieces of several schedules, whose rows are counted on; None if none has any.

    Raises:
        InputError: if some have pieces, or nodes, and others not.
    """
    parts = [one.pieces for one in schedules if one.pieces is not None]
    nodes = [part.node for part in parts if part.node is not None]
    if len(parts) not in (0, len(schedules)) or len(nodes) not in (0, len(parts)):
        raise InputError(
            "schedules that are put together need pieces, and nodes of the pieces, in all of them "
            "or in none"
        )
    if not parts:
        return None
    first = np.cumsum([0] + [one.job.size for one in schedules])
    rows = [part.job + offset for part, offset in zip(parts, first[:-1], strict=True)]
    return Pieces(
        job=np.concatenate(rows).astype(np.int32),
        begin=np.concatenate([part.begin for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        units=np.concatenate([part.units for part in parts]),
        node=np.concatenate(nodes) if nodes else None,
    )
