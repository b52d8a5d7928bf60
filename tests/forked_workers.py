"""Workers of the shared Ray are forks of a process that has imported what they need.

To import Ray, RLlib and PyTorch takes a worker four seconds of a core, and the tests start a
hundred. Commands that start a Ray of their own start its workers as ever.
"""

import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

PATIENCE_S = 60.0
OF_JOB = ("RAY_JOB_ID", "RAY_RAYLET_PID")
"""Variables of the environment."""


@contextmanager
def forked_workers() -> Iterator[str]:
    """The file that Ray is to call in place of its own, for as long as the block lasts."""
    with (
        tempfile.TemporaryDirectory(prefix="forks") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        ask = Path(folder, "ask_for_fork.py")
        ask.symlink_to(Path(__file__).with_name(ask.name))
        listener.bind(str(ask.with_name("socket")))
        listener.listen(64)
        number = listener.fileno()
        path = os.pathsep.join(sys.path)
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(number)],
            env={**os.environ, "PYTHONPATH": path},
            cwd=Path(__file__).parents[1],
            pass_fds=[number],
            stdin=subprocess.PIPE,  # the server ends with it
        )
        listener.close()  # where the server has ended, nobody waits for it
        try:
            yield str(ask)
        finally:
            assert server.stdin is not None
            server.stdin.close()
            server.wait(PATIENCE_S)


@contextmanager
def ray_of_forks(imports: str) -> Iterator[None]:
    """Ray with four logical CPUs, whose workers are forks.

    They import from the folder, and read the environment, that it is started in: these are the same
    whatever was set by then.

    Args:
        imports: modules of extensions, as METASCHED_IMPORTS names them.
    """
    import pytest
    import ray
    from ray._private.parameter import RayParams

    from tune_jobs.processes.ray_session import SYSTEM_CONFIG, start_patiently

    with forked_workers() as worker_path:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(Path(__file__).parents[1])
            patch.setenv("METASCHED_IMPORTS", imports)
            own = partial(RayParams, worker_path=worker_path)
            patch.setattr("ray._private.parameter.RayParams", own)
            start_patiently(
                address="local",
                num_cpus=4,
                num_gpus=0,
                object_store_memory=1 << 28,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                _node_ip_address="127.0.0.1",
                _system_config=SYSTEM_CONFIG,
            )
        yield
        ray.shutdown()


def serve(listener: socket.socket) -> None:
    """Forks for each that asks, until the standard input ends, and waits for what has ended.

    What Ray reads of the environment as it is imported, is that of the first that asks. Another
    job's worker is told the file with which it starts as ever.
    """
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    first: dict[str, str] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listener:
                asking, _ = listener.accept()
                request = _receive(asking)
                if not first:
                    first = request.environment
                    _prepare(first)
                if any(request.environment[name] != first[name] for name in OF_JOB):
                    asking.sendall(_file_of_ray().encode())
                    asking.close()
                elif child := os.fork():
                    selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, asking))
                else:
                    listener.close()
                    asking.close()
                    _become(request)
                for each in request.streams:
                    os.close(each)
            else:
                child, asking = key.data
                selector.unregister(key.fileobj)
                os.close(key.fd)
                os.waitpid(child, 0)
                asking.close()


class Request(NamedTuple):
    """What `tests.ask_for_fork` sends."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    streams: list[int]


def _receive(asking: socket.socket) -> Request:
    size, streams, _, _ = socket.recv_fds(asking, 8, 3)
    with asking.makefile("rb") as sent:
        return Request(*json.loads(sent.read(int(size))), streams)


def _prepare(environment: Mapping[str, str]) -> None:
    """Imports what workers need."""
    os.environ.update(environment)
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"  # for PyArrow's allocator
    for name in ("rllib_configs.runners.unit_runner", "tune_jobs.runs.trainer"):
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be forked"


def _become(request: Request) -> NoReturn:
    """Goes on as the one that has asked would have."""
    for number, each in enumerate(request.streams):
        os.dup2(each, number)
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    random.seed()
    np.random.seed()  # noqa: NPY002  the shared generator is what is meant
    sys.argv[:] = [_file_of_ray(), *request.arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")
    os._exit(0)


def _file_of_ray() -> str:
    import ray

    return str(Path(ray.__file__).parent / "_private" / "workers" / "default_worker.py")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(socket.socket(fileno=int(sys.argv[1])))
