"""A process of its own that releases all held jobs when the one that steers makes no progress.

The steerer writes to its standard input whenever it has completed a tick. If nothing comes for too
long, or the pipe breaks because the steerer has died of whatever, it closes the pipe, so that a
steerer that comes back cannot go on, and *stands in*: it releases what is held, and what is
submitted held from then on, until somebody ends it (SIGTERM). If it is told to stop, it releases
what is held and ends.

It imports the standard library alone. One file is locked for as long as it runs, so that no two
steer the same jobs.
"""

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType

from tune_jobs.site.commands import SQUEUE_TIMEOUT_S, Forbidden, SiteAway
from tune_jobs.site.controller import change, held_jobs
from tune_jobs.site.locking import Locked, lock_cluster
from tune_jobs.site.trouble import Trouble

BEAT, STOP = b".", b"q"
READY = "ready"
EVERY_S = 1.0
"""From look to look while it releases."""
PATIENCE_S = 30.0
"""Without progress, after which a release that somebody waits for is given up."""


class Watchdog:
    """The other end: what the steerer has of its watchdog.

    Args:
        limit_s: seconds without a completed tick after which it stands in.
        partitions: whose jobs it releases; all if none is named.
        cluster: that it locks.
        squeue_timeout_s: seconds that squeue may take.

    Raises:
        RuntimeError: if somebody else has locked the cluster, or it does not start.
    """

    def __init__(
        self,
        limit_s: float,
        partitions: Sequence[str],
        cluster: str,
        squeue_timeout_s: float = SQUEUE_TIMEOUT_S,
    ) -> None:
        settings = json.dumps([limit_s, list(partitions), cluster, squeue_timeout_s])
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the steerer
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        os.set_blocking(self._stdin.fileno(), False)  # if it reads nothing, we must not stop
        said = self._process.stdout.readline().decode().strip()
        if said != READY:
            self._process.wait()
            raise RuntimeError(said or "it did not start")
        self._poll = select.poll()
        self._poll.register(self._stdin.fileno(), 0)

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    @property
    def watches(self) -> bool:
        """Whether it waits for signs: it has neither ended nor closed the pipe to stand in."""
        return not self._poll.poll(0)  # nobody reads the pipe any longer: an error

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, to watch or to stand in."""
        return self._process.poll() is None

    def beat(self) -> None:
        """A sign of progress."""
        with contextlib.suppress(OSError):
            os.write(self._stdin.fileno(), BEAT)

    def leave(self) -> None:
        """Has it stand in from now on."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def stop(self, wait_s: float) -> int | None:
        """Has it release all that is held and end; returns its status, None if it still runs."""
        with contextlib.suppress(OSError):
            os.write(self._stdin.fileno(), STOP)
        try:
            return self._process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            return None


def watch(limit_s: float, source: int) -> bool:
    """Returns when there is something to do: whether it was told to stop, and nothing has failed.

    Args:
        limit_s: seconds without a sign of progress.
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
    partitions: Sequence[str],
    *,
    stay: bool,
    patience_s: float = math.inf,
    squeue_timeout_s: float = SQUEUE_TIMEOUT_S,
    announce: Callable[[str], None] = lambda sentence: None,
) -> None:
    """Releases what is held until nothing is; or for ever, if it is to stay.

    Args:
        partitions: whose jobs; all if none is named.
        stay: whether it goes on when nothing is held.
        patience_s: seconds after which it gives up if nothing was released.
        squeue_timeout_s: seconds that squeue may take.
        announce: takes a sentence on what fails, when that is new, and on the recovery.

    Raises:
        Forbidden: if this account may not release all, unless it is to stay.
        SiteAway: if it gives up.
    """
    trouble = Trouble("held jobs cannot be released yet", announce)
    tried, progress_at = frozenset[str](), time.monotonic()
    while True:
        problem = ""
        try:
            held = held_jobs(partitions, squeue_timeout_s)
            if not held and not stay:
                trouble.note("")
                return
            still = tried.intersection(held)
            if not held or tried - still:
                progress_at = time.monotonic()
            tried = frozenset(held)
            refusals = change("release", held)
            if still:
                problem = (
                    f"{len(still)} stay held{': ' if refusals else ''}{''.join(refusals[-1:])}"
                )
        except SiteAway as error:
            if isinstance(error, Forbidden) and not stay:
                raise
            problem = str(error)
        trouble.note(problem)
        if problem and time.monotonic() - progress_at > patience_s:
            raise SiteAway(problem)
        time.sleep(EVERY_S)


def main(arguments: Sequence[str]) -> int:
    """Watches, then releases."""
    limit_s, partitions, cluster, squeue_timeout_s = json.loads(arguments[0])
    try:
        lock = lock_cluster(cluster)
    except Locked as error:
        sys.stdout.write(f"{error}\n")
        return 1
    try:
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        return _guard(limit_s, partitions, squeue_timeout_s)
    finally:
        lock.unlink(missing_ok=True)


def _guard(limit_s: float, partitions: Sequence[str], squeue_timeout_s: float) -> int:
    source = sys.stdin.fileno()
    told_to_stop = watch(limit_s, source)

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    os.close(source)
    if not told_to_stop:
        _say(
            f"steering has ended; process {os.getpid()} releases all held jobs until it is stopped"
        )
    try:
        release_all(
            partitions,
            stay=not told_to_stop,
            squeue_timeout_s=squeue_timeout_s,
            announce=_say,
        )
    except Forbidden as error:
        _say(f"not all held jobs could be released: {error}")
        return 1
    return 0


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # whoever has started the steerer may be gone
        sys.stderr.write(f"metasched: {sentence}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
