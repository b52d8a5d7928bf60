"""What ``metasched ui`` does: MLflow's web server, for as long as the user looks."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

import click

from cluster_env.core.errors import InputError
from tune_jobs.tracking.moving import mend_addresses
from tune_jobs.tracking.places import ARTIFACT_FOLDER, local_store, local_uri
from tune_jobs.tracking.sending import settle_lost_runs
from tune_jobs.tracking.tracker import RESULTS
from tune_jobs.tracking.view import share_view

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 10.0
_LINES_SHOWN = 8  # the last ones of a server that failed
HINT = "A page without runs? Choose 'Model training' at its top left. Ctrl-C ends MLflow."


def show_runs(runs: Path, port: int, host: str, no_browser: bool) -> None:
    """Serves MLflow's pages of a folder of runs until Ctrl-C.

    Raises:
        InputError: if there is no store, or the port is taken.
    """
    if not local_store(runs).is_file():
        raise InputError(_no_store(runs))
    _check_port(host, port)
    # What MLflow cannot know: that the folder was moved, and that processes are gone.
    if moved := mend_addresses(local_store(runs)):
        places = ", ".join(map(str, moved))
        click.echo(f"The runs were moved from {places}: their figures are looked for here now.")
    if killed := settle_lost_runs(runs):
        click.echo(f"The process is gone, so it is KILLED now: {', '.join(killed)}.")
    url = _url(host, port)
    click.echo(f"Starting MLflow on {local_store(runs)} ...")
    artifacts = runs.absolute() / ARTIFACT_FOLDER
    with (
        tempfile.TemporaryFile() as log,
        run_server(local_uri(runs), artifacts, host, port, log) as server,
    ):
        page = _page(url)
        click.echo(f"MLflow shows your runs at {page}\n{HINT}")
        # A text browser would take over the terminal.
        screen = sys.platform == "darwin" or os.environ.get("DISPLAY")
        if not no_browser and (screen or os.environ.get("WAYLAND_DISPLAY")):
            webbrowser.open(page)
        try:
            status = server.wait()
        except KeyboardInterrupt:
            click.echo("\nStopping MLflow.")
            return
        _give_up(f"MLflow has ended by itself with status {status}", log)


def _url(host: str, port: int) -> str:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{reachable}]' if ':' in reachable else reachable}:{port}"


def _page(url: str) -> str:
    """Address of the table of the experiment that was trained in last, with the columns that count.

    MLflow's own start page shows what it offers for chat applications and hides training runs.
    """
    try:
        found = _ask(url, "experiments/search", {"max_results": 1000})["experiments"]
        newest = {"max_results": 1, "order_by": ["start_time DESC"]}
        runs: list[Any] = []
        for is_result in (False, True):  # results only where nothing was trained
            ids = [one["experiment_id"] for one in found if (one["name"] == RESULTS) == is_result]
            runs += _ask(url, "runs/search", {"experiment_ids": ids, **newest}).get("runs", [])
        experiment = runs[0]["info"]["experiment_id"]
        view = share_view(partial(_ask, url), experiment)
    except (OSError, ValueError, LookupError):
        return f"{url}/#/experiments?workflowType=machine_learning"
    return f"{url}/#/experiments/{experiment}/runs?workflowType=machine_learning&{view}"


def _ask(url: str, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One call of MLflow's REST interface."""
    request = urllib.request.Request(
        f"{url}/api/2.0/mlflow/{question}",
        data=json.dumps(arguments).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10.0) as answer:
        return json.load(answer)


def _no_store(runs: Path) -> str:
    server = os.environ.get("MLFLOW_TRACKING_URI", "")
    if server.startswith("http"):
        return (
            f"there are no runs in {runs}; MLFLOW_TRACKING_URI names {server}, "
            "open that address in a browser"
        )
    return (
        f"there are no recorded runs in {runs} ({local_store(runs).name} is missing): "
        "run make demo or metasched train first, or name their folder with --runs"
    )


def _check_port(host: str, port: int) -> None:
    """Raises InputError unless the server will be able to listen."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host} port {port} ({error.strerror}); "
            f"choose another one, such as --port {port + 1 if port < 65535 else 5000}"
        ) from None


@contextmanager
def run_server(
    store: str, artifacts: Path, host: str, port: int, log: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """MLflow's server in a process group of its own, stopped with all its workers at the end.

    It serves the database `store`, and files in the folder `artifacts`; `log` takes what it prints.

    Raises:
        Exit: if it does not answer within START_TIMEOUT_S.
    """
    arguments = ["server", "--backend-store-uri", store, "--host", host, "--port", str(port)]
    arguments += ["--artifacts-destination", artifacts.as_uri(), "--workers", "1"]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "mlflow", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**quiet, **os.environ},
        start_new_session=True,
    )
    try:
        _wait_until_up(server, _url(host, port), log)
        yield server
    finally:
        _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group, by force after STOP_TIMEOUT_S."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_TIMEOUT_S
        try:
            os.killpg(server.pid, number)
            while time.monotonic() < deadline:
                server.poll()  # a process that nobody has asked for its status still counts
                os.killpg(server.pid, 0)
                time.sleep(0.1)
        except ProcessLookupError:
            return


def _wait_until_up(server: subprocess.Popen[bytes], url: str, log: IO[bytes]) -> None:
    """Returns when ``/health`` answers.

    Raises:
        click.exceptions.Exit: The server ended, or needed longer than START_TIMEOUT_S.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            _give_up("MLflow did not start", log)
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2.0):
                return
        except OSError:
            time.sleep(0.2)
    _give_up(f"MLflow did not answer at {url}/health within {START_TIMEOUT_S:.0f} s", log)


def _give_up(message: str, log: IO[bytes]) -> NoReturn:
    """Ends the command with status 1, after the last lines that the server has written."""
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()[-_LINES_SHOWN:]
    click.echo("\n".join([*lines, f"metasched: {message}"]), err=True)
    raise click.exceptions.Exit(1)
