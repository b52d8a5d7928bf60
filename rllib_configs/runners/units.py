"""Units of work, what a runner is asked to do with them, and what it answers.

Needs neither PyTorch nor RLlib. All of it travels by Ray's own serializer, so units, arguments and
weights may hold whatever Ray can carry, functions of a user's own included.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rllib_configs.runners.sums import Node, Part

Arrays = Mapping[str, NDArray[np.float32]]


class Unit(Protocol):
    """Work whose result is the same wherever it is done."""

    @property
    def index(self) -> int:
        """Place of the unit in its iteration."""


class UnitWork(Protocol):
    """What an algorithm does with units; between iterations it keeps nothing that counts.

    What comes out depends on the arguments alone. One that can do several units at a time has a
    method ``expect`` beside, which takes those that are played next.
    """

    def set_weights(self, weights: Arrays) -> None:
        """Takes the weights that the units of an iteration are played with."""

    def play(self, unit: Any) -> tuple[Part, Any]:
        """Plays the episodes of a unit.

        Returns:
            The part of the round's sums that the driver gets, and the rows that stay here.
        """


class UpdateWork(UnitWork, Protocol):
    """Work of an algorithm whose iteration goes on with updates, a round for each."""

    def set_parameters(self, parameters: NDArray[np.float32]) -> None:
        """Takes the parameters that gradients are computed at, float32 ``(num_learned,)``.

        See `rllib_configs.learning.flat`; what is not learned is that of `set_weights`.
        """

    def gradient(self, rows: Any, step: Any) -> Part:
        """The unit's part of an update.

        Args:
            rows: what `play` kept.
            step: which update, and what it needs of the other units.
        """


class WeightsMissingError(RuntimeError):
    """A runner has started anew since it was given the weights of the iteration."""


@dataclass(frozen=True)
class FunctionUnit:
    """One call of the function of a `FunctionWork`."""

    index: int
    argument: Any  # what differs from call to call


@dataclass(frozen=True, eq=False)
class FunctionWork:
    """Calls of a function, as of a validation; it stands in the place of an iteration's weights."""

    function: Callable[[Any, Any], Any]  # a pure function, of `shared` and an argument
    shared: Any  # what all calls need

    def play(self, unit: FunctionUnit) -> tuple[Part, None]:
        """Calls the function; its result is not added up."""
        return Part(per_unit={unit.index: self.function(self.shared, unit.argument)}), None


@dataclass(frozen=True)
class Round:
    """What all units of a round have in common.

    Attributes:
        iteration: number of the iteration; rows of other iterations are forgotten.
        start: weights that units are played with, or a `FunctionWork`, or a reference to either in
            Ray's object store; None for a runner that has had it in this iteration.
        count: number of units, see `rllib_configs.runners.sums`.
        step: None: units are played. Else their part of an update is computed, and units whose
            rows are not here are played first.
        parameters: at which gradients of a step are computed, float32 ``(num_learned,)``, or a
            reference to them in Ray's object store.
    """

    iteration: int
    start: Any
    count: int
    step: Any = None
    parameters: Any = None


@dataclass(frozen=True)
class Request:
    """A call of a runner: everything that its answer depends on.

    Attributes:
        units: what to do, by place in the round.
        round: what these units have in common with the others.
    """

    units: Mapping[int, Any]
    round: Round


@dataclass(frozen=True, eq=False)
class Answer:
    """What a runner answers.

    Attributes:
        parts: sums over its units, as far as they can be added up.
        seconds: time that it took.
        error: traceback of a fault in the program, else None. An exception that left the runner
            would count as the loss of the runner, and never be shown.
    """

    parts: Mapping[Node, Part]
    seconds: float
    error: str | None = None
