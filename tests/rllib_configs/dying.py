"""Runners that end at a chosen place."""

import os
import signal
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm

from rllib_configs.runners.units import UnitEnvRunner


def end_in_unit(algorithm: Algorithm, number: int, runner: int = 1) -> None:
    """Has a runner kill itself in the middle of its work.

    Args:
        algorithm: whose runner it is.
        number: of the unit, or of its part of an update, counted from 1, that the runner has begun
            then.
        runner: which.
    """

    def arm(runner: UnitEnvRunner) -> None:
        plain, begun = runner.answer, 0

        def answer(unit: Any, step: Any) -> Any:
            nonlocal begun
            begun += 1
            if begun == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(unit, step)

        runner.answer = answer  # type: ignore[method-assign]

    algorithm.env_runner_group.foreach_env_runner(
        arm, remote_worker_ids=[runner], local_env_runner=False
    )
