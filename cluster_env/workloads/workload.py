"""What every workload offers, and the one way to draw jobsets from it."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator


class Workload(Protocol):
    """A distribution over jobsets."""

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset."""


def sample_jobsets(
    workload: Workload, run_seed: int, split: Split, indices: Iterable[int]
) -> list[JobSet]:
    """Draws the jobsets of a split.

    The jobset of an index is the same whoever draws it, and no two splits share one.

    Args:
        workload: the distribution.
        run_seed: seed of the run, at least 0.
        split: training, validation or held-out.
        indices: which jobsets, each at least 0.
    """
    return [workload.sample(generator(run_seed, Purpose.JOBSET, split, i)) for i in indices]
