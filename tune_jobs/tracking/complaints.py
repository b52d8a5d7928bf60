"""Counting what went wrong without telling the user about it a thousand times."""

import logging
import threading
import time
from collections import Counter

logger = logging.getLogger("tune_jobs.tracking")

REPEAT_AFTER_S = 600.0


class Complaints:
    """Counters of troubles by kind; each kind is logged once, then at most every so often.

    Args:
        repeat_after_s: Seconds for which a kind stays silent after it was logged.
    """

    def __init__(self, repeat_after_s: float = REPEAT_AFTER_S) -> None:
        self._repeat_after_s = repeat_after_s
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, message: str, count: int = 1) -> None:
        """Counts a trouble and logs it as a warning if this kind was silent long enough."""
        now = time.monotonic()
        with self._lock:
            self.counts[kind] += count
            total = self.counts[kind]
            silent = now - self._last.get(kind, float("-inf")) < self._repeat_after_s
            if not silent:
                self._last[kind] = now
        if not silent:
            again = f" ({total} times so far)" if total > count else ""
            logger.warning("tracking: %s%s", message, again)
