"""An iteration as the driver sees it: its units are played, then any number of steps learn."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_configs.runners.crew import Crew
from rllib_configs.runners.gathering import Gatherer
from rllib_configs.runners.lines import Lines
from rllib_configs.runners.patience import Patience
from rllib_configs.runners.requests import Arrays, Errands, Request, Round, Unit
from rllib_configs.runners.sums import Part, total

logger = logging.getLogger(__name__)

_iterations = count()


@dataclass(frozen=True, eq=False)
class Gathered:
    """The answers of a round.

    Attributes:
        part: sum over all units.
        runner_s: longest time that a runner was at it, in seconds.
    """

    part: Part
    runner_s: float


class Iteration:
    """The rounds of an iteration; see `Gatherer`. Without any runner, the driver does the work.

    Args:
        crew: who does the work.
        units: of the iteration.
        start: weights, that units are played with, or what `Errands` are to do.
        patience: how long a runner may take.
        lines: to some of the crew; by default there are none.
    """

    def __init__(
        self,
        crew: Crew,
        units: Sequence[Unit],
        start: Arrays | Errands,
        patience: Patience,
        lines: Lines | None = None,
    ) -> None:
        self._gatherer, self._units = Gatherer(crew, patience, lines), list(units)
        self._number = next(_iterations)
        self._start: Arrays | Errands = start
        if not isinstance(start, Errands):  # a copy, because learning changes the module
            self._start = {name: np.array(value) for name, value in start.items()}

    def play(self, seen: Callable[[int], None] | None = None) -> Gathered:
        """Has all units played.

        Args:
            seen: told how many are done, each time that somebody answers.

        Raises:
            RuntimeError: if the work itself is at fault.
        """
        given = Round(self._number, self._start, len(self._units))
        return self._gather(self._units, given, seen)

    def step(
        self, step: Any, parameters: NDArray[np.float32], indices: Sequence[int] | None = None
    ) -> Gathered:
        """Has units say their part of an update, each where its rows are.

        Args:
            step: which update; see `rllib_configs.runners.units.UnitWork`.
            parameters: at which gradients are computed, float32 ``(num_learned,)``.
            indices: of the units that are asked, by default all.

        Raises:
            RuntimeError: if the work itself is at fault.
        """
        wanted = None if indices is None else set(indices)
        units = [unit for unit in self._units if wanted is None or unit.index in wanted]
        return self._gather(units, Round(self._number, self._start, len(units), step, parameters))

    def _gather(
        self, units: Sequence[Unit], given: Round, seen: Callable[[int], None] | None = None
    ) -> Gathered:
        answer = self._gatherer.do(Request(dict(enumerate(units)), given), seen)
        if answer.error:
            raise RuntimeError(f"an env runner failed:\n{answer.error}")
        return Gathered(total(answer.parts, given.count), answer.seconds)
