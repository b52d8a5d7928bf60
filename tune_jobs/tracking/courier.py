"""The thread that keeps a store up to date while training goes on."""

import logging
import threading
from pathlib import Path

from cluster_env.core.secrets import hide_secrets
from tune_jobs.tracking.complaints import Complaints
from tune_jobs.tracking.delivery import Busy, Delivery

logger = logging.getLogger("tune_jobs.tracking")

GATHER_S = 5.0  # lets records gather: a call costs as much as dozens of records in it
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0


class Courier:
    """Runs a `Delivery` in a daemon thread, with pauses that double while the store is away.

    Args:
        run_dir: Run directory with the spool.
        uri: MLflow tracking URI; None is the local store beside the run directory.
        complaints: Where troubles are counted.
    """

    def __init__(self, run_dir: Path, uri: str | None, complaints: Complaints) -> None:
        self._run_dir = run_dir
        self._complaints = complaints
        self._delivery = Delivery(run_dir, uri)
        self._wake = threading.Event()
        self._closing = threading.Event()
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
        return self._delivery.progress.runs.get(key)

    def close(self, timeout_s: float) -> int:
        """Sends what waits, within the time and as long as the store takes it.

        Args:
            timeout_s: Seconds to wait at most. A store that is away is tried once more only.

        Returns:
            Number of records that still wait.
        """
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
                if closing:
                    return
                if delivered:
                    pause = FIRST_PAUSE_S
                    self._wake.wait()
                    self._wake.clear()
                    self._closing.wait(GATHER_S)
                else:
                    self._closing.wait(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_S)
        finally:
            self._delivery.close()

    def _deliver(self) -> bool:
        """Delivers what waits; returns False if that failed."""
        before = self._delivery.refused.total()
        try:
            self._delivery.run_to_end()
        except Busy as error:
            self._complaints.add("busy", f"{error}; this process waits for it.")
            return False
        except Exception as error:
            logger.debug("tracking: delivery failed", exc_info=True)
            store = hide_secrets(self.uri)
            self._complaints.add(
                "store away",
                f"{store} takes no records ({hide_secrets(str(error))}); they are kept in "
                f"{self._run_dir / 'tracking'} until it does.",
            )
            return False
        finally:
            if refused := self._delivery.refused.total() - before:
                self._complaints.add(
                    "refused",
                    f"{refused} records were refused by the store; see "
                    f"{self._run_dir / 'tracking' / 'refused.jsonl'}.",
                    refused,
                )
        return True
