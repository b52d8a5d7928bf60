"""``metasched ui`` starts MLflow on the local store, and says at once why it cannot."""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from cluster_env.core.errors import InputError
from tests.ports import free_ports
from tests.waiting import PATIENCE_S
from tune_jobs.tracking import Tracker, local_store
from tune_jobs.ui import command


def message(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, InputError)
    return str(result.exception)


def test_without_a_store_it_says_what_makes_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "metasched train" in message("--runs", str(tmp_path))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example.org")
    assert "http://mlflow.example.org" in message("--runs", str(tmp_path))


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    local_store(tmp_path).touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"127.0.0.1 port {port}" in message("--runs", str(tmp_path), "--port", port)


def test_an_unknown_address_is_named(tmp_path: Path) -> None:
    local_store(tmp_path).touch()
    assert "192.0.2.1" in message("--runs", str(tmp_path), "--host", "192.0.2.1")


@pytest.mark.integration
def test_shows_the_newest_experiment_and_ends_with_all_its_processes(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with Tracker.open(tmp_path / "run") as tracker:
        tracker.metrics({"a": 1}, step=0)
    (port,) = free_ports(1)
    arguments = ["--no-browser", "--runs", str(tmp_path), "--port", str(port)]
    ui = subprocess.Popen(
        [sys.executable, "-m", "tune_jobs.ui", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        line = next_line_with("http://", ui)
        assert f"http://127.0.0.1:{port}/#/experiments/1/runs?" in line
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as page:
            assert b"MLflow" in page.read()
        ui.send_signal(signal.SIGTERM)
        assert ui.wait(PATIENCE_S) == 143
    finally:
        ui.kill()
        ui.communicate()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def next_line_with(text: str, process: subprocess.Popen, timeout_s: float = PATIENCE_S) -> str:
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    while text not in (line := lines.get(timeout=timeout_s)):
        pass
    return line
