"""Writes down the records of a run directory, and has a thread deliver them."""

import logging
import math
import os
import shlex
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_configs.secrets import hide_secrets
from tune_jobs.terminal.files import FileLock
from tune_jobs.tracking.delivered import LOCK_FILE
from tune_jobs.tracking.delivery import Busy, Delivery
from tune_jobs.tracking.places import database_beside, recorded_store, tracking_uri
from tune_jobs.tracking.process import this_process
from tune_jobs.tracking.recorded import RecordedPoints
from tune_jobs.tracking.spool import Spool, tracking_dir
from tune_jobs.tracking.store import StoreAway

logger = logging.getLogger("tune_jobs.tracking")

GATHER_S = 5.0  # lets records gather: a call costs as much as dozens of records in it
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
REPEAT_AFTER_S = 600.0


@dataclass(frozen=True)
class Report:
    """What became of the records of a run directory.

    Attributes:
        waiting: Records on disk that the store does not have yet.
        refused: Records that the store will never take; they are in ``refused.jsonl``.
        lost: Records or values that could not even be written down.
        message: One sentence for the user, empty if everything arrived.
    """

    waiting: int = 0
    refused: int = 0
    lost: int = 0
    message: str = ""


class LogThrottle:
    """Counts troubles by kind, and logs each kind once, then at most every so often.

    Args:
        repeat_after_s: Seconds for which a kind stays silent after it was logged.
    """

    def __init__(self, repeat_after_s: float = REPEAT_AFTER_S) -> None:
        self._repeat_after_s = repeat_after_s
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self.counts: Counter[str] = Counter()

    def warn(self, kind: str, message: str, count: int = 1) -> None:
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


class DeliveryThread:
    """Runs a `Delivery` in a daemon thread, with pauses that double while the store is away.

    Args:
        run_dir: Run directory with the spool.
        uri: MLflow tracking URI; None is the local store beside the run directory.
        throttle: Where troubles are counted.
    """

    def __init__(self, run_dir: Path, uri: str | None, throttle: LogThrottle) -> None:
        self._run_dir = run_dir
        self._throttle = throttle
        self._delivery = Delivery(run_dir, uri)
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._deadline = math.inf  # of the tries after closing, by the monotonic clock
        self._is_slow = False  # the store, when it was tried last
        self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
        self._thread.start()

    @property
    def uri(self) -> str:
        """The store that records are sent to."""
        return self._delivery.uri

    def wake(self) -> None:
        """Says that there is a new record."""
        self._wake.set()

    def run_id(self, key: str) -> str | None:
        """The store's id of a run, None until the store has it."""
        return self._delivery.delivered.runs.get(key)

    def close(self, timeout_s: float) -> int:
        """Sends what waits, within the time and as long as the store takes it.

        Args:
            timeout_s: Seconds to wait at most. A store that is away is tried once more only, one
                that is too busy to answer as often as the time allows.

        Returns:
            Number of records that still wait.
        """
        self._deadline = time.monotonic() + timeout_s
        self._closing.set()
        self._wake.set()
        self._thread.join(max(timeout_s, 0.0))
        return self._delivery.waiting()

    def _work(self) -> None:
        pause = FIRST_PAUSE_S
        try:
            while True:
                closing = self._closing.is_set()  # asked before, so that nothing is left behind
                delivered = self._deliver()
                in_time = time.monotonic() + FIRST_PAUSE_S < self._deadline
                if closing and (delivered or not (self._is_slow and in_time)):
                    return
                if delivered:
                    pause = FIRST_PAUSE_S
                    self._wake.wait()
                    self._wake.clear()
                    self._closing.wait(GATHER_S)
                elif closing:
                    time.sleep(FIRST_PAUSE_S)
                else:
                    self._closing.wait(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_S)
        finally:
            self._delivery.close()

    def _deliver(self) -> bool:
        """Delivers what waits; returns False if that failed."""
        before = self._delivery.refused.total()
        self._is_slow = False
        try:
            self._delivery.run_to_end()
        except Busy as error:
            self._throttle.warn("busy", f"{error}; this process waits for it.")
            return False
        except Exception as error:
            logger.debug("tracking: delivery failed", exc_info=True)
            self._is_slow = isinstance(error, StoreAway) and error.is_slow
            store = hide_secrets(self.uri)
            self._throttle.warn(
                "store away",
                f"{store} takes no records ({hide_secrets(str(error))}); they are kept in "
                f"{self._run_dir / 'tracking'} until it does.",
            )
            return False
        finally:
            if refused := self._delivery.refused.total() - before:
                self._throttle.warn(
                    "refused",
                    f"{refused} records were refused by the store; see "
                    f"{self._run_dir / 'tracking' / 'refused.jsonl'}.",
                    refused,
                )
        return True


def send_in_time(run_dir: Path, timeout_s: float = 30.0) -> int:
    """Sends what waits in a run directory, unless its own process is at it, which will send it.

    Returns:
        Number of records that still wait.
    """
    lock = FileLock(tracking_dir(run_dir) / LOCK_FILE)
    if not lock.acquire(wait=False):
        return 0
    lock.release()
    return DeliveryThread(run_dir, recorded_store(run_dir), LogThrottle()).close(timeout_s)


class Writer:
    """What the trackers of one run directory share: it writes their records to the spool.

    Args:
        run_dir: Absolute path of the run directory.
        uri: MLflow tracking URI, None for the one used before, else the environment's, else the
            local store.
    """

    def __init__(self, run_dir: Path, uri: str | None) -> None:
        self.run_dir = run_dir
        self.throttle = LogThrottle()
        self.spool = Spool(tracking_dir(run_dir))
        self.started = {record["run"]: record for record in self.spool.of_kind("start")}
        self.points = RecordedPoints(self.spool)
        if uri is None:
            opened = self.spool.of_kind("open")
            named = recorded_store(run_dir) if opened else os.environ.get("MLFLOW_TRACKING_URI")
            uri = named or None
        if uri is not None:
            uri = tracking_uri(run_dir, uri)
        opening = {"uri": uri and hide_secrets(uri), "beside": database_beside(run_dir, uri)}
        self._write({"kind": "open", **opening, "time": now_ms(), "process": this_process()})
        self.delivery = DeliveryThread(run_dir, uri, self.throttle)

    def record(self, kind: str, **fields: Any) -> None:
        """Writes a record and wakes the thread."""
        self._write({"kind": kind, **fields})
        self.delivery.wake()

    def _write(self, record: dict[str, Any]) -> None:
        if record["kind"] != "metrics":  # they hold numbers alone
            record = hidden(record)
        try:
            self.spool.append(record)
        except OSError as error:
            self.throttle.warn(
                "unwritten", f"{self.spool.path} cannot be written ({error}); trying again."
            )
        except OverflowError as error:
            self.throttle.warn("lost", f"{self.spool.path} cannot be written: {error}.")

    def close(self, timeout_s: float) -> Report:
        """Waits for the thread, at most ``timeout_s`` seconds, and says what is left."""
        in_memory = self.spool.close()
        waiting = self.delivery.close(timeout_s)
        lost = self.throttle.counts["lost"] + in_memory
        message = ""
        if waiting:
            message = (
                f"{waiting} records wait for {hide_secrets(self.delivery.uri)}; "
                f"send them with: metasched sync {shlex.quote(str(self.run_dir))}"
            )
            logger.warning("tracking: %s", message)
        return Report(waiting, self.throttle.counts["refused"], lost, message)


def hidden(value: Any) -> Any:
    """The same without secrets in its texts; keys stay what they are."""
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, Mapping):
        return {key: hidden(inner) for key, inner in value.items()}
    return value


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
