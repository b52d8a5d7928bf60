"""What a metric is, and the values of a schedule that the costs of an episode are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.schedule import Schedule

Values = Callable[[Schedule], NDArray[np.float64]]
Selection = Callable[[Schedule], NDArray[np.bool_]]


@dataclass(frozen=True)
class Metric:
    """Something that is measured.

    Attributes:
        name: what tables, CSV files and trackers call it.
        label: what figures call it.
        per: whether there is one value for each job or for each episode.
        values: the values, float64 ``(num_jobs,)`` or ``(num_episodes,)``.
        counts: which of them belong to the mean, bool of the same shape; all if unset.
        higher_is_better: whether a larger mean is better.
    """

    name: str
    label: str
    per: Literal["job", "episode"]
    values: Values
    counts: Selection | None = None
    higher_is_better: bool = False

    def rank(self, value: float) -> float:
        """A number that is smaller for a better mean; NaN comes last."""
        if np.isnan(value):
            return float("inf")
        return -value if self.higher_is_better else value


def makespan(schedule: Schedule) -> NDArray[np.float64]:
    """Time step of the last finish, float64 ``(num_episodes,)``.

    An episode with unfinished jobs counts with its end, which is a lower bound; one without jobs
    with 0.
    """
    until = np.where(schedule.finished, schedule.finish, schedule.end[schedule.episode])
    last = np.zeros(schedule.num_episodes, np.int64)
    np.maximum.at(last, schedule.episode, until)
    return last.astype(np.float64)


def utilization(schedule: Schedule) -> NDArray[np.float64]:
    """Share of the cluster in use inside the arrival window, mean over resources.

    Over an episode that finishes all jobs the whole use is a constant, so that only the window
    tells policies apart; float64 ``(num_episodes,)``.
    """
    return utilization_until(schedule, schedule.window).mean(axis=1)


def utilization_to_end(schedule: Schedule) -> NDArray[np.float64]:
    """Share of the cluster in use up to the last finish, mean over resources.

    float64 ``(num_episodes,)``.
    """
    last = np.maximum(makespan(schedule), 1).astype(np.int64)
    return utilization_until(schedule, last).mean(axis=1)


def utilization_until(schedule: Schedule, until: NDArray[Any]) -> NDArray[np.float64]:
    """Share of each resource in use from time 0 on, float64 ``(num_episodes, num_resources)``.

    ``until`` is where the measurement of each episode ends, integers ``(num_episodes,)``, above 0.
    """
    pieces = schedule.pieces
    if pieces is None:
        episode, begin, units = schedule.episode, schedule.start, schedule.demand
        end, started = schedule.start + schedule.duration, schedule.start >= 0
    else:
        episode, begin, units = schedule.episode[pieces.job], pieces.begin, pieces.units
        end, started = pieces.end, np.ones(pieces.job.size, np.bool_)
    # How long each held its units, inside what is measured and before its episode ended.
    stop = np.minimum(end, np.minimum(until, schedule.end)[episode])
    steps = np.where(started, np.maximum(stop - begin, 0), 0)
    share = units / schedule.capacity
    used = [
        np.bincount(episode, steps * column, minlength=schedule.num_episodes) for column in share.T
    ]
    return np.stack(used, axis=1) / np.asarray(until)[:, None]
