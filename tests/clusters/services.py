"""Processes that a test starts, kills and starts again."""

import contextlib
import importlib
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from tests.ports import free_ports as free_ports

assert ray.__version__  # Ray puts the psutil that it brings on the path
psutil = importlib.import_module("psutil")

STOP_TIMEOUT_S = 10.0


class Service:
    """One process of the cluster with all that it starts, and its log.

    Args:
        command: what to run.
        environment: its whole environment.
        log: file that its output is appended to.
    """

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._command = list(command)
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it; a service that runs is left alone."""
        if self._process is not None and self._process.poll() is None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def listening(self) -> set[str]:
        """Addresses on which it and everything below it wait for others."""
        found = [
            each for process in _family(self._process) for each in process.net_connections("tcp")
        ]
        return {each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN}

    def has_ended(self) -> bool:
        """Whether it is not running."""
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """Kills it and everything below it at once, as a machine that loses its power."""
        self._end(_family(self._process), signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to end, and kills what is left."""
        family = _family(self._process)
        if not self.has_ended():
            assert self._process is not None
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
        self._end(family, signal.SIGKILL)

    def _end(self, family: list[Any], number: signal.Signals) -> None:
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        psutil.wait_procs(family, STOP_TIMEOUT_S)
        if self._process is not None:
            self._process.wait(STOP_TIMEOUT_S)

    def log(self) -> str:
        """What it has written."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def _family(process: subprocess.Popen[bytes] | None) -> list[Any]:
    """A process and all below it, as far as they live."""
    if process is None or process.poll() is not None:
        return []
    try:
        parent = psutil.Process(process.pid)
        return [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return []
