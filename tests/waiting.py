"""Waiting for what other processes do, as long as a busy machine may take."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

PATIENCE_S = 200.0
"""Less than the limit of a test, so that it says what it has waited for."""


def wait_for(
    what: Callable[[], Any],
    description: str,
    timeout_s: float = PATIENCE_S,
    process: "subprocess.Popen[Any] | None" = None,
) -> Any:
    """Waits until something is true, and returns it.

    Args:
        what: asked again and again.
        description: of it, for an error.
        timeout_s: seconds until it counts as lost.
        process: that it depends on, so that nobody waits for one that has ended.
    """
    deadline = time.monotonic() + timeout_s
    while not (found := what()):
        if process is not None and process.poll() is not None:
            assert what(), f"{process.args} ended with {process.returncode} before {description}"
        assert time.monotonic() < deadline, f"{description} did not happen within {timeout_s:g} s"
        time.sleep(0.1)
    return found


def run_python(
    *arguments: str, timeout_s: float = PATIENCE_S, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """What a process with the modules of this one says and ends with.

    Args:
        arguments: of Python, as ``-c`` and code.
        timeout_s: seconds that it may take.
        environment: what differs in it.
    """
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@contextmanager
def started(command: list[str], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """A process in a group of its own, all of which is killed where a test leaves it running."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
