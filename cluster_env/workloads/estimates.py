"""What users say that their jobs will take: run times with errors."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.registry import Registry

Seconds = NDArray[np.int64]

SHARE = 0.5
"""Standard deviation of `gaussian`, as a share of the run time."""

MOST = 5.0
"""How many times the run time `uniform` asks for at most."""

ESTIMATES: Registry[Callable[[np.random.Generator, Seconds], Seconds]] = Registry("estimates")
"""From run times to estimates, int64 ``(num_jobs,)``, at least 1."""


@ESTIMATES.register("exact")
def exact(rng: np.random.Generator, run: Seconds) -> Seconds:
    """The run times themselves."""
    return run


@ESTIMATES.register("gaussian")
def gaussian(rng: np.random.Generator, run: Seconds) -> Seconds:
    """Run times with normal errors, so that jobs may outlive their estimates."""
    return np.maximum(np.rint(rng.normal(run, SHARE * run)), 1).astype(np.int64)


@ESTIMATES.register("uniform")
def uniform(rng: np.random.Generator, run: Seconds) -> Seconds:
    """Up to `MOST` times the run time, never less (the "f-model" of Feitelson and Weil)."""
    return np.ceil(run * rng.uniform(1.0, MOST, run.size)).astype(np.int64)
