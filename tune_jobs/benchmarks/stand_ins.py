"""Stand-ins of runners: they wait for as long as the work takes and answer with as many bytes.

So many of them fit a small machine, several in a process, and the driver has as much to do with
them as with real ones on other machines, apart from the network.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any

import ray

from rllib_configs.runners.crew import Crew
from rllib_configs.runners.lines import answer_in_thread
from rllib_configs.runners.requests import Answer, Meeting, Request
from rllib_configs.runners.stations import Station, StationCrew, Stationed
from rllib_configs.runners.sums import Part, merged
from tune_jobs.benchmarks.scaling_model import Layout

PER_PROCESS = 10


class StandIn:
    """Answers each unit with the same part, after a while.

    Args:
        played: what a unit is answered with when it is played.
        learned: its part of an update.
        play_s: seconds that the one takes.
        step_s: seconds that the other takes.
    """

    def __init__(self, played: Part, learned: Part, play_s: float, step_s: float) -> None:
        self._played, self._learned = played, learned
        self._play_s, self._step_s = play_s, step_s

    def sample(self, *, request: Request) -> Answer:
        """Waits, and returns fresh sums, as a runner has fresh arrays."""
        started = perf_counter()
        plays = request.round.step is None
        time.sleep(len(request.units) * (self._play_s if plays else self._step_s))
        part = self._played if plays else self._learned
        nothing = Part()
        parts = {(0, place): part + nothing for place in request.units}
        found = merged(parts, request.round.count)
        seconds = perf_counter() - started
        return Answer(found, seconds, seconds / len(request.units))

    def serve(self, meeting: Meeting) -> None:
        """See `rllib_configs.runners.units.UnitEnvRunner`."""
        answer_in_thread(meeting, lambda request: self.sample(request=request))

    def cpu_s(self) -> float:
        """CPU time of this process so far."""
        return process_time()


class MeasuredStation(Station):
    """A station that says what it spends."""

    def cpu_s(self) -> float:
        """CPU time of this process so far."""
        return process_time()


class StandIns:
    """A `Crew` of stand-ins, each of which the driver calls itself.

    Args:
        count: how many at most.
        given: see `StandIn`.
    """

    def __init__(self, count: int, *given: Any) -> None:
        actor = ray.remote(num_cpus=0, max_concurrency=PER_PROCESS)(StandIn)
        references = [ray.put(one) for one in given]
        processes = -(-count // PER_PROCESS)
        self._processes = [actor.remote(*references) for _ in range(processes)]
        self.size = count

    def healthy(self) -> list[int]:
        """See `Crew`."""
        return list(range(1, self.size + 1))

    def team(self, member: int) -> tuple[int, ...]:
        """See `Crew`."""
        return (member,)

    def name(self, member: int) -> str:
        """See `Crew`."""
        return f"stand-in {member}"

    def handle(self, member: int) -> Any:
        """See `RunnerGroup`; neighbors share a process."""
        return self._processes[(member - 1) // PER_PROCESS]

    def ask(self, member: int, request: Request) -> Any:
        """See `Crew`."""
        return self.handle(member).sample.remote(request=request)

    def serve(self, member: int, meeting: Meeting) -> Any:
        """See `Crew`."""
        return self.handle(member).serve.remote(meeting)

    def lose(self, member: int, *, hangs: bool) -> None:
        """See `Crew`; none of them is ever lost.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"{self.name(member)} was lost")

    def do_here(self, request: Request) -> Answer:
        """See `Crew`; it never comes to that.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("there are stand-ins")

    def cpu_s(self) -> float:
        """CPU time of their processes so far."""
        return float(sum(ray.get([process.cpu_s.remote() for process in self._processes])))

    def stop(self) -> None:
        """Ends their processes."""
        for process in self._processes:
            ray.kill(process)


class StandInStations:
    """True stations in front of stand-ins, one for each process of them.

    Args:
        stand_ins: all of them.
        count: of stations.
    """

    def __init__(self, stand_ins: StandIns, count: int) -> None:
        actor = ray.remote(num_cpus=0)(MeasuredStation)
        numbers = [range(1 + k * PER_PROCESS, 1 + (k + 1) * PER_PROCESS) for k in range(count)]
        self._stand_ins = stand_ins
        self._stations = [
            Stationed(
                actor.remote({each: stand_ins.handle(each) for each in some}, 0.0), "here", (*some,)
            )
            for some in numbers
        ]

    def crew(self, layout: Layout) -> Crew:
        """Some stations, with as many stand-ins each as a layout says."""
        chosen = [
            replace(each, runners=each.runners[: layout.runners])
            for each in self._stations[: layout.machines]
        ]
        members = [runner for each in chosen for runner in each.runners]
        crew = Chosen(self._stand_ins, members)
        return StationCrew(crew, {-1 - k: each for k, each in enumerate(chosen)})

    def cpu_s(self) -> float:
        """CPU time of their processes so far."""
        return float(sum(ray.get([each.actor.cpu_s.remote() for each in self._stations])))

    def stop(self) -> None:
        """Ends their processes."""
        for each in self._stations:
            ray.kill(each.actor)


class Chosen:
    """Some runners of a crew, as a crew.

    Args:
        crew: all of them.
        members: those that are used.
    """

    def __init__(self, crew: Crew, members: Sequence[int]) -> None:
        self._members = list(members)
        self.size = len(self._members)
        self.team, self.name = crew.team, crew.name
        self.ask, self.serve = crew.ask, crew.serve
        self.lose, self.do_here = crew.lose, crew.do_here

    def healthy(self) -> list[int]:
        """See `Crew`."""
        return list(self._members)
