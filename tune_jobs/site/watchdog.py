"""A process of its own that releases all held jobs when the one that steers them is gone.

The steerer writes to its standard input again and again. If nothing comes for too long, or the pipe
breaks because the steerer has died of whatever, it closes the pipe, so that a steerer that comes
back cannot go on, and *stands in*: it releases what is held, and what is submitted held from then
on, until somebody ends it (SIGTERM). If it is told to stop, it releases what is held and ends.

It imports the standard library alone. One file is locked for as long as it runs, so that no two
steer the same jobs.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType

from tune_jobs.site.controller import Forbidden, SiteAway, change, held_jobs

BEAT, STOP = b".", b"q"
READY = "ready"
EVERY_S = 1.0
"""From look to look while it releases."""


class Watchdog:
    """The other end: what the steerer has of its watchdog.

    Args:
        limit_s: seconds without a sign of life after which it stands in.
        partitions: whose jobs it releases; all if none is named.
        lock: file that it locks.

    Raises:
        RuntimeError: if somebody else holds the lock, or it does not start.
    """

    def __init__(self, limit_s: float, partitions: Sequence[str], lock: str) -> None:
        settings = json.dumps([limit_s, list(partitions), lock])
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the steerer
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipe = self._process.stdin.fileno()
        os.set_blocking(self._pipe, False)  # a watchdog that reads nothing must not stop us
        said = self._process.stdout.readline().decode().strip()
        if said != READY:
            self._process.wait()
            raise RuntimeError(said or "it did not start")

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    def beat(self) -> bool:
        """A sign of life; returns whether the watchdog still watches."""
        try:
            return os.write(self._pipe, BEAT) == len(BEAT)
        except OSError:
            return False

    def stop(self, wait_s: float) -> bool:
        """Has it release all that is held and end; returns whether it did so in time."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, STOP)
        try:
            self._process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            return False
        return True


def watch(limit_s: float, source: int) -> bool:
    """Returns when there is something to do: whether it was told to stop, and nothing has failed.

    Args:
        limit_s: seconds without a sign of life.
        source: where signs come from.
    """
    deadline = time.monotonic() + limit_s
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([source], [], [], left)
        if not ready:
            continue
        signs = os.read(source, 4096)
        if not signs or STOP in signs:
            return STOP in signs
        deadline = time.monotonic() + limit_s
    return False


def release_all(
    partitions: Sequence[str], *, stay: bool, announce: Callable[[str], None] = lambda problem: None
) -> None:
    """Releases what is held until nothing is; or for ever, if it is to stay.

    Args:
        partitions: whose jobs; all if none is named.
        stay: whether it goes on when nothing is held.
        announce: called with what Slurm fails with, when that is new, while it is waited for.

    Raises:
        Forbidden: if this account may not release all, unless it is to stay.
    """
    problem = ""
    while True:
        try:
            held = held_jobs(partitions)
            if held:
                change("release", held)
            elif not stay:
                return
        except SiteAway as error:
            if isinstance(error, Forbidden) and not stay:
                raise
            if str(error) != problem:
                problem = str(error)
                announce(problem)
        time.sleep(EVERY_S)


def _lock(path: str) -> str:
    """Takes the lock for as long as this process lives; says who has it otherwise."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 32).decode(errors="replace").strip()
        return f"process {holder} steers these jobs or stands in for one that did ({path})"
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())
    return ""


def main(arguments: Sequence[str]) -> int:
    """Watches, then releases."""
    limit_s, partitions, lock = json.loads(arguments[0])
    source = sys.stdin.fileno()

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    try:
        refused = _lock(lock)
    except OSError as error:
        refused = f"{lock} cannot be locked: {error.strerror}"
    sys.stdout.write(f"{refused or READY}\n")
    sys.stdout.flush()
    if refused:
        return 1
    told_to_stop = watch(limit_s, source)
    signal.signal(signal.SIGTERM, leave)
    os.close(source)
    if not told_to_stop:
        with contextlib.suppress(OSError):
            sys.stderr.write(
                f"metasched: steering has ended; process {os.getpid()} releases all held "
                "jobs until it is stopped\n"
            )
    try:
        release_all(partitions, stay=not told_to_stop)
    except Forbidden as error:
        sys.stderr.write(f"metasched: not all held jobs could be released: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
