"""Carrying the records of a spool into a store, in order."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rllib_configs.secrets import hide_secrets
from tune_jobs.terminal.files import FileLock
from tune_jobs.tracking.delivered import LOCK_FILE, Delivered, DeliveredFile
from tune_jobs.tracking.places import ARTIFACT_FOLDER, database_of, tracking_uri
from tune_jobs.tracking.records import escapes
from tune_jobs.tracking.spool import Record, Spool, tracking_dir
from tune_jobs.tracking.store import PARENT_TAG, Store, StoreAway, reason, refused

MAX_RECORDS = 200  # in one step, after which delivered.json is written
MAX_METRICS = 1_000  # in one call, MLflow's limits
MAX_PARAMS = 100
MAX_TAGS = 100
ARTIFACT_TRIES = 3


class Busy(Exception):
    """Another process is delivering this spool."""


@dataclass
class _Batch:
    """What waits to be sent to one run."""

    metrics: list[tuple[str, float, int, int]] = field(default_factory=list)
    params: list[tuple[str, str]] = field(default_factory=list)
    tags: list[tuple[str, str]] = field(default_factory=list)


class Delivery:
    """Sends the records of one run directory to one store; one holder at a time.

    After each step the file ``delivered.json`` says how far the store has the spool, so every
    record is sent once. Only what a crash, or a store that fails or times out in the middle,
    leaves unconfirmed is sent a second time, at most one step, and that changes nothing: MLflow's
    databases keep one copy of a metric with the same name, step, time and value, and a store of
    files is asked what it has; parameters, tags, states and artifacts are replaced by themselves;
    a run is found again by its key.

    Args:
        run_dir: Run directory with the folder ``tracking``.
        uri: MLflow tracking URI; None is the local store beside the run directory.
        from_start: Send everything again, to the runs that are there.
    """

    def __init__(self, run_dir: Path, uri: str | None, *, from_start: bool = False) -> None:
        self.uri = tracking_uri(run_dir, uri)
        self.refused: Counter[str] = Counter()  # by reason
        self._run_dir = Path(run_dir).absolute()
        directory = tracking_dir(run_dir)
        self._spool = Spool(directory)
        self._file = DeliveredFile(directory)
        self._lock = FileLock(directory / LOCK_FILE)
        self._store: Store | None = None
        self._artifact_failures: Counter[int] = Counter()  # by offset of the record
        self._step_refused: list[Record] = []
        self._from_start = from_start
        self._unsure = True  # whether the store may have what is sent next
        self.delivered = Delivered() if from_start else self._file.load(self.uri)

    def step(self) -> int:
        """Sends the next records.

        Returns:
            Number of records that are done with, 0 if none waits.

        Raises:
            Busy: Another process delivers this spool.
            StoreAway: The store did not take the records; they will be tried again.
        """
        if not self._lock.acquire(wait=False):
            raise Busy(f"another process sends the records of {self._run_dir}")
        self._step_refused = []
        try:
            if self._store is None:
                self._open()
            chunk = list(islice(self._spool.read(self.delivered.offset), MAX_RECORDS))
            if not chunk:
                return 0
            done, offset = self._send_chunk(chunk)
        except Exception as error:
            self._unsure = True
            raise StoreAway(reason(error)) from error
        self._unsure = self._from_start
        self.delivered.offset, self.delivered.mark = offset, self._spool.mark(offset)
        self._file.save(self.uri, self.delivered)
        self._file.add_refused(self._step_refused)
        self.refused.update(record["reason"] for record in self._step_refused)
        return done

    def run_to_end(self, on_step: Callable[[int], None] = lambda done: None) -> int:
        """Steps until nothing waits; returns the number of records that are done with."""
        total = 0
        while done := self.step():
            total += done
            on_step(done)
        return total

    def waiting(self) -> int:
        """Number of records in the spool that the store does not have."""
        return self._spool.count(self.delivered.offset)

    def close(self) -> None:
        """Lets another process deliver."""
        self._lock.release()

    def _open(self) -> None:
        """Connects, and begins again if the store has lost the runs or the spool is a new one."""
        store = Store(self.uri, self._artifacts_dir())
        delivered = Delivered() if self._from_start else self._file.load(self.uri)
        first = next(iter(delivered.runs.values()), None)
        if first and not store.has_run(first):
            delivered = Delivered()
        elif delivered.mark not in ("", self._spool.mark(delivered.offset)):
            # A power failure took its end, and training may have gone on from an earlier one.
            delivered = Delivered(has_more=True)
        self.delivered, self._store = delivered, store

    def _artifacts_dir(self) -> Path:
        database = database_of(self.uri)
        home = self._run_dir.parent if database is None else database.parent
        return home / ARTIFACT_FOLDER

    def _send_chunk(self, chunk: Sequence[tuple[Record | None, int]]) -> tuple[int, int]:
        """Sends a chunk, or its part up to the first file; returns records done and offset."""
        batches: dict[str, _Batch] = defaultdict(_Batch)
        done, offset = 0, self.delivered.offset
        for record, end in chunk:
            if record is not None:
                self._take(record, offset, batches)
            done, offset = done + 1, end
            if record is not None and record["kind"] in ("artifact", "model"):
                break  # do not copy a big file twice because of what follows it
        for key in list(batches):
            self._flush(key, batches)
        return done, offset

    def _take(self, record: Record, offset: int, batches: dict[str, _Batch]) -> None:
        """Adds a record to the batch of its run, or carries it out after the batch."""
        kind, key = record["kind"], record.get("run", "")
        match kind:
            case "metrics":
                batches[key].metrics += [
                    (name, _drawable(value), record["time"], record["step"])
                    for name, value in record["metrics"].items()
                ]
            case "params":
                batches[key].params += record["params"].items()
            case "tags":
                batches[key].tags += record["tags"].items()
            case "start":
                self._start(record)
            case "artifact" | "model" | "note" | "resume" | "end":
                self._flush(key, batches)
                self._carry_out(record, offset)

    def _carry_out(self, record: Record, offset: int) -> None:
        run_id = self.delivered.runs.get(record["run"])
        if run_id is None:
            self._refuse(record, "its run was never started")
        elif record["kind"] in ("artifact", "model"):
            self._send_files(run_id, record, offset)
        elif record["kind"] == "note":
            title, text = record["title"], record["text"]
            self._try(record, lambda store: store.note(run_id, title, text))
        elif record["kind"] == "resume":
            self._try(record, lambda store: store.reopen(run_id))
        else:
            self._adopt(record["run"], record["experiment"])
            self._try(record, lambda store: store.end(run_id, record["status"], record["time"]))

    def _start(self, record: Record) -> None:
        """Finds or creates the run and ties it to its parent."""
        key, experiment = record["run"], record["experiment"]
        if key not in self.delivered.runs:
            run_id = self._connected.find_run(experiment, key)
            self.delivered.runs[key] = run_id or self._connected.create_run(
                experiment, key, record["name"], record["time"], record["tags"]
            )
        if record["parent"]:
            self.delivered.orphans[key] = record["parent"]
            self._adopt(key, experiment)

    def _adopt(self, key: str, experiment: str) -> None:
        """Ties a run to its parent once the store knows the parent."""
        if parent := self.delivered.orphans.get(key):
            known = self.delivered.runs.get(parent)
            parent_id = known or self._connected.find_run(experiment, parent)
            if parent_id:
                self._connected.tags(self.delivered.runs[key], [(PARENT_TAG, parent_id)])
                del self.delivered.orphans[key]

    def _send_files(self, run_id: str, record: Record, offset: int) -> None:
        path = self._run_dir / record["path"]
        if not path.exists():
            self._refuse(record, "file not found")
            return
        if escapes(path, self._run_dir):
            self._refuse(record, "it lies outside the run directory")
            return
        try:
            if record["kind"] == "artifact":
                self._connected.artifact(run_id, path, record["folder"])
            else:
                self._connected.model(run_id, path, record["register"])
        except Exception as error:
            # A store that is away raises here; one that answers has a trouble with this file.
            has_run = self._connected.has_run(run_id)
            self._artifact_failures[offset] += 1
            last = self._artifact_failures[offset] >= ARTIFACT_TRIES
            if has_run and not refused(error) and not last:
                raise
            self._refuse(record, reason(error))

    def _flush(self, key: str, batches: dict[str, _Batch]) -> None:
        batch = batches.pop(key, None)
        if batch is None:
            return
        run_id = self.delivered.runs.get(key)
        if run_id is None:
            self._refuse({"kind": "batch", "run": key}, "its run was never started")
            return
        for kind, items, limit in (
            ("params", batch.params, MAX_PARAMS),
            ("tags", batch.tags, MAX_TAGS),
            ("metrics", batch.metrics, MAX_METRICS),
        ):
            for begin in range(0, len(items), limit):
                self._send(run_id, key, kind, items[begin : begin + limit])

    def _send(self, run_id: str, key: str, kind: str, items: Sequence[Any]) -> None:
        """Sends items of one kind; one that the store refuses is set aside, the others arrive."""
        try:
            if kind == "metrics":
                again = self._unsure and self._connected.keeps_doubles
                self._connected.metrics(run_id, items, again=again or self.delivered.has_more)
            else:
                getattr(self._connected, kind)(run_id, items)
        except Exception as error:
            if not refused(error):
                raise
            if len(items) > 1:
                half = len(items) // 2
                self._send(run_id, key, kind, items[:half])
                self._send(run_id, key, kind, items[half:])
            elif kind == "params":  # most likely a resumed run with another value: keep both
                name, value = items[0]
                self._send(run_id, key, "tags", [(f"changed.{name}", value)])
            else:
                self._refuse({"kind": kind, "run": key, "item": items[0]}, str(error))

    def _try(self, record: Record, call: Callable[[Store], None]) -> None:
        try:
            call(self._connected)
        except Exception as error:
            if not refused(error):
                raise
            self._refuse(record, str(error))

    def _refuse(self, record: Record, why: str) -> None:
        self._step_refused.append({**record, "reason": hide_secrets(why.splitlines()[0][:300])})

    @property
    def _connected(self) -> Store:
        assert self._store is not None
        return self._store


def _drawable(value: float | str) -> float:
    """The value of a metric, NaN if it is infinite; the spool keeps what it was.

    MLflow would store infinity as 1.8e308, which no chart survives.
    """
    return math.nan if math.isinf(float(value)) else float(value)
