"""Slurm's programs, called without a shell, and within bounds of time and size.

Nothing but the standard library is imported, so that the watchdog starts in a moment, and what
breaks an import of ours does not keep it from working.
"""

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

TIMEOUT_S = 30.0
SQUEUE_TIMEOUT_S = 60.0
"""The queue of a large site takes longer than anything else that is asked for."""
MOST_BYTES = 1 << 26
"""What one program may print: more than a queue of 200,000 jobs."""
_LOOK_S = 0.2
_DENIED = ("invalid user id", "permission denied")


class SiteAway(RuntimeError):
    """The site does not answer, or not in time; it may come back."""


class Refused(SiteAway):
    """A command ended with an error: the site is away, or does not do what was asked for."""


class Forbidden(Refused):
    """The account that asks may not do that."""


def call(
    program: str,
    *arguments: str,
    text: str = "",
    timeout_s: float = TIMEOUT_S,
    stopping: Callable[[], bool] = lambda: False,
) -> str:
    """What a program of Slurm prints.

    Args:
        program: found on PATH.
        arguments: one by one; no shell ever sees them.
        text: what it reads.
        timeout_s: seconds after which it is killed.
        stopping: asked all the while; the program is killed once it holds.

    Raises:
        Refused: if it fails.
        Forbidden: if it says that the account may not do that.
        SiteAway: if it is missing, takes too long, or prints more than `MOST_BYTES`.
    """
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                [program, *arguments],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,  # Ctrl-C is ours, and what it starts is killed with it
            )
        except OSError as error:
            raise SiteAway(f"{program} cannot be called: {error.strerror}") from None
    with process:
        try:
            printed, complaint = _outputs(process, program, timeout_s, stopping)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        lines = complaint.strip().splitlines() or ["no message"]
        denied = any(words in complaint.lower() for words in _DENIED)
        how = Forbidden if denied else Refused
        raise how(f"{program} failed: {' '.join(lines[-1].split())[:200]}")
    return printed


def _outputs(
    process: "subprocess.Popen[bytes]",
    program: str,
    timeout_s: float,
    stopping: Callable[[], bool],
) -> tuple[str, str]:
    """What a process prints to stdout and stderr until it ends."""
    deadline = time.monotonic() + timeout_s
    texts = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in texts:
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, texts[stream])
        while selector.get_map() or process.poll() is None:
            if stopping():
                raise SiteAway(f"{program} was not waited for")
            if (left := deadline - time.monotonic()) <= 0:
                raise SiteAway(f"{program} did not answer within {timeout_s:g} s")
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(left, _LOOK_S))
            for key, _ in selector.select(min(left, _LOOK_S)):
                if part := os.read(key.fd, 1 << 16):
                    key.data.extend(part)
                else:
                    selector.unregister(key.fileobj)
                if len(key.data) > MOST_BYTES:
                    raise SiteAway(f"{program} printed more than {MOST_BYTES >> 20} MiB")
    printed, complaint = (text.decode(errors="replace") for text in texts.values())
    return printed, complaint
