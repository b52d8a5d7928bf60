"""What requests and answers look like on a line: few and plain objects, because an update is short.

To write and to read a dataclass takes as long as many an array, so what does not change from one
message to the next is written once.
"""

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_configs.runners.requests import Answer, Request, Round
from rllib_configs.runners.sums import Part

Message = tuple[Any, ...]


class RequestWriter:
    """Writes the requests of an iteration.

    Rounds and units are kept as bytes: all members get the same round, and a member mostly the
    units that it had in the round before.
    """

    def __init__(self) -> None:
        self._rounds: dict[bool, tuple[Round, bytes]] = {}  # with what it starts from, and without
        self._units: dict[tuple[int, ...], bytes] = {}

    def message(self, request: Request) -> Message:
        """What `RequestReader` reads."""
        given = request.round
        known = self._rounds.get(given.start is None)
        if known is None or known[0] is not given:
            plain = (given.iteration, given.start, given.count, given.step)
            known = self._rounds[given.start is None] = (given, pickle.dumps(plain, protocol=5))
        key = tuple(x for place, unit in request.units.items() for x in (place, unit.index))
        if key not in self._units:
            self._units[key] = pickle.dumps(request.units, protocol=5)
        return self._units[key], known[1], _sent(given.parameters), request.team


class RequestReader:
    """Reads what a `RequestWriter` has written."""

    def __init__(self) -> None:
        self._units: tuple[bytes, Mapping[int, Any]] = (b"", {})

    def request(self, message: Message) -> Request:
        """The request of a message."""
        units, plain, parameters, team = message
        if units != self._units[0]:
            self._units = (units, pickle.loads(units))
        iteration, start, count, step = pickle.loads(plain)
        given = Round(iteration, start, count, step, _received(parameters))
        return Request(self._units[1], given, team)


def answer_message(answer: Answer) -> Message:
    """What `read_answer` reads."""
    parts = [
        (*node, _sent(part.gradient), part.sums, part.apart) for node, part in answer.parts.items()
    ]
    return parts, answer.seconds, answer.unit_s, answer.error, answer.lost


def read_answer(message: Message) -> Answer:
    """The answer of a message."""
    parts, *rest = message
    found = {
        (level, place): Part(_received(gradient), sums, apart)
        for level, place, gradient, sums, apart in parts
    }
    return Answer(found, *rest)


def _sent(vector: NDArray[np.float32] | None) -> pickle.PickleBuffer | None:
    return None if vector is None else pickle.PickleBuffer(np.ascontiguousarray(vector).data)


def _received(data: Any) -> NDArray[np.float32] | None:
    return None if data is None else np.frombuffer(data, np.float32)
