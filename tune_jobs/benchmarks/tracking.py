"""What tracking costs a training run, with a server that is up, down or slow, and what arrives."""

import http.server
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from cluster_env.core.errors import Failure
from rllib_configs.loading import load_config
from tune_jobs.benchmarks.measuring import Entry
from tune_jobs.benchmarks.training import measured_iterations
from tune_jobs.runs.history import MetricRow
from tune_jobs.tracking import Tracker, local_uri
from tune_jobs.tracking.copying import Copy
from tune_jobs.tracking.run_file import read_run_file
from tune_jobs.tracking.server import run_server
from tune_jobs.tracking.store import LocalStore, Store

PRESET = "deeprm-ppo"
ROUNDS = 5
POINTS = 100
ANSWER_S = 3.0
_KEY = "train/return_mean"


Cost = tuple[list[float], list[float]]
"""Seconds of an iteration, means over rounds of `POINTS` / `ROUNDS` iterations: of calls that
training waits for, and of the process, with the thread that sends."""


def measure(seconds: float, preset: str = PRESET) -> list[Entry]:
    """Measures what a tracker takes of an iteration of a preset, and that nothing is lost.

    Raises:
        Failure: if a record did not arrive once the server was there.
    """
    config = load_config(preset, ["resources.num_runners=0"])
    times, rows = measured_iterations(config, seconds)
    iteration_s, row = median(times), rows[-1]
    entries = []
    with tempfile.TemporaryDirectory(prefix="metasched-bench-") as folder:
        for state, (calls, cpu) in _states(Path(folder), row, iteration_s):
            for name, what, spent in (
                (f"tracking.{state}", f"s of calls, {len(row)} metrics", calls),
                (f"tracking.{state}.cpu", "s of CPU time, with all that is sent", cpu),
            ):
                entries.append(
                    Entry(
                        name,
                        f"{what}, for each iteration",
                        spent,
                        f"an iteration of {config.name}",
                        times,
                        higher_is_better=False,
                        share=median(spent) / iteration_s,
                    )
                )
    return entries


def _states(folder: Path, row: MetricRow, iteration_s: float) -> Iterator[tuple[str, Cost]]:
    """What recording costs, by what the server does."""
    yield "local", _record(folder / "local", None, row, iteration_s)
    port = free_port()
    yield "down", _record(folder / "down", f"http://127.0.0.1:{port}", row, iteration_s)
    with _slow_server() as slow:
        yield "slow", _record(folder / "slow", slow, row, iteration_s)
    (folder / "server").mkdir()
    with mlflow_server(folder / "server", port) as uri:
        yield "up", _record(folder / "up", uri, row, iteration_s, wait_s=60.0)
        for state in ("down", "slow", "up"):
            _require_all(folder / state, uri)
    _require_all(folder / "local", None)


def _record(
    run_dir: Path, uri: str | None, row: MetricRow, pause_s: float, wait_s: float = 0.0
) -> Cost:
    """Records as often as training does, and sleeps in between."""
    tracker = Tracker.open(run_dir, uri=uri, run_name=run_dir.name)
    calls, cpu = [], []
    for steps in np.split(np.arange(POINTS), ROUNDS):
        spent, began_cpu = 0.0, time.process_time()
        for step in steps.tolist():
            began = time.perf_counter()
            tracker.metrics(row, step)
            spent += time.perf_counter() - began
            time.sleep(pause_s)
        calls.append(spent / steps.size)
        cpu.append((time.process_time() - began_cpu) / steps.size)
    tracker.finish()
    tracker.close(wait_s)
    return calls, cpu


def _require_all(run_dir: Path, uri: str | None) -> None:
    """Counts what the local store has of a run, and what a server has after a copy.

    Raises:
        Failure: if points are missing.
    """
    file, home = read_run_file(run_dir), run_dir.parent
    assert file is not None
    stores: list[Store] = [LocalStore(home)]
    if uri is not None:
        Copy(home, uri).copy([str(stores[0].find_run(file.experiment, file.key))])
        stores.append(Store(uri, home))
    for store in stores:
        arrived = store.steps(str(store.find_run(file.experiment, file.key)), _KEY)
        if len(arrived) != POINTS:
            raise Failure(f"{run_dir.name}: {len(arrived)} of {POINTS} points are in {store.uri}")


@contextmanager
def _slow_server() -> Iterator[str]:
    """A server that takes its time and then has nothing to say."""

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            time.sleep(ANSWER_S)
            self.send_error(503)

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def mlflow_server(folder: Path, port: int) -> Iterator[str]:
    """A real server with a database of its own, ended with all that it started."""
    with (
        (folder / "server.log").open("w+b") as log,
        run_server(local_uri(folder), folder, "127.0.0.1", port, log),
    ):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
