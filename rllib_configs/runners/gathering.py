"""A round: units go to whoever is free, and their sums come back."""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import ray
from ray.exceptions import RayError

from rllib_configs.runners.crew import Crew
from rllib_configs.runners.lanes import Lanes
from rllib_configs.runners.lines import Line, Lines, answered
from rllib_configs.runners.patience import Patience
from rllib_configs.runners.requests import Answer, Errands, Request, Round
from rllib_configs.runners.sums import Node, Part, merged
from rllib_configs.runners.wire import RequestWriter, read_answer

logger = logging.getLogger(__name__)

INLINE_BYTES = 100_000
"""Parameters of fewer bytes go with each call; Ray's object store would take longer."""
STATION_UNITS = 4
"""Units for each of its runners that a station is given at once; it shares them out by itself."""
BOTH_S = 0.01
"""How long to wait for calls at a time while there are lines, too."""


class Gatherer:
    """Has the rounds of an iteration done by a crew.

    A member that dies takes nothing with it but time: its units go to the others, which play them
    again from the same weights, and everything comes out the same there. One that does not answer
    in time is replaced.

    Args:
        crew: who does the work.
        patience: how long a member may take.
        lines: to some of them; by default all are called by Ray.
    """

    def __init__(self, crew: Crew, patience: Patience, lines: Lines | None = None) -> None:
        self._crew, self._patience = crew, patience
        self._lines = Lines() if lines is None else lines
        if lines is not None and crew.size:
            lines.begin(crew)
        self._holder: dict[int, int] = {}  # of each unit's rows: a member that may be gone
        self._begun: set[int] = set()  # members that have the weights of the iteration
        self._store, self._writer = _Store(), RequestWriter()

    def do(self, request: Request, seen: Callable[[int], None] | None = None) -> Answer:
        """The sums of all units of a request; at the first fault in the program, that alone.

        Args:
            request: what is to be done.
            seen: told how many units are done, each time that somebody answers.
        """
        self._lines.admit()
        places = sorted(request.units)
        lanes, free = self._dealt(places, request)
        begun, ways = self._begun, (self._lines, self._store, self._writer)
        calls = _Calls(self._crew, request, self._patience, begun, *ways)
        parts: dict[Node, Part] = {}
        spent: dict[int, float] = defaultdict(float)
        unit_s, done = 0.0, 0
        while True:
            for member in dict.fromkeys(free):
                width = self._width(member)
                least = STATION_UNITS * width if width > 1 else 1
                if taken := lanes.take(member, least):
                    calls.send(member, taken)
            if not calls.waiting:
                break
            free = []
            for member, taken, answer in calls.wait(every=lanes.empty and seen is None):
                for lost in () if answer is None else answer.lost:
                    self._lines.drop(lost)
                    self._crew.lose(lost, hangs=False)
                if answer is None:
                    healthy = self._crew.healthy()
                    lanes.give_back(taken, member, healthy)
                    free += [other for other in healthy if not calls.has(other)]
                    continue
                if answer.error:
                    calls.give_up()
                    return answer
                self._patience.observe(answer)
                unit_s = max(unit_s, answer.unit_s)
                merged(answer.parts, request.round.count, parts)
                spent[member] += answer.seconds
                self._begun.add(member)
                for place in taken:
                    self._holder[request.units[place].index] = member
                free.append(member)
                done += len(taken)
                if seen is not None:
                    seen(done)
        if rest := lanes.rest():
            units = {place: request.units[place] for place in rest}
            answer = self._crew.do_here(Request(units, request.round))
            if answer.error:
                return answer
            self._patience.observe(answer)
            unit_s = max(unit_s, answer.unit_s)
            merged(answer.parts, request.round.count, parts)
            spent[0] = answer.seconds
        return Answer(parts, max(spent.values(), default=0.0), unit_s)

    def _dealt(self, places: list[int], request: Request) -> tuple[Lanes, list[int]]:
        """Who is to do what: at first even shares, later those who have the rows."""
        healthy = self._crew.healthy()
        if request.round.step is None:
            asked = healthy[: len(places)]
            return Lanes.even(places, {each: self._width(each) for each in asked}), asked
        lanes: dict[int, list[int]] = defaultdict(list)
        for place in places:
            holder = self._holder.get(request.units[place].index)
            if holder not in healthy and healthy:
                holder = min(healthy, key=lambda each: len(lanes[each]) / self._width(each))
            lanes[0 if holder is None else holder].append(place)
        return Lanes(lanes, fixed=True), [each for each in healthy if lanes.get(each)]

    def _width(self, member: int) -> int:
        return len(self._crew.team(member))


@dataclass(frozen=True)
class _Call:
    """What a member was asked for, and when nobody waits for it any longer."""

    member: int
    places: tuple[int, ...]
    deadline: float
    limit_s: float


