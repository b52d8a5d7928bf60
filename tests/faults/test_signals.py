"""A signal ends a command wherever it finds it, and an alarm what never comes back."""

import io
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress

import click
import pytest

from cluster_env.core.errors import Failure
from tests.waiting import run_python, started
from tune_jobs.terminal.progress import Progress
from tune_jobs.terminal.running import run
from tune_jobs.terminal.signals import StopRequest, deadline, heed, sigterm_held_back


def loop_that_nobody_ends(reached: list[str]) -> None:
    with StopRequest(reached.append):
        reached.append("a loop that nobody ends")


def step_of_something_long(reached: list[str]) -> None:
    Progress(io.StringIO()).step(1, "")
    reached.append("something long")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
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
    done = run_python("-c", code)
    assert done.returncode == 143
    assert done.stderr == "metasched: terminated\n"


@pytest.mark.integration
def test_sigterm_while_ray_starts_is_no_crash() -> None:
    code = (
        "import os, signal, sys\n"
        "import click, ray\n"
        "from rllib_configs.config.loading import load_config\n"
        "from tune_jobs.terminal import signals\n"
        "from tune_jobs.processes.ray_session import ray_session\n"
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
    done = run_python("-c", code)
    assert (done.returncode, done.stdout) == (143, ""), done.stderr
    assert "metasched: terminated" in done.stderr
    assert "SIGTERM received" not in done.stderr  # what Ray's core says


def test_what_takes_too_long_is_interrupted_and_says_what() -> None:
    def sleep() -> None:
        with deadline(0.1, "Ray did not start (why)"):
            try:
                time.sleep(600)
            except Exception:
                pytest.fail("somebody else could have gone on")

    with pytest.raises(Failure, match=r"^Ray did not start \(why\) within 0.1 s$"):
        sleep()


def test_what_is_in_time_leaves_no_alarm_behind_and_those_of_others_alone() -> None:
    before = signal.getitimer(signal.ITIMER_REAL)[0]  # that of pytest-timeout
    with deadline(30, "nothing happened"):
        pass
    after = signal.getitimer(signal.ITIMER_REAL)[0]
    assert (after > 0) == (before > 0)
    assert before - 100 < after <= before


def test_compiled_code_that_hears_no_alarm_ends_with_the_process() -> None:
    code = (
        "import ctypes\nfrom tune_jobs.terminal.signals import deadline\n"
        "libc = ctypes.CDLL(None)\n"
        "with deadline(0.1, 'Ray did not start', grace_s=0.3):\n"
        "    lock = ctypes.create_string_buffer(64)\n"
        "    libc.sem_init(lock, 0, 0)\n"
        "    sigset = ctypes.create_string_buffer(b'\\xff' * 128)\n"
        "    libc.pthread_sigmask(0, sigset, None)\n"
        "    libc.sem_wait(lock)\n"
    )
    done = run_python("-c", code)
    assert done.returncode == 1
    assert done.stderr == "metasched: Ray did not start within 0.1 s\n"
