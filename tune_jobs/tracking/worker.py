"""Threads that do what has gathered, and try again where that fails."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from rllib_configs.config.secrets import hide_secrets
from tune_jobs.tracking.store import reason

logger = logging.getLogger("tune_jobs.tracking")

GATHER_S = 5.0  # lets records gather: a call costs as much as dozens of points in it
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
REPEAT_AFTER_S = 600.0

BUSY = ("timed out", "database is locked")
"""Parts of troubles that pass: a server that is slow, a database that others write to."""


class LogThrottle:
    """Counts troubles by kind, and logs each kind once, then at most every ten minutes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self.counts: Counter[str] = Counter()

    def warn(self, kind: str, message: str, count: int = 1) -> None:
        """Counts a trouble and logs it as a warning if this kind was silent long enough."""
        now = time.monotonic()
        with self._lock:
            self.counts[kind] += count
            total = self.counts[kind]
            if now - self._last.get(kind, float("-inf")) < REPEAT_AFTER_S:
                return
            self._last[kind] = now
        again = f" ({total} times so far)" if total > count else ""
        logger.warning("tracking: %s%s", hide_secrets(message), again)


class Worker:
    """A daemon thread that calls a function after each `wake`, with pauses for more to gather.

    Where the function raises, `failed` is called with what the error comes down to, and the
    function again after pauses that double.
    """

    def __init__(self, name: str, work: Callable[[], None], failed: Callable[[str], None]) -> None:
        self._do, self._failed = work, failed
        self._wake, self._closing = threading.Event(), threading.Event()
        self._deadline = float("inf")
        self._trouble = ""
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Says that there is something to do."""
        self._wake.set()

    def close(self, timeout_s: float) -> str:
        """Has the rest done, within the time.

        Args:
            timeout_s: Seconds to wait at most. What fails is tried once more only; what is busy, as
                often as the time allows.

        Returns:
            Why something is left, empty if nothing is.
        """
        self._deadline = time.monotonic() + timeout_s
        self._closing.set()
        self._wake.set()
        self._thread.join(max(timeout_s, 0.0))
        return self._trouble or ("not yet done" if self._thread.is_alive() else "")

    def _work(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            self._wake.wait()
            self._wake.clear()
            closing = self._closing.is_set()  # asked before, so that nothing is left behind
            try:
                self._do()
            except Exception as error:
                logger.debug("tracking: %s failed", self._thread.name, exc_info=True)
                self._trouble = hide_secrets(reason(error))
                self._failed(self._trouble)
                self._wake.set()  # again, after a pause
            else:
                self._trouble, pause = "", FIRST_PAUSE_S
            is_busy = any(text in self._trouble for text in BUSY)
            if closing and not (is_busy and time.monotonic() + FIRST_PAUSE_S < self._deadline):
                return
            if closing:
                time.sleep(FIRST_PAUSE_S)
            elif self._trouble:
                self._closing.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                self._closing.wait(GATHER_S)
