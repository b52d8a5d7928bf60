"""Servers of tests, on this machine alone."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tune_jobs.tracking import local_uri
from tune_jobs.tracking.server import run_server


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
