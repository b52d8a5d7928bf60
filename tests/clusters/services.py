"""Processes that a test starts, kills and starts again."""

import contextlib
import importlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import ray

from tests.conftest import REPOSITORY
from tests.ports import free_ports as free_ports
from tests.waiting import wait_for

assert ray.__version__  # Ray puts the psutil that it brings on the path
psutil = importlib.import_module("psutil")

DOCKER = REPOSITORY / "docker"
STOP_TIMEOUT_S = 10.0
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def of_programs() -> dict[str, str]:
    """The environment of programs that are started as in an image; Ray's and MLflow's is left out.

    They find those that are installed beside this Python.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_"))}
    return {**inherited, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def request(
    url: str, body: bytes | None = None, timeout_s: float = 30.0, **headers: str
) -> tuple[int, Any]:
    """Status and answer of a server, as JSON where it is; status 0 if nobody answers."""
    asked = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(asked, timeout=timeout_s) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    except OSError:
        return 0, None
    with contextlib.suppress(ValueError):
        return status, json.loads(text or "{}")
    return status, text


class RayCluster:
    """What clusters of a test share: a token, short paths, jobs. Use it in a ``with`` statement.

    Attributes:
        dashboard: where jobs are submitted, a URL.
        tracking_uri: where MLflow listens.
    """

    dashboard: str
    tracking_uri: str

    def __init__(self) -> None:
        # Paths of Unix sockets must stay below 107 characters.
        self._temp = Path(tempfile.mkdtemp(prefix="ms", dir="/tmp"))
        self._token = secrets.token_hex(32)
        token = self._temp / "token"
        token.write_text(self._token)
        token.chmod(0o600)

    def _of_nodes(self) -> dict[str, str]:
        """The environment of all nodes and drivers."""
        return {
            **of_programs(),
            "PYTHONPATH": str(REPOSITORY),  # where an image would have it installed
            "OMP_NUM_THREADS": "1",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self._temp / "token"),
            "RAY_enable_worker_prestart": "false",  # a node that starts has enough to do
        }

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Runs a command of a user to its end, where users are."""
        raise NotImplementedError

    def _ask(self, path: str) -> Any:
        """What the dashboard answers; None if it does not."""
        authorization = f"Bearer {self._token}"
        status, answer = request(f"{self.dashboard}{path}", Authorization=authorization)
        return answer if status == 200 else None

    def submit(
        self, *command: str, name: str, working_dir: Path = REPOSITORY, **variables: str
    ) -> None:
        """``ray job submit`` of a command, which then runs by itself under that name."""
        variables = {"MLFLOW_TRACKING_URI": self.tracking_uri, **variables}
        runtime_env = json.dumps({"env_vars": variables})
        submit = ["ray", "job", "submit", "--address", self.dashboard, "--no-wait"]
        submit += ["--submission-id", name, "--working-dir", str(working_dir)]
        submit += ["--runtime-env-json", runtime_env]
        done = self._run(*submit, "--", *command)
        assert done.returncode == 0, done.stdout + done.stderr

    def job(self, name: str) -> dict[str, Any]:
        """What the cluster knows of a job; empty where it does not answer."""
        return self._ask(f"/api/jobs/{name}") or {}

    def job_log(self, name: str) -> str:
        """What a job has written."""
        return (self._ask(f"/api/jobs/{name}/logs") or {}).get("logs", "")

    def finish(self, name: str, timeout_s: float) -> None:
        """Waits for a job to succeed."""
        wait_for(lambda: self.job(name).get("status") in ENDED, f"the end of {name}", timeout_s)
        assert self.job(name)["status"] == "SUCCEEDED", f"{self.job(name)}\n{self.job_log(name)}"

    def send_the_rest(self, name: str) -> None:
        """Does what a job says at its end where MLflow was too slow for it: ``metasched sync``."""
        log = wait_for(lambda: self.job_log(name), f"the log of {name}")
        for command in re.findall(r"send them with: (metasched sync .+)", log):
            done = self._run(*shlex.split(command))
            assert "nothing is left to send" in done.stdout, done.stdout + done.stderr

    def start(self) -> None:
        """Starts all of it and waits for it."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends all of it and removes its temporary files."""
        shutil.rmtree(self._temp, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


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
        return listening(self._family())

    def _family(self) -> list[Any]:
        return [] if self._process is None or self.has_ended() else family(self._process.pid)

    def has_ended(self) -> bool:
        """Whether it is not running."""
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """Kills it and everything below it at once, as a machine that loses its power."""
        self._end(self._family(), signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to end, and kills what is left."""
        family = self._family()
        if not self.has_ended():
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


def family(pid: int) -> list[Any]:
    """All processes below one and itself, as far as they live."""
    try:
        parent = psutil.Process(pid)
        return [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return []


def listening(processes: Iterable[Any]) -> set[str]:
    """Addresses on which processes wait for others."""
    found = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            connections = process.net_connections("tcp")
            found |= {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}
    return found
