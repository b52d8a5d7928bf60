"""Copies what the local store has of runs to a server, as often as one likes."""

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.json_text import parse_json
from rllib_configs.config.secrets import hide_secrets
from tune_jobs.terminal.files import FileLock
from tune_jobs.tracking.notes import NOTE_TAG, sections_of
from tune_jobs.tracking.places import ARTIFACT_FOLDER, database_of, tracking_dir
from tune_jobs.tracking.run_file import LOCK_FILE
from tune_jobs.tracking.store import (
    FOLDER_TAG,
    KEY_TAG,
    MODEL_TAG,
    PARENT_TAG,
    POINTS_AT_ONCE,
    POLICY_FOLDER,
    LocalStore,
    Store,
    StoreAway,
    batched,
    reason,
    refused,
)
from tune_jobs.tracking.worker import LogThrottle, Worker

if TYPE_CHECKING:
    from mlflow.entities import Run

FILES_TAG = "metasched.files"
"""Of a run on a server: which files of the local store it has, by their digests."""


@dataclass
class _There:
    """What a server has of a run."""

    run_id: str
    last: dict[str, int]  # last step of each metric when it was asked
    params: dict[str, str]
    tags: dict[str, str]
    status: str
    row: int = 0  # of the newest point of the local store that it has
    model: str | None = None  # see `MODEL_TAG`


class Copy:
    """Brings a server up to what the local store has of runs.

    It asks the server what it has, so it can be stopped and begun again at any time: a run is found
    by its key, points follow the last step of their metric, everything else is replaced by itself.

    Args:
        home: folder of the local store.
        uri: of the server, or of another database.
        creates: whether runs that the server does not have are created there.

    Attributes:
        num_points, num_files: that were sent; a folder counts as one file.
        refused: what the server will never take, in a few words each.
    """

    def __init__(self, home: Path, uri: str, *, creates: bool = True) -> None:
        self.uri = uri
        self.num_points = self.num_files = 0
        self.refused: list[str] = []
        self._home, self._creates = home, creates
        self._source: LocalStore | None = None
        self._target: Store | None = None
        self._there: dict[str, _There] = {}

    def copy(self, run_ids: Iterable[str]) -> None:
        """Copies runs, by their ids in the local store.

        Raises:
            StoreAway: if the server, or the local store, does not work.
        """
        run_ids = list(run_ids)
        try:
            database = database_of(self.uri)
            home = self._home if database is None else database.parent
            self._source = self._source or LocalStore(self._home)
            self._target = self._target or Store(self.uri, home / ARTIFACT_FOLDER)
            for send in (self._copy_data, self._copy_files):  # data first: files may be large
                for run_id in run_ids:
                    run = self._source.run(run_id)
                    if (there := self._find(run)) is not None:
                        send(self._source, self._target, run, there)
        except Exception as error:
            self._target, self._there = None, {}  # asks again: an answer may have been lost
            raise StoreAway(reason(error)) from error

    def _find(self, run: "Run") -> _There | None:
        """Finds or creates a run on the server."""
        assert self._source is not None
        assert self._target is not None
        if run.info.run_id in self._there:
            return self._there[run.info.run_id]
        experiment, tags = self._source.experiment_of(run), run.data.tags
        run_id = self._target.find_run(experiment, tags[KEY_TAG])
        if run_id is None:
            if not self._creates:
                return None
            first = {name: tags[name] for name in (KEY_TAG, FOLDER_TAG) if name in tags}
            name, start = run.info.run_name, run.info.start_time
            run_id = self._target.create_run(experiment, name, start, first)
        there = self._target.run(run_id)
        self._there[run.info.run_id] = found = _There(
            run_id,
            self._target.last_steps(run_id),
            dict(there.data.params),
            dict(there.data.tags),
            there.info.status,
        )
        return found

    def _copy_data(self, source: LocalStore, target: Store, run: "Run", there: _There) -> None:
        """Copies parameters, points, tags, description and status."""
        params = {k: v for k, v in run.data.params.items() if k not in there.params}
        self._send("parameters", lambda: target.params(there.run_id, params))
        there.params |= params
        for piece in batched(source.points_after(run.info.run_id, there.row), POINTS_AT_ONCE):
            points = [
                point for _, point in piece if point[3] > there.last.get(point[0], point[3] - 1)
            ]
            self._send("points", partial(target.points, there.run_id, points))
            there.row = piece[-1][0]
            self.num_points += len(points)
        tags = {
            name: value
            for name, value in run.data.tags.items()
            if name not in (NOTE_TAG, PARENT_TAG) and there.tags.get(name) != value
        }
        if (parent := run.data.tags.get(PARENT_TAG)) and PARENT_TAG not in there.tags:
            above = self._find(source.run(parent))
            tags |= {} if above is None else {PARENT_TAG: above.run_id}
        self._send("tags", lambda: target.tags(there.run_id, tags))
        note = run.data.tags.get(NOTE_TAG, "")
        if note != there.tags.get(NOTE_TAG, ""):
            self._send("description", lambda: target.note(there.run_id, sections_of(note)))
        there.tags |= {**tags, NOTE_TAG: note}
        if run.info.status != there.status:
            if run.info.status == "RUNNING":
                target.reopen(there.run_id)
            else:
                target.end(there.run_id, run.info.status, run.info.end_time)
            there.status = run.info.status

    def _copy_files(self, source: LocalStore, target: Store, run: "Run", there: _There) -> None:
        """Copies files that are new or have changed, and makes a model there."""
        folder = source.artifacts_of(run.info.run_id)
        now = {path.name: _digest(path) for path in sorted(folder.glob("*"))}
        known: dict[str, str] = {}
        with contextlib.suppress(ValueError):  # where nothing was sent, or somebody wrote a tag
            known = dict(parse_json(there.tags.get(FILES_TAG, "")))
        for name in (name for name, digest in now.items() if known.get(name) != digest):
            self._send(name, partial(target.artifact, there.run_id, folder / name))
            self.num_files += 1
        if now != known:
            there.tags[FILES_TAG] = json.dumps(now)
            target.tags(there.run_id, {FILES_TAG: there.tags[FILES_TAG]})
        policy, registered = folder / POLICY_FOLDER, run.data.tags.get(MODEL_TAG)
        model = f"{registered} {now.get(POLICY_FOLDER)}"
        if registered is not None and policy.is_dir() and model != there.model:
            self._send("model", lambda: target.model(there.run_id, policy, registered or None))
            there.model = model

    def _send(self, what: str, send: Callable[[], None]) -> None:
        try:
            send()
        except Exception as error:
            if not refused(error):
                raise
            self.refused.append(f"{what} ({hide_secrets(reason(error))})")


