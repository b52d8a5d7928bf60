"""What users say that their jobs will take: run times with errors."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import Registry
from cluster_env.workloads.tsafrir import draw_estimates

Seconds = NDArray[np.int64]

BELIEVED = ("estimate", "order_estimate", "reserve_estimate")
"""Attributes of jobs, in seconds: what the user asked for, at which jobs are killed; and what is
believed instead, of a job that waits (its order, whether it ends before a reservation), and of one
that runs (when others can have its units). Where one of these two is missing, the first holds."""

MOST = 2**31 - 1
"""Seconds; larger estimates are cut."""


@dataclass(frozen=True)
class EstimateModel:
    """Where estimates come from.

    Attributes:
        draw: estimates of run times, both in seconds, ``(num_jobs,)``, by a generator and the
            model's number.
        number: the model's number where nobody says another.
        least: the least that it may be; a model without a number has none.
    """

    draw: Callable[[np.random.Generator, Seconds, float], NDArray[np.float64] | Seconds]
    number: float = 0.0
    least: float | None = 0.0

    def __call__(self, rng: np.random.Generator, run: Seconds) -> Seconds:
        """Estimates of these run times, whole seconds, at least 1, int64 ``(num_jobs,)``."""
        drawn = np.ceil(self.draw(rng, run, self.number))
        return np.clip(drawn, 1, MOST).astype(np.int64)


def _normal(sign: int) -> Callable[[np.random.Generator, Seconds, float], NDArray[np.float64]]:
    """Run times plus normal errors: on both sides (0), above (1) or below (-1)."""

    def draw(rng: np.random.Generator, run: Seconds, share: float) -> NDArray[np.float64]:
        error: NDArray[np.float64] = rng.normal(0.0, share * run)
        return run + (sign * np.abs(error) if sign else error)

    return draw


ESTIMATES: Registry[EstimateModel] = Registry("kind of estimates")
"""Models by name. ``exact``: the run time. ``gaussian:0.5``: the run time plus a normal error with
half of it as the standard deviation (Cunha 2021, equation 2.6); ``over`` and ``under`` are its
one-sided variants. ``uniform:5``: one to five times the run time (the f-model of Feitelson and
Weil). ``tsafrir``: the few round times that people ask for (Tsafrir et al. 2005); a number is the
largest one allowed, in seconds."""

for _name, _model in {
    "exact": EstimateModel(lambda rng, run, number: run, least=None),
    "gaussian": EstimateModel(_normal(0), 0.5),
    "over": EstimateModel(_normal(1), 0.5),
    "under": EstimateModel(_normal(-1), 0.5),
    "uniform": EstimateModel(
        lambda rng, run, most: run * rng.uniform(1.0, most, run.size), 5.0, least=1.0
    ),
    "tsafrir": EstimateModel(lambda rng, run, largest: draw_estimates(rng, run, int(largest))),
}.items():
    ESTIMATES.register(_name)(_model)


def get_estimates(spec: str) -> EstimateModel:
    """The model of a name, or a name and its number: ``tsafrir``, ``gaussian:0.2``.

    Raises:
        InputError: if there is none of that name, or it cannot have that number.
    """
    name, colon, text = spec.partition(":")
    model = ESTIMATES.get(name)
    if not colon:
        return model
    try:
        number = float(text)
    except ValueError:
        number = float("nan")  # which is refused below, as any number out of range
    if model.least is None or not model.least <= number <= MOST:
        expected = "none" if model.least is None else f"one of {model.least:g} or more"
        raise InputError(
            f"a kind of estimates may have a number, as in gaussian:0.5; '{name}' takes "
            f"{expected}, but '{shortened(text)}' was given"
        )
    return EstimateModel(model.draw, number, model.least)
