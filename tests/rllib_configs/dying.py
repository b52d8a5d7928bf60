"""Runners that end, or stop, at a chosen place."""

import os
import signal
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm

from rllib_configs.runners.unit_runner import UnitEnvRunner


def end_in_round(
    algorithm: Algorithm, number: int, runner: int = 1, by: int = signal.SIGKILL
) -> int:
    """Has a runner kill itself in the middle of its work.

    Which units it does depends on who is faster; that it has some in each round does not.

    Args:
        algorithm: whose runner it is.
        number: of the round, of those in which it has units, counted from 1: in an iteration the
            first one samples, and each other one is an update.
        runner: which.
        by: the signal that it sends itself.

    Returns:
        The id of its process.
    """

    def arm(runner: UnitEnvRunner) -> int:
        plain, rounds, last = runner.run, 0, object()

        def run(unit: Any, step: Any) -> Any:
            nonlocal rounds, last
            rounds += step != last
            last = step
            if rounds == number:
                os.kill(os.getpid(), by)
            return plain(unit, step)

        runner.run = run  # type: ignore[method-assign]
        return os.getpid()

    (process,) = algorithm.env_runner_group.foreach_env_runner(
        arm, remote_worker_ids=[runner], local_env_runner=False
    )
    return int(process)
