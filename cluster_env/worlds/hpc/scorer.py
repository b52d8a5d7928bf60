"""A scorer: a few numbers that decide which waiting job starts next."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown

MODES = ("strict", "skip", "easy")
"""What may start, see `Scorer`."""

JOB_FEATURES = (
    *("log_estimate", "log_share", "log_size", "relative_estimate", "stretch", "share"),
    *("of_free", "fits", "relative_area", "log_gaps"),
)
"""What a scorer sees of a waiting job.

ln is the natural logarithm, N the processors of the machine; m and s are mean and standard
deviation over the last arrivals (`cluster_env.worlds.hpc.state.RECENT`), s at least
`LEAST_DEVIATION`.

* ``log_estimate``: ln(estimate) / 4.
* ``log_share``: ln(processors / N) / 4; ``log_size``: ln(processors) / ln N; ``share``:
  processors / N.
* ``relative_estimate``: (ln(estimate) - m) / s; ``relative_area``: the same of estimate x
  processors.
* ``stretch``: ln(1 + waited / estimate) / 4.
* ``of_free``: processors / free ones, at most 2.
* ``fits``: 1 if it could start now.
* ``log_gaps``: ln(estimate) less the mean of ln(1 + seconds between arrivals), / 4.
"""

STATE_FEATURES = (
    *("free", "waiting", "queued_work", "next_end", "queue_log", "running_work"),
    *("running", "running_log", "recent_load", "recent_deviation"),
)
"""What a scorer sees of the machine and the queue; with a constant, eleven numbers.

* ``free``: share of the processors that is free.
* ``waiting``, ``running``: ln(1 + jobs) / 4; ``queue_log``, ``running_log``: their means of
  ln(estimate), / 4, 0 where there are none.
* ``queued_work``, ``running_work``: ln(1 + seconds of the whole machine) / 8, by the estimates;
  ``next_end``: ln(1 + seconds until the next job is expected to end) / 8.
* ``recent_load``: ln of the work that arrives in a second lately over N, / 2.
* ``recent_deviation``: s of ln(estimate), / 2.
"""

LEAST_DEVIATION = 0.5
"""Of logarithms, so that jobs that are all alike are not told apart by their last digits."""

SIZE = len(JOB_FEATURES) + 1
"""Rows and columns of a scorer's weights: the features of jobs, or of the state, and a constant."""


@dataclass(frozen=True, eq=False)
class Scorer:
    """Gives each waiting job a score from its features and those of the machine; lower goes first.

    With x the features of a job and g those of the state, each with a 1 behind, the score is
    x' W g. Where only the last column and the last row of W are filled, that is linear: what a job
    looks like counts the same in any state. Else it is bilinear.

    After each start everything is looked at anew. Equal scores go by arrival.

    * ``strict``: the first job of the order starts if it fits, or nothing does.
    * ``skip``: the first of those that fit.
    * ``easy``: the first job of the order, as long as it fits; then it gets a reservation, and the
      first of those that do not delay it, by the estimates, starts.

    Attributes:
        weights: W, float64 ``(SIZE, SIZE)``, by `JOB_FEATURES` and `STATE_FEATURES`.
        mode: one of `MODES`.
    """

    weights: NDArray[np.float64]
    mode: str = "easy"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise unknown("mode of a scorer", self.mode, MODES)
        if self.weights.shape != (SIZE, SIZE):
            raise InputError(
                f"a scorer needs weights of shape ({SIZE}, {SIZE}), not {self.weights.shape}"
            )
        if not np.isfinite(self.weights).all():
            raise InputError("the weights of a scorer must be finite, but some are not")

    @property
    def is_bilinear(self) -> bool:
        """Whether what counts of a job depends on the state."""
        return bool(self.weights[:-1, :-1].any())

    @property
    def keeps_order(self) -> bool:
        """Whether no job is ever scored below one that is alike but has waited for longer."""
        stretch = self.weights[JOB_FEATURES.index("stretch")]
        return bool(stretch[-1] <= 0 and not stretch[:-1].any())

    @classmethod
    def linear(cls, mode: str = "easy", **weights: float) -> "Scorer":
        """A scorer by the names of its features; ``constant`` is the constant, others are 0.

        Raises:
            InputError: if there is no such feature.
        """
        filled = np.zeros((SIZE, SIZE))
        for name, weight in weights.items():
            filled[place(name)] = weight
        return cls(filled, mode)


def place(name: str) -> tuple[int, int]:
    """Row and column of the weight that a feature has by itself.

    Raises:
        InputError: if there is no such feature.
    """
    if name in JOB_FEATURES:
        return JOB_FEATURES.index(name), SIZE - 1
    if name in STATE_FEATURES:
        return SIZE - 1, STATE_FEATURES.index(name)
    if name == "constant":
        return SIZE - 1, SIZE - 1
    raise unknown("feature of a scorer", name, (*JOB_FEATURES, *STATE_FEATURES, "constant"))


def from_parts(
    job: NDArray[Any], state: NDArray[Any], cross: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Weights from those of jobs, of the state with its constant at last, and of both together.

    Without the last, the scorer is linear.
    """
    weights = np.zeros((SIZE, SIZE))
    weights[:-1, -1], weights[-1] = job, state
    if cross is not None:
        weights[:-1, :-1] = cross
    return weights
