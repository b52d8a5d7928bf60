"""A runner that hangs is replaced, and what it should have sampled comes out the same elsewhere."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from rllib_configs.algorithms.batched import module_weights
from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.loading import load_config
from rllib_configs.runners.dispatch import Runners, Timeouts
from rllib_configs.runners.unit_runner import UnitEnvRunner
from tests.rllib_configs.training import assert_equal
from tests.waiting import PATIENCE_S, run_python, wait_for

SETTINGS = [
    *("training.jobsets=4", "training.jobsets_per_unit=1", "training.episodes_per_jobset=2"),
    *("training.hidden=4", "resources.num_runners=2", "resources.runner_timeout_s=100"),
]


def stopping_in_unit(index: int, mark: Path) -> type[UnitEnvRunner]:
    """A runner that stops, as by SIGSTOP, in a unit of iteration 1 or later; the next does not.

    The local one never does, although it is asked where a busy machine has no other in time.
    """

    class StoppingRunner(UnitEnvRunner):
        def run(self, unit: Any, step: Any) -> Any:
            chosen = unit.index == index and unit.iteration > 0
            if chosen and self.worker_index > 0 and not mark.exists():
                mark.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
            return super().run(unit, step)

    return StoppingRunner


class ShortUntil(Timeouts):
    """Waits 4 s until there is a mark, and then as long as a busy machine may need."""

    def __init__(self, mark: Path) -> None:
        super().__init__(100.0)
        self._mark = mark

    def limit_s(self, num_units: int) -> float:
        return super().limit_s(num_units) if self._mark.exists() else 4.0


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
        assert algorithm.runners.timeouts.limit_s(1) == 100
        algorithm.runners.timeouts = ShortUntil(mark)
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


@pytest.mark.integration
def test_a_runner_that_stops_in_its_start_keeps_no_others_waiting(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runners, "START_S", 25.0)
    mark = tmp_path / "mark"

    class NeverStarted(UnitEnvRunner):
        def __init__(self, **kwargs: Any) -> None:
            if kwargs["worker_index"] == 2 and not mark.exists():
                mark.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
            super().__init__(**kwargs)

    config = algorithm_config(load_config("deeprm-smoke", SETTINGS))
    config.env_runner_cls = NeverStarted
    alone = build_algorithm(load_config("deeprm-smoke", [*SETTINGS, "resources.num_runners=0"]))
    algorithm = config.build_algo()
    try:
        metrics = iteration_metrics(algorithm.train())
        alone.train()
        assert_equal(module_weights(algorithm), module_weights(alone))
        assert metrics["workers/healthy"] == 1
        os.kill(int(mark.read_text()), signal.SIGCONT)
        wait_for(
            lambda: iteration_metrics(algorithm.train())["workers/healthy"] == 2, "a late runner"
        )
    finally:
        algorithm.stop()
        alone.stop()


STOP_BEFORE_THE_END = """
import os, signal, sys
from tune_jobs import cli
from tune_jobs.runs.trainer import Trainer

def close(self, plain=Trainer.close):
    (process,) = self._algorithm.env_runner_group.foreach_env_runner(
        lambda runner: os.getpid(), remote_worker_ids=[1], local_env_runner=False
    )
    os.kill(process, signal.SIGSTOP)
    print("stopped", process, flush=True)
    plain(self)

Trainer.close = close
sys.exit(cli.run(cli.metasched, sys.argv[1:]))
"""


@pytest.mark.integration
@pytest.mark.slow
def test_a_runner_that_stops_after_the_last_iteration_does_not_keep_the_command(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    line = ["train", "deeprm-smoke", "--run", str(run), "--runners", "1"]
    sets = ["tracking.enabled=false", *SETTINGS[:4], "training.iterations=2"]
    sets.append("evaluation.jobsets=4")
    line += [word for setting in sets for word in ("--set", setting)]
    done = run_python("-c", STOP_BEFORE_THE_END, *line)
    assert done.returncode == 0, done.stderr
    (stopped,) = [each.split()[1] for each in done.stdout.splitlines() if "stopped" in each]
    assert done.stdout.splitlines()[-1].endswith(f"compare --policies sjf,packer,tetris,{run}")
    wait_for(lambda: not Path("/proc", stopped).exists(), "the end of the stopped runner")


def test_the_limit_is_ten_times_what_units_usually_take() -> None:
    timeouts = Timeouts()
    assert timeouts.limit_s(1) == 600
    timeouts.observe(2.0, num_units=2)
    assert timeouts.limit_s(3) == 120
    assert timeouts.limit_s(30) == 300
    assert Timeouts(7.0).limit_s(1000) == 7
