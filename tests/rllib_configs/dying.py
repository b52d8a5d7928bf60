"""Runners that end at a chosen place."""

import os
import signal
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm

from rllib_configs.runners.units import UnitEnvRunner


def end_in_unit(algorithm: Algorithm, number: int) -> None:
    """Has the first runner kill itself in the middle of its work.

    Args:
        algorithm: whose runner it is.
        number: of the unit, counted from 1, that the runner has begun then.
    """

    def arm(runner: UnitEnvRunner) -> None:
        plain, begun = runner.answer, 0

        def answer(unit: Any, prepared: Any) -> Any:
            nonlocal begun
            begun += 1
            if begun == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(unit, prepared)

        runner.answer = answer  # type: ignore[method-assign]

    algorithm.env_runner_group.foreach_env_runner(
        arm, remote_worker_ids=[1], local_env_runner=False
    )
