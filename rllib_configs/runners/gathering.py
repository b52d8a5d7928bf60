"""Rounds of an iteration: units go to whoever is free, and their sum comes back."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import RayError

from rllib_configs.runners.crew import Crew
from rllib_configs.runners.lanes import Lanes
from rllib_configs.runners.sums import Node, Part, merged, total
from rllib_configs.runners.units import Answer, Arrays, Request, Round, Unit

logger = logging.getLogger(__name__)

INLINE_BYTES = 100_000
"""Parameters of fewer bytes go with each call; Ray's object store would take longer."""

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


class Patience:
    """How long a runner may take, by what units have taken so far.

    Args:
        timeout_s: a fixed limit in seconds; 0 derives one.
    """

    FACTOR = 10.0
    LEAST_S = 120.0  # a machine may be busy with something else
    FIRST_S = 600.0  # before the first answer; a runner may have to compile

    def __init__(self, timeout_s: float = 0.0) -> None:
        self._timeout_s = timeout_s
        self._unit_s = 0.0

    def observe(self, answer: Answer) -> None:
        """Learns from an answer."""
        self._unit_s = max(self._unit_s, answer.seconds / max(1, answer.num_units))

    def limit_s(self, num_units: int) -> float:
        """Seconds after which nobody waits any longer for so many units."""
        if self._timeout_s:
            return self._timeout_s
        if not self._unit_s:
            return self.FIRST_S
        return max(self.LEAST_S, self.FACTOR * self._unit_s * num_units)


class Iteration:
    """The rounds of an iteration: its units are played, then any number of steps learn from them.

    A runner that dies takes nothing with it but time: its units go to the others, which play them
    again from the same weights, and everything comes out the same there. One that does not answer
    in time is replaced. Without any runner left, the driver does the work.

    Args:
        crew: who does the work.
        units: of the iteration.
        weights: state of the module, that units are played with.
        patience: how long a runner may take.
    """

    def __init__(
        self, crew: Crew, units: Sequence[Unit], weights: Arrays, patience: Patience
    ) -> None:
        self._crew, self._units, self._patience = crew, list(units), patience
        self._number = next(_iterations)
        self._start = ray.put(dict(weights)) if crew.size else weights
        self._holder: dict[int, int] = {}  # of each unit's rows: a runner that may be gone

    def play(self) -> Gathered:
        """Has all units played.

        Raises:
            RuntimeError: if the work itself is at fault.
        """
        units = self._units
        runners = self._crew.healthy()[: len(units)]
        given = Round(self._number, self._start, len(units))
        return self._gather(units, given, Lanes.even(len(units), runners or [-1]), runners)

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
        large = self._crew.size and parameters.nbytes > INLINE_BYTES
        sent = ray.put(parameters) if large else parameters
        given = Round(self._number, self._start, len(units), step, sent)
        lanes: dict[int, list[int]] = defaultdict(list)
        healthy = self._crew.healthy()
        for place, unit in enumerate(units):
            holder = self._holder.get(unit.index)
            if holder not in healthy and healthy:
                holder = min(healthy, key=lambda runner: len(lanes[runner]))
            lanes[-1 if holder is None else holder].append(place)
        asked = [runner for runner in healthy if lanes.get(runner)]
        return self._gather(units, given, Lanes(lanes, fixed=True), asked)

    def _gather(
        self, units: Sequence[Unit], given: Round, lanes: Lanes, runners: Sequence[int]
    ) -> Gathered:
        calls = _Calls(self._crew, units, given, self._patience)
        parts: dict[Node, Part] = {}
        spent: dict[int, float] = defaultdict(float)
        free = list(runners)
        while True:
            for runner in dict.fromkeys(free):
                if places := lanes.take(runner):
                    calls.send(runner, places)
            if not calls.waiting:
                break
            free = []
            for runner, places, answer in calls.wait():
                if answer is None:
                    healthy = self._crew.healthy()
                    lanes.give_back(places, runner, healthy)
                    free += [other for other in healthy if not calls.has(other)]
                    continue
                self._check(answer)
                parts = merged({**parts, **answer.parts}, given.count)
                spent[runner] += answer.seconds
                for place in places:
                    self._holder[units[place].index] = runner
                free.append(runner)
        if rest := lanes.rest():
            if self._crew.size:
                logger.warning("no env runner is left: %d units are done here", len(rest))
            answer = self._crew.do_here(Request({place: units[place] for place in rest}, given))
            self._check(answer)
            parts = {**parts, **answer.parts}
            spent[-1] = answer.seconds
        return Gathered(total(parts, given.count), max(spent.values(), default=0.0))

    def _check(self, answer: Answer) -> None:
        if answer.error:
            raise RuntimeError(f"an env runner failed:\n{answer.error}")
        self._patience.observe(answer)


@dataclass(frozen=True)
class _Call:
    """What a runner was asked for, and when nobody waits for it any longer."""

    runner: int
    places: tuple[int, ...]
    deadline: float
    limit_s: float


class _Calls:
    """Calls of a round that have not come back."""

    def __init__(self, crew: Crew, units: Sequence[Unit], given: Round, patience: Patience) -> None:
        self._crew, self._units, self._given, self._patience = crew, units, given, patience
        self.waiting: dict[ray.ObjectRef[Answer], _Call] = {}

    def has(self, runner: int) -> bool:
        """Whether a runner is busy."""
        return any(call.runner == runner for call in self.waiting.values())

    def send(self, runner: int, places: tuple[int, ...]) -> None:
        """Asks a runner for some units."""
        request = Request({place: self._units[place] for place in places}, self._given)
        limit_s = self._patience.limit_s(len(places))
        call = _Call(runner, places, perf_counter() + limit_s, limit_s)
        self.waiting[self._crew.ask(runner, request)] = call

    def wait(self) -> list[tuple[int, tuple[int, ...], Answer | None]]:
        """Waits for at least one: its runner, the units, and the answer; None if it was lost."""
        first = min(call.deadline for call in self.waiting.values())
        references = list(self.waiting)
        left_s = max(0.0, first - perf_counter())
        ready, _ = ray.wait(references, num_returns=1, timeout=left_s)
        if ready and len(references) > 1:
            ready, _ = ray.wait(references, num_returns=len(references), timeout=0)
        found = [self._received(reference) for reference in ready]
        for reference, call in list(self.waiting.items()):
            if call.deadline <= perf_counter():
                del self.waiting[reference]
                self._say_that_it_hangs(call)
                self._crew.lose(call.runner, hangs=True)
                found.append((call.runner, call.places, None))
        return found

    def _received(self, reference: Any) -> tuple[int, tuple[int, ...], Answer | None]:
        call = self.waiting.pop(reference)
        try:
            return call.runner, call.places, ray.get(reference)
        except RayError:
            logger.warning("env runner %d was lost; its units are done again", call.runner)
            self._crew.lose(call.runner, hangs=False)
            return call.runner, call.places, None

    def _say_that_it_hangs(self, call: _Call) -> None:
        logger.warning(
            "env runner %d has not answered for %.0f s (resources.runner_timeout_s): it was to %s "
            "%d of %d units; it is replaced, and they are done again",
            call.runner,
            call.limit_s,
            "play" if self._given.step is None else "compute the gradient of",
            len(call.places),
            self._given.count,
        )
