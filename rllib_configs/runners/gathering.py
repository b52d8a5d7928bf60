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


def gather(
    group: EnvRunnerGroup, units: Sequence[Unit], weights: Any, version: int
) -> tuple[list[Any], float]:
    """What `gather_timed` does, with the answers and the longest time of a runner alone."""
    gathered = gather_timed(group, units, weights, version)
    return gathered.answers, gathered.runner_s


def gather_timed(
    group: EnvRunnerGroup, units: Sequence[Unit], weights: Any, version: int
) -> Gathered:
    """Has units done by the healthy runners, and with the driver where none is left.

    A runner that dies takes nothing with it but time: its units go to the others, and come out
    the same there.

    Args:
        group: RLlib's runners.
        units: what to do, in order of their index.
        weights: state of the module.
        version: counts the updates of the weights.

    Raises:
        RuntimeError: if sampling itself is at fault.
    """
    started = perf_counter()
    reference = ray.put(weights) if group.num_remote_env_runners() else None
    put_s = perf_counter() - started
    found: dict[int, Any] = {}
    longest = fetch_s = 0.0
    while missing := [unit for unit in units if unit.index not in found]:
        runners = group.healthy_env_runner_ids()
        if runners:
            shares = _shares(missing, len(runners))
            results = group.foreach_env_runner(
                [partial(_sample, SampleRequest(share, reference, version)) for share in shares],
                remote_worker_ids=runners[: len(shares)],
                local_env_runner=False,
            )
        else:
            if group.num_remote_env_runners():
                logger.warning("no env runner is left: %d units are sampled here", len(missing))
            request = SampleRequest(tuple(missing), weights, version)
            results = [_sample(request, group.local_env_runner)]
        for result in results:
            if result.error:
                raise RuntimeError(f"an env runner failed:\n{result.error}")
            found.update(result.answers)
            longest = max(longest, result.seconds)
            fetch_s = max(fetch_s, result.fetch_s)
        if len(results) < len(runners):
            logger.warning("an env runner was lost; its units are sampled again")
    took = perf_counter() - started
    return Gathered(
        answers=[found[unit.index] for unit in units],
        broadcast_s=put_s + fetch_s,
        runner_s=longest,
        gather_s=max(0.0, took - put_s - longest),
    )


def _sample(request: SampleRequest, runner: UnitEnvRunner) -> SampleResult:
    return runner.sample(request=request)


def _shares(units: Sequence[Unit], parts: int) -> list[tuple[Unit, ...]]:
    """Cuts the units into at most `parts` runs of nearly equal length, none empty."""
    parts = min(parts, len(units))
    bounds = [len(units) * part // parts for part in range(parts + 1)]
    return [tuple(units[a:b]) for a, b in itertools.pairwise(bounds)]
