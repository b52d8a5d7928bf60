"""Writes what is recorded into the local store, in a thread that training does not wait for."""

import errno
import logging
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tune_jobs.tracking.places import local_store
from tune_jobs.tracking.store import PARENT_TAG, LocalStore, reason, refused
from tune_jobs.tracking.values import Point
from tune_jobs.tracking.worker import LogThrottle, Worker

logger = logging.getLogger("tune_jobs.tracking")

MOST_WAITING = 10_000  # calls of `metrics` that wait for a disk that is full or gone

DISK_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
"""Parts of messages; an error of `shutil.copytree` holds several and no number."""

Write = Callable[[LocalStore, str], None]
"""Writes something about a run: the store, and its id of the run."""


@dataclass(frozen=True)
class RunStart:
    """What a run of the store is created with."""

    name: str
    tags: Mapping[str, str]  # `tune_jobs.tracking.store.KEY_TAG` among them
    parent: str | None = None  # our key of the run that it is below


class Writer:
    """Writes records in order, and tries again what the disk refuses.

    A metric has one value at each step. A run that is resumed repeats the iterations after its
    checkpoint: they give the same numbers, but take another time, and MLflow would keep both. So a
    point at or before the last step of its metric is left out. After something was written, the id
    of its run is handed to `written`.
    """

    def __init__(
        self,
        home: Path,
        experiment: str,
        throttle: LogThrottle,
        written: Callable[[str], None] = lambda run_id: None,
    ) -> None:
        self._home, self._experiment = home, experiment
        self._throttle, self._written = throttle, written
        self._store: LocalStore | None = None
        self._starts: dict[str, RunStart] = {}
        self._waiting: deque[tuple[str, Write | list[Point]]] = deque()
        self._last: dict[str, dict[str, int]] = {}  # step of each metric, by run
        self.ids: dict[str, str] = {}
        """Ids of the store by our keys of the runs."""
        self._worker = Worker("tracking", self._write_all, self._failed)

    def start(self, key: str, start: RunStart) -> None:
        """Creates a run, or goes on with the one of that key; it comes before its records."""
        self._starts[key] = start
        self.write(key, lambda store, run_id: None)

    def write(self, key: str, what: Write) -> None:
        """Has something written about a run, after all that was recorded before."""
        self._waiting.append((key, what))
        self._worker.wake()

    def add(self, key: str, points: list[Point]) -> None:
        """Has points added to the curves of a run."""
        if len(self._waiting) >= MOST_WAITING:
            self._throttle.warn("lost", "too much waits for the disk; newer points are dropped.")
        else:
            self._waiting.append((key, points))
            self._worker.wake()

    def close(self, timeout_s: float) -> int:
        """Waits until all is written, at most so many seconds.

        Returns:
            Number of records that were not.
        """
        self._worker.close(timeout_s)
        return len(self._waiting)

    def _failed(self, why: str) -> None:
        store = local_store(self._home)
        self._throttle.warn(
            "unwritten", f"{store} cannot be written ({why}); records wait in memory."
        )

    def _write_all(self) -> None:
        """Writes record by record; points that follow each other are written together."""
        while self._waiting:
            key, what = self._waiting[0]
            if callable(what):
                self._try(key, what)
                self._waiting.popleft()
                continue
            points: dict[str, list[Point]] = defaultdict(list)
            count = 0
            for key, what in list(self._waiting):
                if callable(what):
                    break
                points[key] += what
                count += 1
            for key, found in points.items():
                self._try(key, partial(self._add, found))
            for _ in range(count):
                self._waiting.popleft()

    def _try(self, key: str, what: Write) -> None:
        """Writes something, unless the fault is its own.

        Raises:
            Exception: if the store does not work; trying again may help.
        """
        run_id = self._opened(key)
        assert self._store is not None
        try:
            what(self._store, run_id)
        except Exception as error:
            full = isinstance(error, OSError) and any(text in str(error) for text in DISK_FULL)
            of_store = hasattr(error, "error_code") or type(error).__module__.startswith("sqlite3")
            if full or (of_store and not refused(error)):
                raise
            logger.debug("tracking: refused", exc_info=True)
            self._throttle.warn("lost", f"not recorded ({reason(error)}).")
        self._written(run_id)

    def _add(self, points: list[Point], store: LocalStore, run_id: str) -> None:
        if run_id not in self._last:
            self._last[run_id] = store.last_steps(run_id)
        last, new = dict(self._last[run_id]), []
        for point in points:
            name, _, _, step = point
            if step > last.get(name, step - 1):
                last[name] = step
                new.append(point)
        store.points(run_id, new)
        self._last[run_id] = last

    def _opened(self, key: str) -> str:
        """Id of a run, which is created if need be."""
        if key in self.ids:
            return self.ids[key]
        self._store = self._store or LocalStore(self._home)
        start = self._starts[key]
        tags = {**start.tags}
        if start.parent is not None:
            parent = self.ids.get(start.parent) or self._store.find_run(
                self._experiment, start.parent
            )
            tags |= {} if parent is None else {PARENT_TAG: parent}
        run_id = self._store.find_run(self._experiment, key)
        if run_id is None:
            run_id = self._store.create_run(self._experiment, start.name, now_ms(), tags)
        else:
            known = self._store.run(run_id).data.tags
            changed = {k: v for k, v in start.tags.items() if known.get(k) != v}
            self._store.reopen(run_id)
            self._store.tags(
                run_id,
                {f"resumed.{k}": v for k, v in changed.items() if not k.startswith("mlflow.")},
            )
        self.ids[key] = run_id
        return run_id


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
