"""The rounds of an iteration by plain calls of Ray: units go to free runners, and sums come back.

A runner that dies takes nothing with it but time: its units are played again elsewhere from the
same weights, and come to the same numbers. One that does not answer in time is replaced.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import RayError, RaySystemError, RayTaskError

from rllib_configs.runners.sums import Node, Part, merged, total
from rllib_configs.runners.units import (
    Answer,
    Arrays,
    FunctionWork,
    Request,
    Round,
    Unit,
    WeightsMissingError,
)

logger = logging.getLogger(__name__)

INLINE_BYTES = 100_000
"""Arrays of fewer bytes go with each call; Ray's object store would take longer."""

FAULTS = (RayTaskError, RaySystemError)
"""Errors of the program, which a call elsewhere would meet again; others lose a runner."""

_HANDLES = "handles"


class Timeouts:
    """How long a call may take, from what units have taken so far.

    Args:
        timeout_s: a fixed limit in seconds; 0 derives one.
    """

    FACTOR = 10.0
    MINIMUM_S = 120.0  # a machine may be busy with something else
    FIRST_S = 600.0  # before the first answer; a runner may have to compile

    def __init__(self, timeout_s: float = 0.0) -> None:
        self._timeout_s = timeout_s
        self._unit_s = 0.0

    def observe(self, seconds: float, num_units: int) -> None:
        """Takes in how long some units took together."""
        self._unit_s = max(self._unit_s, seconds / max(1, num_units))

    def limit_s(self, num_units: int) -> float:
        """Seconds after which a call for so many units is given up."""
        if self._timeout_s:
            return self._timeout_s
        if not self._unit_s:
            return self.FIRST_S
        return max(self.MINIMUM_S, self.FACTOR * self._unit_s * num_units)


class Runners:
    """The env runners of an RLlib algorithm: which there are, and calls of them.

    RLlib's own calls wait for all runners of its group, and for ever where one hangs. So the group
    is asked for the runners' handles alone, with a limit, and no other call of it waits.

    Args:
        group: RLlib's; it has a local runner, and none beside it so far.
        num_runners: how many to start. The driver does the work where there are none.
        timeout_s: seconds without an answer after which a runner is replaced; 0 derives them.

    Attributes:
        iterations: numbers for iterations, each used once.
        timeouts: of units.
        function_timeouts: of calls of functions, which take other times than units.
        num_restarts: how often a lost runner came back.
        maximum: runners that are called at most, for measurements; None: all.
    """

    START_S = 180.0  # that all may take to start; one that takes longer comes in later

    def __init__(self, group: Any, num_runners: int, timeout_s: float = 0.0) -> None:
        self.iterations = count()
        self.timeouts, self.function_timeouts = Timeouts(timeout_s), Timeouts()
        self.num_restarts = 0
        self.maximum: int | None = None
        self._group = group
        self._handles: dict[int, Any] = {}
        self._pings: dict[int, tuple[Any, float]] = {}  # of lost runners, with a deadline each
        if num_runners:
            # Not by RLlib's config: it would wait for their spaces without a limit.
            group.add_workers(num_runners)
            self._take_handles(self.START_S)
            if missing := num_runners - len(self._handles):
                logger.warning(
                    "%d of %d env runners have not started within %.0f s; others do their work "
                    "until they have",
                    *(missing, num_runners, self.START_S),
                )

    def available(self) -> list[int]:
        """Numbers of the runners that can be called, from 1."""
        runners = [each for each in self._handles if each not in self._pings]
        return runners[: self.maximum]

    def call(self, runner: int, request: Request) -> Any:
        """Sends a request to a runner, and returns a reference to its `Answer`."""
        return self._handles[runner].answer.remote(request)

    def run_locally(self, request: Request) -> Answer:
        """Has the driver do what no runner is left for."""
        return self._group.local_env_runner.answer(request)

    def lose(self, runner: int, *, hangs: bool) -> None:
        """Calls a runner no more until it answers again; Ray starts its process anew.

        Args:
            runner: which.
            hangs: whether its process is still there, and is to be ended.
        """
        if hangs:
            ray.kill(self._handles[runner], no_restart=False)
        deadline = perf_counter() + Timeouts.FIRST_S
        self._pings[runner] = self._handles[runner].ping.remote(), deadline

    def restore(self) -> list[int]:
        """Takes back runners that have started again, without waiting for any; returns which."""
        self._take_handles(0.0)
        restored = []
        for runner, (ping, deadline) in list(self._pings.items()):
            if not ray.wait([ping], timeout=0)[0]:
                if deadline < perf_counter():  # it hangs in its start
                    self.lose(runner, hangs=True)
                continue
            del self._pings[runner]
            try:
                ray.get(ping)
            except RayError:
                self.lose(runner, hangs=False)
                continue
            restored.append(runner)
        self.num_restarts += len(restored)
        return restored

    def stop(self) -> None:
        """Ends all runners, whatever they are at; none of them holds anything to be released."""
        self._group.reset([])
        self._handles.clear()
        self._pings.clear()

    def _take_handles(self, timeout_s: float) -> None:
        """Takes the handles of runners that have started since."""
        if len(self._handles) == self._group.num_remote_env_runners():
            return
        if not self._group.num_in_flight_async_reqs(_HANDLES):  # none was asked, or has died since
            self._group.foreach_env_runner_async(
                lambda runner: ray.get_runtime_context().current_actor,
                tag=_HANDLES,
                healthy_only=False,
            )
        started = self._group.fetch_ready_async_reqs(tags=_HANDLES, timeout_seconds=timeout_s)
        self._handles = dict(sorted({**self._handles, **dict(started)}.items()))


