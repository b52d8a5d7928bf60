"""Stand-ins of runners: they wait for as long as sampling takes and return as many bytes.

So many of them fit a small machine, several in a process, and the driver has as much to do with
them as with real ones on other machines, apart from the network.
"""

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import ray
from ray.rllib.utils.actor_manager import FaultAwareApply, FaultTolerantActorManager

from rllib_configs.runners.units import SampleRequest, SampleResult

PER_PROCESS = 10


class StandIn(FaultAwareApply):
    """Answers each unit with the same rows, after a while.

    Args:
        answer: what a unit is answered with, `rllib_configs.runners.rollout.Rollouts`.
        unit_s: seconds that a unit takes.
    """

    def __init__(self, answer: Any, unit_s: float) -> None:
        self._answer = answer
        self._unit_s = unit_s

    def change(self, rows: int | None, unit_s: float) -> None:
        """Makes answers have the first `rows` rows only, None for all; and units take that long."""
        self._rows = rows
        self._unit_s = unit_s

    def sample(self, *, request: SampleRequest) -> SampleResult:
        """Fetches the weights, waits, and returns fresh copies, as a runner has fresh arrays."""
        started = perf_counter()
        ray.get(request.weights)
        fetch_s = perf_counter() - started
        time.sleep(self._unit_s * len(request.units))
        answers = {unit.index: _cut(self._answer, self._rows) for unit in request.units}
        return SampleResult(answers, request.version, perf_counter() - started, fetch_s=fetch_s)

    _rows: int | None = None


class StandIns:
    """A group of stand-ins, with those methods of RLlib's group that gathering needs.

    Args:
        count: how many at most.
        answer: see `StandIn`.
    """

    def __init__(self, count: int, answer: Any) -> None:
        reference = ray.put(answer)
        processes = -(-count // PER_PROCESS)
        actor = ray.remote(num_cpus=0, max_concurrency=PER_PROCESS)(StandIn)
        self._processes = [actor.remote(reference, 0.0) for _ in range(processes)]
        ray.get([process.ping.remote() for process in self._processes])
        in_turn = itertools.islice(itertools.cycle(self._processes), count)
        self._manager = FaultTolerantActorManager(list(in_turn))
        self._used = count

    def use(self, count: int, rows: int | None = None, unit_s: float = 0.0) -> None:
        """Takes part of the stand-ins, with answers of that many rows, after that many seconds."""
        self._used = count
        ray.get([process.change.remote(rows, unit_s) for process in self._processes])

    def num_remote_env_runners(self) -> int:
        """How many are used."""
        return self._used

    def healthy_env_runner_ids(self) -> list[int]:
        """Their numbers."""
        found: list[int] = self._manager.healthy_actor_ids()
        return found[: self._used]

    def foreach_env_runner(
        self, functions: Sequence[Any], *, remote_worker_ids: list[int], **ignored: Any
    ) -> list[Any]:
        """Calls one function on each, at once, and waits for all."""
        calls = self._manager.foreach_actor(list(functions), remote_actor_ids=remote_worker_ids)
        return [call.get() for call in calls]

    def stop(self) -> None:
        """Ends their processes."""
        for process in self._processes:
            ray.kill(process)


class Part:
    """Some runners of a group of RLlib's, as a group.

    Args:
        group: all of them.
        count: how many are used.
    """

    def __init__(self, group: Any, count: int) -> None:
        self._group = group
        self._count = count

    def num_remote_env_runners(self) -> int:
        """How many are used."""
        return self._count

    def healthy_env_runner_ids(self) -> list[int]:
        """Their numbers."""
        found: list[int] = self._group.healthy_env_runner_ids()
        return found[: self._count]

    def foreach_env_runner(self, functions: Sequence[Any], **options: Any) -> list[Any]:
        """See RLlib's ``EnvRunnerGroup``."""
        results: list[Any] = self._group.foreach_env_runner(list(functions), **options)
        return results


def _cut(answer: Any, rows: int | None) -> Any:
    """A copy of rollouts; with its first rows only, and all of its episodes."""
    rows = answer.num_rows if rows is None else rows
    cut = {
        name: getattr(answer, name)[:rows].copy()
        for name in answer.__dataclass_fields__
        if name != "outcome" and len(getattr(answer, name)) == answer.num_rows
    }
    return replace(answer, **cut)
