"""What environments of a world promise beyond what all do, for the checker of environments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.schedule import Schedule


class CheckError(AssertionError):
    """An environment breaks a promise; the message says which, and when."""


def require(promise: bool, message: str) -> None:
    """Raises unless a promise is kept.

    Raises:
        CheckError: with the message.
    """
    if not promise:
        raise CheckError(message)


@dataclass(frozen=True)
class Moment:
    """What is known between two decisions.

    Attributes:
        mask: int8 ``(num_actions,)``.
        time: the clock.
        schedule: of the jobs that have arrived.
        terminated: whether the episode ended by itself.
        truncated: whether it was cut.
    """

    mask: NDArray[np.int8]
    time: int
    schedule: Schedule
    terminated: bool = False
    truncated: bool = False

    @property
    def num_placed(self) -> int:
        """Number of jobs that have a start."""
        return int((self.schedule.start >= 0).sum())


@dataclass(frozen=True)
class Promises:
    """What a world promises.

    Attributes:
        step: raises `CheckError` where a step breaks a rule; called with the environment, the
            moments before and after it, the action, the reward, and words that say where.
        complete_until: clock up to which an episode that ended must have finished all jobs, from
            the world; None where jobs may be left.
        return_holds: whether the return of an episode that finishes all jobs is what the schedule
            is worth under the objective, from the world.
    """

    step: Callable[..., None] = lambda *step: None
    complete_until: Callable[[Any], int | None] = lambda world: None
    return_holds: Callable[[Any], bool] = lambda world: True
