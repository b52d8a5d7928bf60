"""A runner that hangs is replaced, and what it should have sampled comes out the same elsewhere."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import algorithm_config, build_algorithm, iteration_metrics
from rllib_configs.loading import load_config
from rllib_configs.runners.patience import Patience
from rllib_configs.runners.requests import Answer
from rllib_configs.runners.units import UnitEnvRunner
from tests.rllib_configs.training import assert_equal
from tests.waiting import PATIENCE_S

SETTINGS = [
    *("training.jobsets=4", "training.jobsets_per_unit=1", "training.episodes_per_jobset=2"),
    *("training.hidden=4", "resources.num_runners=2", "resources.runner_timeout_s=100"),
]


def stopping_in_unit(index: int, mark: Path) -> type[UnitEnvRunner]:
    """A runner that stops, as by SIGSTOP, in a unit of iteration 1 or later; the next does not.

    The local one never does, although it is asked where a busy machine has no other in time.
    """

    class StoppingRunner(UnitEnvRunner):
        def answer(self, unit: Any, step: Any) -> Any:
            chosen = unit.index == index and unit.iteration > 0
            if chosen and self.worker_index > 0 and not mark.exists():
                mark.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
            return super().answer(unit, step)

    return StoppingRunner


class ShortUntil(Patience):
    """Waits 4 s until there is a mark, and then as long as a busy machine may need."""

    def __init__(self, mark: Path) -> None:
        super().__init__(100.0)
        self._mark = mark

    def limit_s(self, num_units: int, width: int = 0) -> float:
        return super().limit_s(num_units, width) if self._mark.exists() else 4.0


@pytest.mark.integration
def test_a_runner_that_stops_in_its_second_unit_costs_no_more_than_time(
    local_ray: None, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    alone = build_algorithm(load_config("deeprm-smoke", [*SETTINGS, "resources.num_runners=0"]))
    config = algorithm_config(load_config("deeprm-smoke", SETTINGS))
    config.env_runner_cls = stopping_in_unit(3, mark)
    algorithm = config.build_algo()
    deadline = time.monotonic() + PATIENCE_S
    try:
        algorithm.train()
        assert algorithm._patience.limit_s(1) == 100
        algorithm._patience = ShortUntil(mark)
        metrics = iteration_metrics(algorithm.train())
        while not mark.exists():  # a busy machine may be too slow for both runners at first
            assert time.monotonic() < deadline
            metrics = iteration_metrics(algorithm.train())
        metrics = iteration_metrics(algorithm.train())
        stopped = Path("/proc", mark.read_text())
        while alone.iteration < algorithm.iteration:
            alone.train()
        assert_equal(module_weights(algorithm), module_weights(alone))
        while metrics["workers/healthy"] < 2:
            assert time.monotonic() < deadline
            time.sleep(0.3)  # it needs the cores to start
            metrics = iteration_metrics(algorithm.train())
        assert metrics["workers/restarts"] >= 1
        assert not stopped.exists()
    finally:
        algorithm.stop()
        alone.stop()


def test_the_limit_is_ten_times_what_units_usually_take() -> None:
    patience = Patience()
    assert patience.limit_s(1) == 600
    patience.observe(Answer({}, seconds=2.0, unit_s=1.0))
    assert patience.limit_s(3) == 120
    assert patience.limit_s(30) == 300
    assert patience.limit_s(30, width=1) == 2 * 300  # a station has to notice it first
    assert patience.limit_s(30, width=10) == 2 * 120
    assert patience.limit_s(301, width=10) == 2 * 310
    assert Patience(7.0).limit_s(1000) == 7
    assert Patience(7.0).limit_s(1000, width=10) == 14