class CopyThread:
    """A thread that copies runs after something was written about them."""

    def __init__(self, copy: Copy, throttle: LogThrottle) -> None:
        self._copy, self._throttle = copy, throttle
        self._changed: set[str] = set()
        self._lock = threading.Lock()
        self._worker = Worker("tracking copy", self._copy_changed, self._failed)
        self.close = self._worker.close

    def changed(self, run_id: str) -> None:
        """Says that something was written about a run of the local store."""
        with self._lock:
            self._changed.add(run_id)
        self._worker.wake()

    def _copy_changed(self) -> None:
        with self._lock:
            changed, self._changed = self._changed, set()
        try:
            self._copy.copy(changed)
        except StoreAway:
            with self._lock:
                self._changed |= changed
            raise
        if self._copy.refused:
            self._throttle.warn("refused", f"refused by the server: {self._copy.refused[-1]}.")
            self._copy.refused.clear()

    def _failed(self, why: str) -> None:
        self._throttle.warn(
            "away", f"{self._copy.uri} takes no records ({why}); they are in the local store."
        )


def lock_of(run_dir: Path) -> FileLock:
    """The lock of the process that records or sends a run directory."""
    return FileLock(tracking_dir(run_dir) / LOCK_FILE)


def _digest(path: Path) -> str:
    """Tells a file, or a folder with all it holds, from what it was before."""
    files = [path]
    if path.is_dir():
        files = sorted(Path(parent, name) for parent, _, names in os.walk(path) for name in names)
    states = [(str(file.relative_to(path)), file.stat()) for file in files]
    text = json.dumps([(name, state.st_size, state.st_mtime_ns) for name, state in states])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
