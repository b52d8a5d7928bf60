"""Units handed to whoever is there, until every one of them has come back."""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import ray
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_configs.runners.units import SampleRequest, SampleResult, Unit, UnitEnvRunner

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Answers to all units of an iteration, and where the time went, in seconds.

    Attributes:
        answers: one for each unit, in order.
        broadcast_s: handing the weights over, and the longest time that a runner took to get them.
        runner_s: longest time that a runner was at it, getting the weights included.
        gather_s: the rest: calls on their way, and answers coming in.
    """

    answers: list[Any]
    broadcast_s: float
    runner_s: float
    gather_s: float


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

    def observe(self, result: SampleResult) -> None:
        """Learns from an answer."""
        self._unit_s = max(self._unit_s, result.seconds / max(1, len(result.answers)))

    def limit_s(self, num_units: int) -> float:
        """Seconds after which nobody waits any longer for so many units."""
        if self._timeout_s:
            return self._timeout_s
        if not self._unit_s:
            return self.FIRST_S
        return max(self.LEAST_S, self.FACTOR * self._unit_s * num_units)


def gather(
    group: EnvRunnerGroup,
    units: Sequence[Unit],
    weights: Any,
    version: int,
    patience: Patience | None = None,
) -> Gathered:
    """Has units done by the healthy runners, and with the driver where none is left.

    A runner that dies takes nothing with it but time: its units go to the others, and come out
    the same there. One that does not answer in time is replaced.

    Args:
        group: RLlib's runners.
        units: what to do, in order of their index.
        weights: state of the module.
        version: counts the updates of the weights.
        patience: how long a runner may take.

    Raises:
        RuntimeError: if sampling itself is at fault.
    """
    started = perf_counter()
    patience = patience or Patience()
    reference = ray.put(weights) if group.num_remote_env_runners() else None
    put_s = perf_counter() - started
    found: dict[int, Any] = {}
    longest = fetch_s = 0.0
    while missing := [unit for unit in units if unit.index not in found]:
        runners = group.healthy_env_runner_ids()
        if runners:
            shares = _shares(missing, len(runners))
            requests = [SampleRequest(share, reference, version) for share in shares]
            results = _ask(group, runners[: len(shares)], requests, patience)
        else:
            if group.num_remote_env_runners():
                logger.warning("no env runner is left: %d units are sampled here", len(missing))
            request = SampleRequest(tuple(missing), weights, version)
            results = [group.local_env_runner.sample(request=request)]
        for result in results:
            if result.error:
                raise RuntimeError(f"an env runner failed:\n{result.error}")
            found.update(result.answers)
            patience.observe(result)
            longest = max(longest, result.seconds)
            fetch_s = max(fetch_s, result.fetch_s)
    took = perf_counter() - started
    return Gathered(
        answers=[found[unit.index] for unit in units],
        broadcast_s=put_s + fetch_s,
        runner_s=longest,
        gather_s=max(0.0, took - put_s - longest),
    )


def _ask(
    group: EnvRunnerGroup,
    runners: Sequence[int],
    requests: Sequence[SampleRequest],
    patience: Patience,
) -> list[SampleResult]:
    """Sends each runner a request, and returns the answers that come in time."""
    limit_s = patience.limit_s(max(len(request.units) for request in requests))
    answers: list[tuple[int, SampleResult]] = group.foreach_env_runner(
        [partial(_sample, *each) for each in zip(runners, requests, strict=True)],
        remote_worker_ids=list(runners),
        local_env_runner=False,
        timeout_seconds=limit_s,
    )
    if len(answers) < len(runners):
        alive = set(group.healthy_env_runner_ids())
        for late in sorted(alive.intersection(runners).difference(who for who, _ in answers)):
            logger.warning(
                "env runner %d has not answered for %.0f s (resources.runner_timeout_s) and is "
                "replaced",
                late,
                limit_s,
            )
            _replace(group, late)
        logger.warning("an env runner was lost; its units are sampled again")
    return [result for _, result in answers]


def _replace(group: EnvRunnerGroup, runner: int) -> None:
    """Ends the process of a runner; Ray starts it again, and RLlib takes it back then."""
    manager = group._worker_manager  # RLlib itself replaces only those that have died
    ray.kill(manager.actors()[runner], no_restart=False)
    manager.set_actor_state(runner, healthy=False)


def _sample(who: int, request: SampleRequest, runner: UnitEnvRunner) -> tuple[int, SampleResult]:
    return who, runner.sample(request=request)


def _shares(units: Sequence[Unit], parts: int) -> list[tuple[Unit, ...]]:
    """Cuts the units into at most `parts` runs of nearly equal length, none empty."""
    parts = min(parts, len(units))
    bounds = [len(units) * part // parts for part in range(parts + 1)]
    return [tuple(units[a:b]) for a, b in itertools.pairwise(bounds)]
