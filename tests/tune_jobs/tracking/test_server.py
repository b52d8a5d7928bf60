"""Real processes: a server that comes and goes, two writers at once, a killed trainer."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers import mlflow_server
from tests.waiting import PATIENCE_S, wait_for
from tune_jobs.tracking import Tracker, local_store, local_uri

pytestmark = pytest.mark.integration

NUM_POINTS = 300

WRITER = """
import sys, time
from tune_jobs.tracking import Tracker
tracker = Tracker.open(sys.argv[1], run_name=sys.argv[2], tags={"writer": sys.argv[2]})
for step in range(int(sys.argv[3])):
    tracker.metrics({"a": step, "b": -step}, step)
    time.sleep(0.003)
tracker.finish()
print(tracker.close(200).lost)
"""


def start_writer(run_dir: Path, name: str, num_points: int = NUM_POINTS) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(run_dir), name, str(num_points)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def assert_complete(client: Any, run: Any, name: str = "a", sign: int = 1) -> None:
    history = client.get_metric_history(run.info.run_id, name)
    assert [(m.step, m.value) for m in history] == [(n, sign * n) for n in range(NUM_POINTS)]


def test_a_server_that_comes_late_and_is_killed_gets_everything_once(
    tmp_path: Path, run_dir: Path, empty_store: Path, free_port: int
) -> None:
    uri = f"http://127.0.0.1:{free_port}"
    tracker = Tracker.open(run_dir, uri=uri, run_name="r")
    config, place = run_dir / "config.yaml", tmp_path / "place"
    place.mkdir()
    local_store(place).write_bytes(empty_store.read_bytes())
    config.write_text("seed: 1")
    for step in range(100):
        tracker.metrics({"a": step}, step)
    with mlflow_server(place, free_port):
        wait_for(lambda: on(uri), "the first record")
        for step in range(100, 200):
            tracker.metrics({"a": step}, step)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(f"{uri}/health", timeout=PATIENCE_S)
    for step in range(200, NUM_POINTS):
        tracker.metrics({"a": step}, step)
    tracker.artifact(config, folder="files")
    tracker.finish()
    with mlflow_server(place, free_port):
        assert tracker.close(PATIENCE_S).message == ""
    (run,) = on(local_uri(place))
    assert_complete(client_of(local_uri(place)), run)
    assert run.info.status == "FINISHED"
    assert (place / "1" / run.info.run_id / "artifacts/files/config.yaml").is_file()


def client_of(uri: str) -> Any:
    import mlflow

    return mlflow.MlflowClient(uri, uri)


def on(uri: str) -> list[Any]:
    """The runs of a server."""
    experiment = client_of(uri).get_experiment_by_name("metasched")
    return list(client_of(uri).search_runs([experiment.experiment_id])) if experiment else []


def test_two_processes_share_a_new_local_store(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    writers = [start_writer(tmp_path / name, name) for name in ("one", "two")]
    assert [writer.communicate(timeout=PATIENCE_S)[0] for writer in writers] == ["0\n", "0\n"]
    client = request.getfixturevalue("client")  # not before: it would make the store
    runs = request.getfixturevalue("runs")()
    for name in ("one", "two"):
        assert_complete(client, runs[name])
        assert_complete(client, runs[name], "b", -1)
        assert runs[name].info.status == "FINISHED"


def test_a_killed_trainer_leaves_all_but_its_last_seconds(
    run_dir: Path, client: Any, runs: Callable[[], dict[str, Any]]
) -> None:
    writer = start_writer(run_dir, "r", 100_000)
    try:
        wait_for(lambda: runs().get("r") and runs()["r"].data.metrics.get("a"), "a point")
    finally:
        writer.kill()
        writer.communicate()
    history = client.get_metric_history(runs()["r"].info.run_id, "a")
    assert [m.step for m in history] == list(range(len(history)))
    assert runs()["r"].info.status == "RUNNING"
