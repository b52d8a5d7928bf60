"""CPUs that others have, or that nobody has yet: a command waits for them, but not for ever."""

import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray

from cluster_env.core.errors import Failure, InputError
from rllib_configs.config.loading import load_config, parse_section
from tests.waiting import PATIENCE_S, wait_for
from tune_jobs import cli
from tune_jobs.processes import capacity
from tune_jobs.processes.capacity import cpus_for
from tune_jobs.processes.spreading import spreading
from tune_jobs.runs.training import run_training
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.progress_table import ProgressTable
from tune_jobs.sweeps.sweeping import run_sweep
from tune_jobs.terminal.progress import Progress

TINY = ("training.iterations=1", "tracking.enabled=false", "evaluation.jobsets=2")


def config_of(*overrides: str) -> Any:
    return load_config("deeprm-smoke", [*TINY, *overrides])


@ray.remote
class Holder:
    """Has CPUs until it is killed."""

    def ready(self) -> None:
        """Says that it has them."""


@contextmanager
def held(num_cpus: int) -> Iterator[Callable[[], None]]:
    """Takes CPUs; gives what releases them, again and again."""
    holder = Holder.options(num_cpus=num_cpus).remote()
    ray.get(holder.ready.remote(), timeout=PATIENCE_S)
    wait_for(lambda: ray.available_resources().get("CPU", 0) <= 4 - num_cpus, "all hear of it")
    try:
        yield lambda: ray.kill(holder)
    finally:
        ray.kill(holder)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes Ray say what a cluster has; there is none."""

    def say(total: float, free: float, group: str | None = None) -> None:
        labels = {"ray.io/node-id": "f", **({"ray.io/node-group": group} if group else {})}
        monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Labels": labels}])
        monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": total})
        # Ray leaves out what is 0.
        monkeypatch.setattr(ray, "available_resources", lambda: {"CPU": free} if free else {})

    monkeypatch.setattr(ray.util, "get_current_placement_group", lambda: None)
    monkeypatch.setattr(capacity, "GRACE_S", 0.0)
    return say


def test_more_than_there_is_without_an_autoscaler_is_refused_at_once(cluster) -> None:
    cluster(2, 0)
    said: list[str] = []
    refusal = pytest.raises(InputError, match="5 runners need 5 CPUs, but there are 2; ask for")
    with refusal, cpus_for(config_of("resources.num_runners=5"), said.append):
        pytest.fail("it went on")
    assert said == []


def test_a_full_cluster_is_waited_for_until_the_limit(cluster, monkeypatch) -> None:
    monkeypatch.setattr(capacity, "SAY_EVERY_S", 1.0)
    cluster(2, 0)
    said: list[str] = []
    patient = config_of("resources.num_runners=2", "resources.wait_s=2")
    failure = pytest.raises(Failure, match=r"^2 CPUs did not come free within 2 s \(0 of 2 are")
    with failure, cpus_for(patient, said.append):
        pytest.fail("it went on")
    assert len(said) >= 2
    assert said[0].startswith("waits for 2 CPUs; 0 of 2 are free; gives up in ")
    del said[:]
    hasty = config_of("resources.num_runners=2", "resources.wait_s=0")
    with pytest.raises(Failure, match="within 0 s"), cpus_for(hasty, said.append):
        pytest.fail("it went on")
    assert said == []


def test_an_autoscaler_is_asked_and_the_request_taken_back(cluster, monkeypatch) -> None:
    asked: list[Any] = []

    class Group:
        def __init__(self, bundles: list[dict[str, float]]) -> None:
            self.bundles = bundles
            asked.append(self)

        def wait(self, timeout_s: float) -> bool:
            return False

    monkeypatch.setattr(ray.util, "placement_group", Group)
    monkeypatch.setattr(ray.util, "remove_placement_group", asked.remove)
    cluster(2, 1, group="runners")
    said: list[tuple[str, list[Any]]] = []
    config = config_of("resources.num_runners=5", "resources.wait_s=0.2")
    failure = pytest.raises(Failure, match="asked the autoscaler for more")
    with failure, cpus_for(config, lambda text: said.append((text, list(asked)))):
        pytest.fail("it went on")
    ((text, during),) = said
    assert text.startswith("waits for 5 CPUs; 1 of 2 are free; asked the autoscaler for more; ")
    assert [each.bundles for each in during] == [[{"CPU": 1}] * 5]
    assert asked == []


def test_in_a_placement_group_the_cpus_are_reserved_already(cluster, monkeypatch) -> None:
    cluster(3, 0)
    monkeypatch.setattr(ray.util, "get_current_placement_group", lambda: "a trial's")
    with cpus_for(config_of("resources.num_runners=2", "resources.wait_s=0"), pytest.fail):
        pass


@pytest.mark.integration
def test_a_run_waits_for_a_full_cluster_and_goes_on(local_ray: None, tmp_path: Path) -> None:
    said = io.StringIO()
    config = config_of("resources.num_runners=2", f"runs={tmp_path}")
    with held(4) as release:
        watcher = threading.Thread(
            target=lambda: (wait_for(lambda: "are free" in said.getvalue(), "a line"), release())
        )
        watcher.start()
        result = run_training(config, progress=Progress(said, interactive=False))
        watcher.join(PATIENCE_S)
    assert result.num_iterations == 1
    lines = said.getvalue().splitlines()
    at = lines.index("Waiting for Ray")
    assert lines[at + 1] == "waits for 2 CPUs; 0 of 4 are free; gives up in 1:00 h"
    assert ray.util.list_named_actors(all_namespaces=True) == []


@pytest.mark.integration
@pytest.mark.usefixtures("interruptible")
def test_the_end_of_a_wait_has_its_status(
    local_ray: None, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    run = tmp_path / "run"
    settings = [each for text in TINY for each in ("--set", text)]
    command = ["train", "deeprm-smoke", "--runners", "2", "--run", str(run), *settings]
    with held(4):
        assert cli.run(cli.metasched, [*command, "--set", "resources.wait_s=1"]) == 1
        errors = capfd.readouterr().err.splitlines()
        assert errors[-1].startswith("metasched: 2 CPUs did not come free within 1 s (0 of 4 are")
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            timer = threading.Timer(4, os.kill, [os.getpid(), number])
            timer.start()
            assert cli.run(cli.metasched, command) == status
            timer.join()
            assert "waits for 2 CPUs" in capfd.readouterr().err
        assert not run.exists()


@pytest.mark.integration
def test_pieces_of_work_wait_too(local_ray: None) -> None:
    said: list[str] = []
    with held(3) as release:

        def hear(text: str) -> None:
            said.append(text)
            release()

        with spreading(2, say=hear) as spread:
            assert list(spread(divmod, 7, [2, 3])) == [(3, 1), (2, 1)]
    assert said == ["waits for 2 CPUs; 1 of 4 are free; gives up in 1:00 h"]


@pytest.mark.integration
def test_of_two_that_wait_one_goes_first(local_ray: None) -> None:
    """Both would fit alone, and both see the CPUs free."""
    config = config_of("resources.num_runners=3")
    waiting: list[str] = []
    inside: list[str] = []
    entered: list[int] = []

    def wait_and_take(name: str) -> None:
        with ExitStack() as stack:
            with cpus_for(config, waiting.append):
                inside.append(name)
                entered.append(len(inside))
                time.sleep(1.0)  # what a run does before its runners start
                stack.enter_context(held(3))
            time.sleep(3.0)
            inside.remove(name)

    with ThreadPoolExecutor(2) as pool:
        with held(4):
            both = [pool.submit(wait_and_take, name) for name in "ab"]
            wait_for(lambda: len(waiting) == 2, "both wait")
        for each in both:
            each.result(PATIENCE_S)
    assert entered == [1, 1]


@pytest.mark.integration
def test_a_sweep_waits_for_a_full_cluster_and_goes_on(local_ray: None, tmp_path: Path) -> None:
    text = {
        "preset": "deeprm-smoke",
        "space": {"training.lr": {"grid": [0.01]}},
        "search": "grid",
        "settings": {"training.iterations": 1, "evaluation.every": 1, "tracking.enabled": False},
    }
    table = ProgressTable(1, "eval/ratio", "min", stream := io.StringIO(), interactive=False)
    with held(4) as release:
        watcher = threading.Thread(
            target=lambda: (wait_for(lambda: "are free" in stream.getvalue(), "a line"), release())
        )
        watcher.start()
        result = run_sweep(parse_section(Sweep, text), runs=tmp_path, table=table)
        watcher.join(PATIENCE_S)
    assert result.counts["finished"] == 1
    lines = stream.getvalue().splitlines()
    assert "waits for 1 CPU; 0 of 4 are free; gives up in 1:00 h" in lines
