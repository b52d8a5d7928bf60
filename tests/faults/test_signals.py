"""A signal ends a command wherever it finds it: in an import, while Ray starts, in a loop."""

import io
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress

import click
import pytest

from tests.waiting import PATIENCE_S, started
from tune_jobs.terminal.progress import Progress
from tune_jobs.terminal.running import run
from tune_jobs.terminal.signals import StopRequest, heed, sigterm_held_back


def loop_that_nobody_ends(reached: list[str]) -> None:
    with StopRequest(reached.append):
        reached.append("a loop that nobody ends")


def step_of_something_long(reached: list[str]) -> None:
    Progress(io.StringIO()).step(1, "")
    reached.append("something long")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("go_on", [loop_that_nobody_ends, step_of_something_long])
def test_a_signal_that_a_library_catches_ends_what_comes_next(number, status, go_on) -> None:
    reached: list[str] = []

    @click.command()
    def command() -> None:
        with suppress(BaseException):  # as some libraries do while they are imported
            signal.raise_signal(number)
        reached.append("behind the import")
        go_on(reached)

    assert run(command, []) == status
    assert reached == ["behind the import"]
    heed()  # what comes after the command has not been told to end
    assert run(click.Command("another", callback=heed), []) == 0


def test_sigterm_waits_for_the_handler_that_was_there_before() -> None:
    said: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: said.append("ours"))
    try:
        with sigterm_held_back():
            signal.signal(signal.SIGTERM, lambda *_: said.append("theirs"))
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            assert said == []
        assert said == ["ours"]
        signal.raise_signal(signal.SIGTERM)
        assert said == ["ours", "ours"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_processes_that_begin_meanwhile_hear_sigterm() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with ExitStack() as stack:
        with sigterm_held_back():
            process = stack.enter_context(started(command, preexec_fn=lambda: None))
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM


def test_what_is_held_back_for_long_interrupts() -> None:
    code = (
        "import os, signal, time\n"
        "from tune_jobs.terminal import signals\n"
        "signals.HOLD_S = 0.2\n"
        "with signals.heard(), signals.sigterm_held_back():\n"
        "    signal.signal(signal.SIGTERM, lambda number, frame: exit(number))  # as Ray's\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    for _ in range(6000):\n"
        "        time.sleep(0.1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 143
    assert done.stderr == "metasched: terminated\n"


@pytest.mark.integration
def test_sigterm_while_ray_starts_is_no_crash() -> None:
    code = (
        "import os, signal, sys\n"
        "import click, ray\n"
        "from rllib_configs.loading import load_config\n"
        "from tune_jobs.terminal import signals\n"
        "from tune_jobs.terminal.ray_session import ray_session\n"
        "from tune_jobs.terminal.running import run\n"
        "signals.HOLD_S = 600.0  # however busy this machine is\n"
        "connect = ray._private.worker.connect\n"
        "def connect_and_be_told(*args, **options):\n"
        "    connect(*args, **options)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)  # Ray's core has its own handler by now\n"
        "ray._private.worker.connect = connect_and_be_told\n"
        "@click.command()\n"
        "def command():\n"
        "    with ray_session(load_config('deeprm-smoke')):\n"
        "        print('it has started')\n"
        "sys.exit(run(command, []))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (143, ""), done.stderr
    assert "metasched: terminated" in done.stderr
    assert "SIGTERM received" not in done.stderr  # what Ray's core says
