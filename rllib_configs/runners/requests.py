"""What is asked of those who do units, and what they answer; needs neither PyTorch nor RLlib."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rllib_configs.runners.sums import Node, Part

Arrays = Mapping[str, NDArray[np.float32]]


class Unit(Protocol):
    """Work whose answer is the same wherever it is done."""

    @property
    def index(self) -> int:
        """Place of the unit in its iteration."""


@dataclass(frozen=True)
class Round:
    """What all units of a round have in common.

    Attributes:
        iteration: number that no other iteration of this process has; rows of others are forgotten.
        start: weights that units are played with, or `Errands`, or a reference to them in Ray's
            object store; None for somebody who has had them in this iteration.
        count: number of units, see `rllib_configs.runners.sums`.
        step: None: units are played. Else their part of an update is wanted, and those whose rows
            are not here are played first.
        parameters: at which gradients of a step are computed, or a reference to them in Ray's
            object store.
    """

    iteration: int
    start: Any
    count: int
    step: Any = None
    parameters: Any = None


@dataclass(frozen=True)
class Request:
    """A call: everything that its answer depends on.

    Attributes:
        units: what to do, by place in the round.
        round: what these units have in common with the others.
        team: numbers of the runners that are to share the units.
    """

    units: Mapping[int, Any]
    round: Round
    team: tuple[int, ...] = ()


@dataclass(frozen=True)
class Errand:
    """A piece of something else than learning that runners do in between, as validation.

    Attributes:
        index: place of the piece.
        piece: what `Errands` is to do.
    """

    index: int
    piece: Any


@dataclass(frozen=True, eq=False)
class Errands:
    """What stands in the place of weights where the units of a round are errands.

    Attributes:
        function: a pure function, of `shared` and a piece.
        shared: what all pieces need.
    """

    function: Callable[[Any, Any], Any]
    shared: Any

    def do(self, errand: Errand) -> Part:
        """What comes of a piece stands apart."""
        return Part(apart={errand.index: self.function(self.shared, errand.piece)})


@dataclass(frozen=True)
class Meeting:
    """Where somebody waits for a member who is to open a line; see `rllib_configs.runners.lines`.

    Attributes:
        host: address of the machine.
        port: where it listens.
        token: a secret, by which it knows the member.
        member: number of the member.
    """

    host: str
    port: int
    token: bytes = field(repr=False)
    member: int


@dataclass(frozen=True, eq=False)
class Answer:
    """What comes back.

    Attributes:
        parts: sums over the units, as far as they can be added up.
        seconds: time that it took; of several who shared the work, that of the slowest.
        unit_s: time that a unit took, likewise.
        error: traceback of a fault in the program, else None. An exception that left the runner
            would restart it instead of being shown.
        lost: runners that were lost meanwhile, where several shared the work.
    """

    parts: Mapping[Node, Part]
    seconds: float
    unit_s: float
    error: str | None = None
    lost: tuple[int, ...] = ()
