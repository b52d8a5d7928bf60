"""A station on each machine: the driver calls it once, and it has its neighbors do the work.

What a call costs the driver then counts for each machine, not for each runner, and sums are made
where the gradients are. They have their shape from the units, so that no bit depends on it.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rllib_configs.runners.crew import Crew, RunnerGroup
from rllib_configs.runners.gathering import Gatherer
from rllib_configs.runners.lines import Lines, answer_in_thread
from rllib_configs.runners.patience import Patience
from rllib_configs.runners.requests import Answer, Meeting, Request

logger = logging.getLogger(__name__)

FEW = 4
"""Runners on the driver's own machine that it calls itself; so few, a station would only delay."""
ATTEMPTS = 3
"""Times that a station of a machine is started; then its runners are called one by one."""


class Neighbors:
    """The runners of a machine; see `Crew`.

    Args:
        runners: all of them by number, as Ray's actors.
    """

    def __init__(self, runners: Mapping[int, Any]) -> None:
        self._runners = runners
        self._healthy: list[int] = []
        self.lost: list[int] = []

    @property
    def size(self) -> int:
        """See `Crew`."""
        return len(self._runners)

    def begin(self, healthy: Sequence[int]) -> None:
        """Begins a round with some of them."""
        self._healthy, self.lost = list(healthy), []

    def healthy(self) -> list[int]:
        """See `Crew`."""
        return list(self._healthy)

    def team(self, member: int) -> tuple[int, ...]:
        """See `Crew`."""
        return (member,)

    def name(self, member: int) -> str:
        """See `Crew`."""
        return f"env runner {member}"

    def ask(self, member: int, request: Request) -> "ray.ObjectRef[Answer]":
        """See `Crew`."""
        reference: ray.ObjectRef[Answer] = self._runners[member].sample.remote(request=request)
        return reference

    def serve(self, member: int, meeting: Meeting) -> "ray.ObjectRef[None]":
        """See `Crew`."""
        reference: ray.ObjectRef[None] = self._runners[member].serve.remote(meeting)
        return reference

    def lose(self, member: int, *, hangs: bool) -> None:
        """See `Crew`; the driver hears of it with the answer."""
        if hangs:
            ray.kill(self._runners[member], no_restart=False)
        self._healthy.remove(member)
        self.lost.append(member)

    def do_here(self, request: Request) -> Answer:
        """Does nothing: whoever asked has to see to it.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("no runner of this machine is left")


class Station:
    """An actor that gathers what the runners of its machine answer.

    Args:
        runners: by number.
        timeout_s: see `Patience`.
    """

    def __init__(self, runners: Mapping[int, Any], timeout_s: float) -> None:
        self._neighbors = Neighbors(runners)
        self._patience, self._lines = Patience(timeout_s), Lines()
        self._gatherer: Gatherer
        self._iteration: int | None = None  # of the gatherer
        self._start: Any = None
        self._busy = Lock()

    def ready(self) -> None:
        """Answers once it has started."""

    def work(self, request: Request) -> Answer:
        """Has its runners do the units of a request.

        Args:
            request: as runners get it, with the team of those that there are.

        Raises:
            RuntimeError: if none of them is left.
        """
        with self._busy:
            given = request.round
            self._neighbors.begin(request.team)
            if given.iteration != self._iteration:
                self._gatherer = Gatherer(self._neighbors, self._patience, self._lines)
                self._iteration, self._start = given.iteration, given.start
            request = Request(request.units, replace(given, start=self._start))
            return replace(self._gatherer.do(request), lost=tuple(self._neighbors.lost))

    def serve(self, meeting: Meeting) -> None:
        """Opens a line to the driver, and does the requests that come on it, in a thread."""
        answer_in_thread(meeting, self.work)


@dataclass(frozen=True)
class Stationed:
    """A station that has started.

    Attributes:
        actor: see `Station`.
        address: of its machine.
        runners: their numbers.
    """

    actor: Any
    address: str
    runners: tuple[int, ...]


class StationCrew:
    """Stations, and the runners that have none, during one iteration; see `Crew`.

    Args:
        runners: all of them, with stations and without.
        stations: by number, from -1 down.
    """

    def __init__(self, runners: Crew, stations: Mapping[int, Stationed]) -> None:
        self._runners = runners
        self._stations = dict(stations)
        self._alive = dict.fromkeys(runners.healthy())  # a set that keeps its order

    @property
    def size(self) -> int:
        """See `Crew`."""
        return self._runners.size

    def healthy(self) -> list[int]:
        """See `Crew`; the runners of a station that is lost stand for themselves again."""
        served = {runner for each in self._stations.values() for runner in each.runners}
        stations = [each for each in self._stations if self._behind(each)]
        return [*stations, *(runner for runner in self._alive if runner not in served)]

    def team(self, member: int) -> tuple[int, ...]:
        """See `Crew`."""
        return self._behind(member) if member < 0 else self._runners.team(member)

    def name(self, member: int) -> str:
        """See `Crew`."""
        if member < 0:
            return f"the station on {self._stations[member].address}"
        return self._runners.name(member)

    def ask(self, member: int, request: Request) -> "ray.ObjectRef[Answer]":
        """See `Crew`."""
        if member > 0:
            return self._runners.ask(member, request)
        station = self._stations[member]
        reference: ray.ObjectRef[Answer] = station.actor.work.remote(request)
        return reference

    def serve(self, member: int, meeting: Meeting) -> "ray.ObjectRef[None]":
        """See `Crew`."""
        if member > 0:
            return self._runners.serve(member, meeting)
        station = self._stations[member]
        reference: ray.ObjectRef[None] = station.actor.serve.remote(meeting)
        return reference

    def lose(self, member: int, *, hangs: bool) -> None:
        """See `Crew`; a new station takes the place of a lost one in a later iteration."""
        if member > 0:
            self._alive.pop(member, None)
            self._runners.lose(member, hangs=hangs)
        else:
            ray.kill(self._stations.pop(member).actor)

    def do_here(self, request: Request) -> Answer:
        """See `Crew`."""
        return self._runners.do_here(request)

    def _behind(self, station: int) -> tuple[int, ...]:
        runners = self._stations[station].runners
        return tuple(runner for runner in runners if runner in self._alive)


@dataclass
class _Starting:
    """A station, maybe not yet there.

    Attributes:
        number: from -1 down; no other station has had it.
        stationed: it.
        ready: reference to its answer that it is there.
        proven: whether it has answered before.
    """

    number: int
    stationed: Stationed
    ready: Any
    proven: bool = False


class Stations:
    """Starts a station for the runners of each machine, and again where it was lost.

    Nobody waits for them: until one is there, the driver calls the runners itself.

    Args:
        runners: all of them.
        timeout_s: see `Patience`.
    """

    def __init__(self, runners: RunnerGroup, timeout_s: float) -> None:
        self._runners, self._timeout_s = runners, timeout_s
        self._nodes: dict[int, tuple[str, str]] = {}  # of runners: node and address
        self._started: dict[str, _Starting] = {}
        self._moved: set[int] = set()
        self._failed: dict[str, int] = {}  # times in a row, by node
        self._numbers = count(-1, -1)

    def crew(self) -> Crew:
        """Who does the work of an iteration."""
        if self._runners.size < 2:
            return self._runners
        self._locate()
        there = [node for node in list(self._started) if self._is_up(node)]
        wanted = self._wanted()
        for node in [each for each in self._started if each not in wanted]:
            self._end(node)
        for node, runners in wanted.items():
            self._start(node, runners)
        up = [self._started[node] for node in there if node in self._started]
        return StationCrew(
            self._runners, {each.number: each.stationed for each in up if each.proven}
        )

    def forget(self, runners: Sequence[int]) -> None:
        """Takes note that runners have started anew, maybe elsewhere."""
        self._moved.update(runners)

    def stop(self) -> None:
        """Ends them."""
        for node in list(self._started):
            self._end(node)

    def _end(self, node: str) -> None:
        ray.kill(self._started.pop(node).stationed.actor)

    def _locate(self) -> None:
        known = self._nodes.keys() - self._moved
        if unknown := [each for each in self._runners.healthy() if each not in known]:
            found = self._runners.nodes(unknown)
            self._nodes.update(found)
            self._moved.difference_update(found)

    def _wanted(self) -> dict[str, tuple[int, ...]]:
        """Runners by node, where there shall be a station."""
        found: dict[str, list[int]] = defaultdict(list)
        for runner, (node, _) in sorted(self._nodes.items()):
            found[node].append(runner)
        here = ray.get_runtime_context().get_node_id()
        return {
            node: tuple(runners)
            for node, runners in found.items()
            if len(runners) > (FEW if node == here else 1)
        }

    def _start(self, node: str, runners: tuple[int, ...]) -> None:
        before = self._started.get(node)
        if before is not None and before.stationed.runners == runners:
            return
        if before is not None:
            self._end(node)
        if self._failed.get(node, 0) == ATTEMPTS:
            return
        actor = (
            ray.remote(Station)
            .options(
                num_cpus=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote({each: self._runners.handle(each) for each in runners}, self._timeout_s)
        )
        address = self._nodes[runners[0]][1]
        self._started[node] = _Starting(
            next(self._numbers), Stationed(actor, address, runners), actor.ready.remote()
        )

    def _is_up(self, node: str) -> bool:
        """Whether a station can be called; one that is gone is forgotten."""
        each = self._started[node]
        if not ray.wait([each.ready], timeout=0)[0]:
            return False
        try:
            ray.get(each.ready)
        except RayError:
            self._failed[node] = self._failed.get(node, 0) + 1
            del self._started[node]
            return False
        if each.proven:  # it has been there for a whole iteration
            self._failed[node] = 0
        each.proven = True
        each.ready = each.stationed.actor.ready.remote()  # it says so again before the next one
        return True