@dataclass(frozen=True, eq=False)
class Gathered:
    """What a round has come to."""

    part: Part  # sum over all units
    runner_s: float  # longest time that a runner was at it, in seconds


@dataclass(frozen=True)
class _Call:
    """A call of a runner that has not come back."""

    runner: int
    places: tuple[int, ...]  # of the units that it is to do
    limit_s: float
    deadline: float  # by `perf_counter`


class Iteration:
    """An iteration as the driver sees it: its units are played, then any number of steps learn.

    Args:
        runners: who does the work; the driver, where none is available.
        units: of the iteration.
        start: weights that units are played with, or the function that they are arguments of.
    """

    def __init__(
        self, runners: Runners, units: Sequence[Unit], start: Arrays | FunctionWork
    ) -> None:
        self._runners, self._units = runners, list(units)
        self._number = next(runners.iterations)
        self._start: Any = start
        if isinstance(start, FunctionWork):
            self._timeouts, is_small = runners.function_timeouts, False
        else:  # a copy, because learning changes the module
            self._start = {name: np.array(value) for name, value in start.items()}
            self._timeouts = runners.timeouts
            is_small = sum(each.nbytes for each in self._start.values()) < INLINE_BYTES
        remote = not is_small and bool(runners.available())
        self._sent_start = ray.put(self._start) if remote else self._start
        self._has_start: set[int] = set()  # runners that are not sent it again
        self._holders: dict[int, int] = {}  # of units' rows, by index; may be lost since

    def play(self, on_progress: Callable[[int], None] | None = None) -> Gathered:
        """Has all units played.

        Args:
            on_progress: called with the number of units that are done, after each answer.

        Raises:
            RuntimeError: if the work itself is at fault.
        """
        given = Round(self._number, None, len(self._units))
        return self._gather(self._units, given, on_progress)

    def step(
        self, step: Any, parameters: NDArray[np.float32], indices: Sequence[int] | None = None
    ) -> Gathered:
        """Has units compute their part of an update, each where its rows are.

        Args:
            step: which update; see `rllib_configs.runners.units.UpdateWork`.
            parameters: at which gradients are computed, float32 ``(num_learned,)``.
            indices: of the units that are asked, by default all.

        Raises:
            RuntimeError: if the work itself is at fault.
        """
        chosen = None if indices is None else set(indices)
        units = [unit for unit in self._units if chosen is None or unit.index in chosen]
        is_small = parameters.nbytes < INLINE_BYTES or not self._runners.available()
        sent = parameters if is_small else ray.put(parameters)
        return self._gather(units, Round(self._number, None, len(units), step, sent))

    def _gather(
        self,
        units: Sequence[Unit],
        given: Round,
        on_progress: Callable[[int], None] | None = None,
    ) -> Gathered:
        """Hands units out, one call at a time for each runner, and adds up what comes back."""
        parts: dict[Node, Part] = {}
        spent: dict[int, float] = defaultdict(float)
        num_done = 0

        def request(places: Sequence[int], start: Any) -> Request:
            return Request({place: units[place] for place in places}, replace(given, start=start))

        def take(answer: Answer, runner: int, places: Sequence[int]) -> None:
            nonlocal num_done
            if answer.error:
                raise RuntimeError(f"an env runner failed:\n{answer.error}")
            merged(answer.parts, given.count, parts)
            self._timeouts.observe(answer.seconds, len(places))
            self._has_start.add(runner)
            self._holders.update((units[place].index, runner) for place in places)
            spent[runner] += answer.seconds
            num_done += len(places)
            if on_progress is not None:
                on_progress(num_done)

        idle = self._runners.available()
        queue = self._queue(units, given, idle)
        calls: dict[Any, _Call] = {}  # by the reference of the answer
        while True:
            for runner in idle:
                if places := queue.take(runner):
                    start = None if runner in self._has_start else self._sent_start
                    reference = self._runners.call(runner, request(places, start))
                    limit_s = self._timeouts.limit_s(len(places))
                    calls[reference] = _Call(runner, places, limit_s, perf_counter() + limit_s)
            if not calls:
                break
            idle = []
            for call, answer in _ended(calls, every=queue.is_empty and on_progress is None):
                if answer is not None:
                    take(answer, call.runner, call.places)
                    continue
                self._lose(call, given)
                queue.give_back(call.places, call.runner, self._runners.available())
            busy = {call.runner for call in calls.values()}
            idle = [each for each in self._runners.available() if each not in busy]
        if rest := queue.take_all():  # no runner is left, or there was none
            take(self._runners.run_locally(request(rest, self._start)), 0, rest)
        return Gathered(total(parts, given.count), max(spent.values(), default=0.0))

    def _queue(self, units: Sequence[Unit], given: Round, runners: Sequence[int]) -> "_Queue":
        """Who does what: at first even runs of neighbors, later whoever has a unit's rows."""
        lanes: dict[int, list[int]] = {runner: [] for runner in runners or [0]}
        if given.step is None:
            sharing = list(lanes)[: len(units)]
            for k, runner in enumerate(sharing):
                first, last = (len(units) * each // len(sharing) for each in (k, k + 1))
                lanes[runner] = list(range(first, last))
            return _Queue(lanes, fixed=False)
        for place, unit in enumerate(units):
            holder = self._holders.get(unit.index)
            if holder not in lanes:
                holder = min(lanes, key=lambda each: len(lanes[each]))
            lanes[holder].append(place)
        return _Queue(lanes, fixed=True)

    def _lose(self, call: _Call, given: Round) -> None:
        hangs, what = call.deadline <= perf_counter(), "was lost; its units"
        if hangs:
            work = "play" if given.step is None else "compute the gradient of"
            what = (
                f"has not answered for {call.limit_s:.0f} s (resources.runner_timeout_s): it was "
                f"to {work} {len(call.places)} of {given.count} units; it is replaced, and they"
            )
        logger.warning("env runner %d %s are done again", call.runner, what)
        self._runners.lose(call.runner, hangs=hangs)


def _ended(calls: dict[Any, _Call], *, every: bool) -> list[tuple[_Call, Answer | None]]:
    """Waits until calls have ended, and takes them out.

    Args:
        calls: by the reference of the answer.
        every: whether to wait for all, as nothing is left for a runner that comes free.

    Returns:
        Each call that has ended, with its answer; None where the runner was lost, or is late.

    Raises:
        RuntimeError: if a request cannot be read where it arrives.
    """
    left_s = max(0.0, min(call.deadline for call in calls.values()) - perf_counter())
    ready, _ = ray.wait(list(calls), num_returns=len(calls) if every else 1, timeout=left_s)
    if len(ready) < len(calls):  # and whoever else has answered by now
        ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
    ended: list[tuple[_Call, Answer | None]] = []
    for reference in ready:
        call = calls.pop(reference)
        try:
            ended.append((call, ray.get(reference)))
        except RayError as error:
            if isinstance(error, FAULTS) and not isinstance(error, WeightsMissingError):
                raise RuntimeError(f"an env runner failed:\n{error}") from None
            ended.append((call, None))
    now = perf_counter()
    late = [reference for reference, call in calls.items() if call.deadline <= now]
    return ended + [(calls.pop(reference), None) for reference in late]


class _Queue:
    """Places of units that no runner has been given, in a lane for each runner.

    A runner takes half of what is left of its own lane at a time, two at least, so that the last
    pieces are small, and then half of the longest. So what it does stays in few runs of neighbors,
    whose sums travel as one. One that is alone takes all.

    Args:
        lanes: places by runner.
        fixed: whether a lane is taken whole, and by its own runner alone.
    """

    def __init__(self, lanes: dict[int, list[int]], *, fixed: bool) -> None:
        self._lanes, self._fixed = lanes, fixed or len(lanes) == 1

    @property
    def is_empty(self) -> bool:
        """Whether all has been taken."""
        return not any(self._lanes.values())

    def take(self, runner: int) -> tuple[int, ...]:
        """What a runner is to do next; nothing if nothing is left for it."""
        own = self._lanes.get(runner, [])
        lane = own if own or self._fixed else max(self._lanes.values(), key=len, default=[])
        number = len(lane) if self._fixed else -(-len(lane) // 2)
        if lane is own:
            number = min(len(lane), max(number, 2))
        first = 0 if lane is own else len(lane) - number  # of another's, from its back
        taken = lane[first : first + number]
        del lane[first : first + number]
        return tuple(taken)

    def give_back(self, places: Sequence[int], lost: int, runners: Sequence[int]) -> None:
        """Spreads what a lost runner was to do over the others; without any, its lane keeps it."""
        for place in [*places, *self._lanes.pop(lost, [])]:
            lane = min(runners, key=lambda each: len(self._lanes.get(each, [])), default=lost)
            self._lanes.setdefault(lane, []).append(place)

    def take_all(self) -> tuple[int, ...]:
        """Takes all that is left, in order."""
        rest = sorted(place for lane in self._lanes.values() for place in lane)
        self._lanes.clear()
        return tuple(rest)
