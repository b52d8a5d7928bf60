"""What every workload offers, and the one way to draw jobsets from it."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator


class Workload(Protocol):
    """A distribution over jobsets; one whose jobs run out is a `DividedWorkload` too."""

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset."""


@runtime_checkable
class DividedWorkload(Workload, Protocol):
    """A workload that keeps the jobs of the splits apart, such as a recorded trace.

    `sample_jobsets` draws the jobsets of a split from ``part(split)``.
    """

    def part(self, split: Split) -> Workload:
        """The workload of a split; no two splits share a job."""


@runtime_checkable
class RecordedPart(Workload, Protocol):
    """A stretch of a log, whose jobsets are windows of it and may share jobs."""

    @property
    def num_disjoint(self) -> int:
        """Windows that fit side by side into it, sharing no job; at least 1."""


@runtime_checkable
class RecordedWorkload(DividedWorkload, Protocol):
    """A workload whose jobsets are windows of a log."""

    def before_held_out(self) -> RecordedPart:
        """The stretch of the log before held-out jobs: those of training and of validation."""


def part_of(workload: Workload, split: Split) -> Workload:
    """The workload that the jobsets of a split come from."""
    return workload.part(split) if isinstance(workload, DividedWorkload) else workload


def num_disjoint(workload: Workload, split: Split) -> int | None:
    """How many jobsets of a split fit side by side, sharing no job; none where all are drawn."""
    part = part_of(workload, split)
    return part.num_disjoint if isinstance(part, RecordedPart) else None


def sample_jobsets(
    workload: Workload, run_seed: int, split: Split, indices: Iterable[int]
) -> list[JobSet]:
    """Draws the jobsets of a split (of a `DividedWorkload`, from that part).

    The jobset of an index is the same whoever draws it, and no two splits share one.
    """
    source = part_of(workload, split)
    # A generator for each index, so that a jobset does not depend on who draws which others.
    return [source.sample(generator(run_seed, Purpose.JOBSET, split, i)) for i in indices]
