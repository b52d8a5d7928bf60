"""Stations among true runners: the same bits with and without, whoever is killed or stopped."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import ray

from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.loading import load_config
from rllib_configs.runners import stations
from rllib_configs.runners.patience import Patience
from tests.rllib_configs.dying import end_in_round
from tests.rllib_configs.training import assert_equal
from tests.waiting import PATIENCE_S, wait_for

SIZES = ["training.jobsets=8", "training.jobsets_per_unit=2", "training.episodes_per_jobset=3"]
SMALL = [*SIZES, "training.hidden=8", "training.epochs=2", "training.minibatches=2"]


def wait_for_station(algorithm: Any) -> Any:
    """The actor of this machine's station, once it has started."""
    algorithm._stations.crew()
    (started,) = algorithm._stations._started.values()
    ray.get(started.ready, timeout=PATIENCE_S)
    return started.stationed.actor


def process_of(actor: Any) -> int:
    return int(ray.get(actor.__ray_call__.remote(lambda self: os.getpid())))


class ShortForStations(Patience):
    """Waits 4 s for a station, and for a runner as long as a busy machine may need."""

    def limit_s(self, num_units: int, width: int = 0) -> float:
        return 4.0 if width else PATIENCE_S


def wait_for_lines(algorithm: Any) -> None:
    """Until all whom the driver has asked for lines have opened them."""
    lines = algorithm._lines

    def there() -> bool:
        lines.admit()
        return lines._asked.keys() == lines._open.keys()

    wait_for(there, "opening lines")


def calls_of(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Members that the driver calls from now on: to open a line, or to do units."""
    found: list[int] = []

    def recorded(plain: Any) -> Any:
        def call(self: Any, member: int, given: Any) -> Any:
            found.append(member)
            return plain(self, member, given)

        return call

    for name in ("ask", "serve"):
        plain = getattr(stations.StationCrew, name)
        monkeypatch.setattr(stations.StationCrew, name, recorded(plain))
    return found


@pytest.mark.integration
def test_a_run_with_stations_is_that_of_the_driver_alone(
    local_ray: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stations, "FEW", 1)
    alone = build_algorithm(load_config("deeprm-ppo", [*SMALL, "resources.num_runners=0"]))
    algorithm = build_algorithm(load_config("deeprm-ppo", [*SMALL, "resources.num_runners=2"]))

    def train() -> dict[str, float]:
        metrics = iteration_metrics(algorithm.train())
        alone.train()
        assert_equal(module_weights(algorithm), module_weights(alone))
        return metrics

    try:
        train()  # the station is starting
        calls = calls_of(algorithm, monkeypatch)
        station = wait_for_station(algorithm)
        train()
        assert set(calls) == {-1}

        def calls_nobody() -> bool:
            """Whether an iteration has a line to this machine for all its rounds."""
            wait_for_lines(algorithm)
            calls.clear()
            train()
            return not calls

        wait_for(calls_nobody, "an iteration by lines alone")
        seen: list[int] = []
        assert algorithm.spread(pow, 3, range(4), seen.append) == [1, 3, 9, 27]
        assert seen[-1] == 4
        assert alone.spread(pow, 3, range(4)) == [1, 3, 9, 27]
        os.kill(process_of(station), signal.SIGKILL)
        algorithm._stations._timeout_s = 8.0  # of the next station
        train()  # its runners are asked by the driver
        assert "the station on 127.0.0.1 was lost" in caplog.text
        assert wait_for_station(algorithm) != station
        calls.clear()
        train()
        assert set(calls) == {-2}  # another one
        wait_for_lines(algorithm)
        stopped = end_in_round(algorithm, 2, by=signal.SIGSTOP)  # in an update
        calls.clear()
        assert train()["workers/healthy"] <= 1  # the station has noticed, on a busy machine twice
        assert "has not answered" not in caplog.text  # the driver would have said so
        wait_for(lambda: not Path("/proc", str(stopped)).exists(), "the end of the stopped runner")
        station = wait_for_station(algorithm)
        os.kill(process_of(station), signal.SIGSTOP)
        algorithm._patience = ShortForStations()
        train()
        assert "the station on 127.0.0.1 has not answered for 4 s" in caplog.text
    finally:
        algorithm.stop()
        alone.stop()
