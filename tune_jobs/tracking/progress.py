"""How far a spool was delivered, for each store it was sent to."""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType

from cluster_env.core.secrets import hide_secrets
from tune_jobs.tracking.spool import Record

PROGRESS_FILE = "delivered.json"
REFUSED_FILE = "refused.jsonl"
LOCK_FILE = "lock"


@dataclass
class Progress:
    """What one store already has of a spool.

    Attributes:
        offset: Bytes of the spool that were delivered; the next record begins there.
        runs: Run ids of the store by our own run keys, in the order in which the runs started.
        orphans: Keys of the parents that the store did not know yet, by the key of the child.
    """

    offset: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    orphans: dict[str, str] = field(default_factory=dict)


class ProgressFile:
    """The file ``delivered.json`` of a tracking folder, replaced as a whole at each change."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / PROGRESS_FILE

    def load(self, uri: str) -> Progress:
        """What the store at ``uri`` has; an unreadable file counts as nothing delivered.

        Beginning again is harmless: see `Delivery`.
        """
        stored = self._stores().get(hide_secrets(uri), {})
        try:
            return Progress(int(stored["offset"]), dict(stored["runs"]), dict(stored["orphans"]))
        except (KeyError, TypeError, ValueError):
            return Progress()

    def save(self, uri: str, progress: Progress) -> None:
        """Writes atomically: a crash leaves the old file or the new one."""
        stores = self._stores()
        stores[hide_secrets(uri)] = asdict(progress)
        new = self._path.with_suffix(".new")
        with new.open("w") as file:
            json.dump({"stores": stores}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)

    def _stores(self) -> dict[str, dict]:
        try:
            stores = json.loads(self._path.read_text())["stores"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return stores if isinstance(stores, dict) else {}

    def add_refused(self, refused: list[Record]) -> None:
        """Keeps what a store refused, each with the reason, for a human to look at."""
        if refused:
            with (self._directory / REFUSED_FILE).open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in refused)


class FileLock:
    """A lock between processes that ends with the process that holds it.

    Args:
        path: File to lock; created when absent, left behind empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self, *, wait: bool) -> bool:
        """Takes the lock, or returns False if another holder has it and ``wait`` is False."""
        if self._file is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        self._file = file
        return True

    def release(self) -> None:
        """Gives the lock back; nothing happens if it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> "FileLock":
        self.acquire(wait=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
