"""What never comes back ends with one sentence."""

import signal
import subprocess
import sys
import time

import pytest

from cluster_env.core.errors import Failure
from tests.waiting import PATIENCE_S
from tune_jobs.terminal.signals import deadline


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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 1
    assert done.stderr == "metasched: Ray did not start within 0.1 s\n"
