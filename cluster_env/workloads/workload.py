"""What every workload offers, and the one way to draw jobsets from it."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator


class Workload(Protocol):
    """A distribution over jobsets.

    That is all that is asked for. A workload whose jobs run out, so that splits could share some,
    is a `DividedWorkload` too.
    """

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


class MeasuredWorkload(Workload, Protocol):
    """A workload that knows how busy it keeps its cluster."""

    @property
    def load(self) -> float:
        """Mean demand over capacity; 0.7 is 70 %."""

    @property
    def arrival_rate(self) -> float:
        """Mean number of arrivals in a time step."""


def part_of(workload: Workload, split: Split) -> Workload:
    """The workload that the jobsets of a split come from."""
    return workload.part(split) if isinstance(workload, DividedWorkload) else workload


def num_disjoint(workload: Workload, split: Split) -> int | None:
    """How many jobsets of a split fit side by side, sharing no job; none where all are drawn.

    Args:
        workload: of a `RecordedWorkload`, or a part of it, jobsets are windows of a log.
        split: which of them.
    """
    part = part_of(workload, split)
    return part.num_disjoint if isinstance(part, RecordedPart) else None


def sample_jobsets(
    workload: Workload, run_seed: int, split: Split, indices: Iterable[int]
) -> list[JobSet]:
    """Draws the jobsets of a split.

    The jobset of an index is the same whoever draws it, and no two splits share one.

    Args:
        workload: the distribution; of a `DividedWorkload`, the part of the split.
        run_seed: seed of the run, at least 0.
        split: training, validation or held-out.
        indices: which jobsets, each at least 0.
    """
    source = part_of(workload, split)
    # A generator for each index, so that a jobset does not depend on who draws which others.
    return [source.sample(generator(run_seed, Purpose.JOBSET, split, i)) for i in indices]