class _Calls:
    """Calls of a round that have not come back.

    Args:
        crew: who is called.
        request: all that is to be done.
        patience: how long a call may take.
        begun: members that have the weights of the iteration, and are not sent them again.
        lines: to some of them.
        store: for what the others are sent.
        writer: of what goes on lines.
    """

    def __init__(
        self,
        crew: Crew,
        request: Request,
        patience: Patience,
        begun: Collection[int],
        lines: Lines,
        store: "_Store",
        writer: RequestWriter,
    ) -> None:
        self._crew, self._request, self._patience, self._begun = crew, request, patience, begun
        self._short = replace(request.round, start=None)
        self._lines, self._store, self._writer = lines, store, writer
        self.waiting: dict[Any, _Call] = {}  # by what the answer will come from

    def has(self, member: int) -> bool:
        """Whether a member is busy."""
        return any(call.member == member for call in self.waiting.values())

    def send(self, member: int, places: tuple[int, ...]) -> None:
        """Asks a member for some units."""
        units = {place: self._request.units[place] for place in places}
        team = self._crew.team(member)
        limit_s = self._patience.limit_s(len(places), len(team) if member < 0 else 0)
        call = _Call(member, places, perf_counter() + limit_s, limit_s)
        given = self._short if member in self._begun else self._request.round
        line = self._lines.get(member)
        if line is None:
            request = Request(units, self._store.put(given), team)
            self.waiting[self._crew.ask(member, request)] = call
            return
        self.waiting[line] = call
        with suppress(OSError):  # whoever waits for the answer will see that it is broken
            line.send(self._writer.message(Request(units, given, team)))

    def give_up(self) -> None:
        """Waits for nobody any longer; what comes on lines is not to be taken for later answers."""
        for call in self.waiting.values():
            self._lines.drop(call.member)

    def wait(self, *, every: bool) -> list[tuple[int, tuple[int, ...], Answer | None]]:
        """Waits for an answer, and takes those that are there.

        Args:
            every: whether to wait for all: there is nothing to do for whoever comes free.

        Returns:
            Of each its member, the units, and the answer; None if it was lost.
        """
        first = min(call.deadline for call in self.waiting.values())
        found = [self._received(reference) for reference in self._ready(first, every=every)]
        for reference, call in list(self.waiting.items()):
            if call.deadline <= perf_counter():
                del self.waiting[reference]
                self._say_that_it_hangs(call)
                self._lose(call.member, hangs=True)
                found.append((call.member, call.places, None))
        return found

    def _ready(self, deadline: float, *, every: bool) -> list[Any]:
        """Those in `waiting` whose answers are there; none at the deadline."""
        lines = [each for each in self.waiting if isinstance(each, Line)]
        calls = [each for each in self.waiting if not isinstance(each, Line)]
        number = len(calls)
        while True:
            left_s = max(0.0, deadline - perf_counter())
            if not calls:
                return answered(lines, left_s)
            if lines:  # and calls, after a station was lost: nothing waits for both
                left_s = min(left_s, BOTH_S)
            ready, _ = ray.wait(calls, num_returns=number if every else 1, timeout=left_s)
            if len(ready) == 1 and number > 1:
                ready, _ = ray.wait(calls, num_returns=number, timeout=0)
            found = [*ready, *answered(lines, 0.0)]
            if found or perf_counter() >= deadline:
                return found

    def _lose(self, member: int, *, hangs: bool) -> None:
        self._lines.drop(member)
        self._crew.lose(member, hangs=hangs)

    def _received(self, reference: Any) -> tuple[int, tuple[int, ...], Answer | None]:
        call = self.waiting.pop(reference)
        try:
            on_line = isinstance(reference, Line)
            answer = read_answer(reference.receive()) if on_line else ray.get(reference)
            return call.member, call.places, answer
        except (RayError, EOFError, OSError):
            name = self._crew.name(call.member)
            logger.warning("%s was lost; its units are done again", name)
            self._lose(call.member, hangs=False)
            return call.member, call.places, None

    def _say_that_it_hangs(self, call: _Call) -> None:
        given = self._request.round
        logger.warning(
            "%s has not answered for %.0f s (resources.runner_timeout_s): it was to %s %d of %d "
            "units; it is replaced, and they are done again",
            self._crew.name(call.member),
            call.limit_s,
            "play" if given.step is None else "compute the gradient of",
            len(call.places),
            given.count,
        )


class _Store:
    """Puts what is large into Ray's object store, once for all who are called."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, Any]] = {}  # values, and references to them

    def put(self, given: Round) -> Round:
        """A round with references."""
        found = {"start": isinstance(given.start, Mapping | Errands)}
        found["parameters"] = getattr(given.parameters, "nbytes", 0) > INLINE_BYTES
        large = {name: getattr(given, name) for name, is_large in found.items() if is_large}
        for name, value in large.items():
            if self._known.get(name, (None,))[0] is not value:
                self._known[name] = (value, ray.put(value))
        return replace(given, **{name: self._known[name][1] for name in large})
