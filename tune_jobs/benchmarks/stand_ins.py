"""Stand-ins of runners: they wait for as long as the work takes and answer with as many bytes.

So many of them fit a small machine, several in a process, and the driver has as much to do with
them as with real ones on other machines, apart from the network.
"""

import time
from time import perf_counter
from typing import Any

import ray

from rllib_configs.runners.crew import Crew
from rllib_configs.runners.sums import Part, merged
from rllib_configs.runners.units import Answer, Request

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
        return Answer(found, len(request.units), perf_counter() - started)


class StandIns:
    """A `Crew` of stand-ins.

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
        return list(range(self.size))

    def ask(self, runner: int, request: Request) -> Any:
        """See `Crew`."""
        return self._processes[runner % len(self._processes)].sample.remote(request=request)

    def lose(self, runner: int, *, hangs: bool) -> None:
        """See `Crew`; none of them is ever lost.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"stand-in {runner} was lost")

    def do_here(self, request: Request) -> Answer:
        """See `Crew`; it never comes to that.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("there are stand-ins")

    def stop(self) -> None:
        """Ends their processes."""
        for process in self._processes:
            ray.kill(process)


class Some:
    """Some runners of a crew, as a crew.

    Args:
        crew: all of them.
        count: how many are used.
    """

    def __init__(self, crew: Crew, count: int) -> None:
        self._crew = crew
        self.size = count
        self.ask, self.lose, self.do_here = crew.ask, crew.lose, crew.do_here

    def healthy(self) -> list[int]:
        """See `Crew`."""
        return self._crew.healthy()[: self.size]
