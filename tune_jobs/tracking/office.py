"""What the trackers of one run directory share: the spool, the courier, the complaints."""

import logging
import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_env.core.secrets import hide_secrets
from tune_jobs.tracking.complaints import Complaints
from tune_jobs.tracking.courier import Courier
from tune_jobs.tracking.spool import Spool, tracking_dir
from tune_jobs.tracking.store import tracking_uri

logger = logging.getLogger("tune_jobs.tracking")


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


class Office:
    """Takes the records of one run directory and has them delivered.

    Args:
        run_dir: Absolute path of the run directory.
        uri: MLflow tracking URI, None for the one used before, else the environment's, else the
            local store.
    """

    def __init__(self, run_dir: Path, uri: str | None) -> None:
        self.run_dir = run_dir
        self.complaints = Complaints()
        self.spool = Spool(tracking_dir(run_dir))
        self.started = {record["run"]: record for record in self.spool.of_kind("start")}
        if uri is None:
            opened = self.spool.of_kind("open")
            uri = opened[-1]["uri"] if opened else os.environ.get("MLFLOW_TRACKING_URI") or None
        if uri is not None:
            uri = tracking_uri(run_dir, uri)
        self._write({"kind": "open", "uri": uri and hide_secrets(uri), "time": now_ms()})
        self.courier = Courier(run_dir, uri, self.complaints)

    def record(self, kind: str, **fields: Any) -> None:
        """Writes a record and wakes the courier."""
        self._write({"kind": kind, **fields})
        self.courier.wake()

    def _write(self, record: dict[str, Any]) -> None:
        if record["kind"] != "metrics":  # they hold numbers alone
            record = hidden(record)
        try:
            self.spool.append(record)
        except OSError as error:
            self.complaints.add(
                "unwritten", f"{self.spool.path} cannot be written ({error}); trying again."
            )
        except OverflowError as error:
            self.complaints.add("lost", f"{self.spool.path} cannot be written: {error}.")

    def close(self, timeout_s: float) -> Report:
        """Waits for the courier, at most ``timeout_s`` seconds, and says what is left."""
        in_memory = self.spool.close()
        waiting = self.courier.close(timeout_s)
        lost = self.complaints.counts["lost"] + in_memory
        message = ""
        if waiting:
            message = (
                f"{waiting} records wait for {hide_secrets(self.courier.uri)}; "
                f"send them with: metasched sync {shlex.quote(str(self.run_dir))}"
            )
            logger.warning("tracking: %s", message)
        return Report(waiting, self.complaints.counts["refused"], lost, message)


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
