"""What training code holds: a tracker that records and never disturbs."""

import functools
import logging
import os
import shlex
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from rllib_configs.config.secrets import hide_secrets
from tune_jobs.tracking.copying import Copy, CopyThread, lock_of
from tune_jobs.tracking.notes import code
from tune_jobs.tracking.places import local_store, server_uri
from tune_jobs.tracking.process import this_process
from tune_jobs.tracking.provenance import command_line, provenance
from tune_jobs.tracking.run_file import RunFile, read_run_file
from tune_jobs.tracking.store import FOLDER_TAG, KEY_TAG, LocalStore
from tune_jobs.tracking.values import as_numbers, as_text
from tune_jobs.tracking.worker import LogThrottle
from tune_jobs.tracking.writer import RunStart, Writer, now_ms

logger = logging.getLogger("tune_jobs.tracking")

RESULTS = "metasched results"
"""Experiment of results that belong to no single run."""

LOCAL_LIMIT_S = 300.0
"""Longest wait for the local store; a busy machine may take half a minute to create it."""

RunStatus = Literal["finished", "failed", "killed"]
PathLike = str | os.PathLike[str]

P = ParamSpec("P")
Owner = TypeVar("Owner", bound="Tracker")


@dataclass(frozen=True)
class Report:
    """What became of the records of a run directory: how many could not be written down.

    The message is one sentence for the user, empty if everything arrived.
    """

    lost: int = 0
    message: str = ""


class Session:
    """What the trackers of one run directory share: a thread that writes, and one that copies.

    The directory is absolute; the server that gets a copy is None for none.
    """

    def __init__(self, run_dir: Path, file: RunFile, uri: str | None) -> None:
        self.run_dir, self.file, self.uri = run_dir, file, uri
        self.throttle = LogThrottle()
        self._lock = lock_of(run_dir)
        self._copying: CopyThread | None = None
        self._why_not = "no server is named this time" if file.sent else ""
        try:
            is_alone = self._lock.acquire(wait=False)
        except OSError as error:
            is_alone = True
            self.throttle.warn("unwritten", f"{run_dir} cannot be written ({error}).")
        if uri is not None and is_alone:
            self._copying = CopyThread(Copy(run_dir.parent, uri), self.throttle)
        elif uri is not None:
            self._why_not = "another process records this run"
        written = (lambda run_id: None) if self._copying is None else self._copying.changed
        self.writer = Writer(run_dir.parent, file.experiment, self.throttle, written)

    def write_file(self, **changes: Any) -> None:
        """Changes what the run directory says of its run."""
        self.file = replace(self.file, **changes)
        try:
            self.file.write(self.run_dir)
        except OSError as error:
            self.throttle.warn("unwritten", f"{self.run_dir} cannot be written ({error}).")

    def close(self, timeout_s: float) -> Report:
        """Waits for both threads, at most so long for the server, and says what is left."""
        store, message = local_store(self.run_dir.parent), ""
        if unwritten := self.writer.close(LOCAL_LIMIT_S):
            message = f"{unwritten} records could not be written to {store}"
        trouble = self._why_not
        if self._copying is not None:
            trouble = self._copying.close(timeout_s)
        if trouble and not message:
            # The address as well: a job's environment is not that of who reads its log.
            server = hide_secrets(self.uri or "URI")
            command = ["metasched", "sync", str(self.run_dir), "--tracking-uri", server]
            message = (
                f"the newest records are in {store}, but not at "
                f"{hide_secrets(self.uri or 'a server')} ({trouble}); send them with: "
                f"{shlex.join(command)}"
            )
        self._lock.release()
        if message:
            logger.warning("tracking: %s", message)
        return Report(self.throttle.counts["lost"] + unwritten, message)


def _harmless(
    method: Callable[Concatenate[Owner, P], None],
) -> Callable[Concatenate[Owner, P], None]:
    """Keeps every exception of a method away from training; counts and logs it instead."""

    @functools.wraps(method)
    def wrapped(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self._opened is None:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            logger.debug("tracking: %s failed", method.__name__, exc_info=True)
            self._session.throttle.warn(
                "lost", f"{method.__name__} was not recorded ({type(error).__name__}: {error})."
            )

    return wrapped


class Tracker:
    """Records one run: parameters, metrics, files, its children and how it ended.

    A method notes what there is to record (tens of microseconds) and returns; a thread writes it
    into the local store, and another copies it to a server, if there is one. No method raises,
    whatever happens to the disk or the server: troubles are counted, logged once and reported by
    `close`. Use `open`, best in a ``with`` statement, which also finishes and closes. All methods
    can be called from any thread.

    A copy that is pickled into another process is a `NullTracker`: only the process that opened a
    tracker records.
    """

    key = ""
    _opened: Session | None = None
    _is_child = False
    _source: Mapping[str, str] = MappingProxyType({})

    def __init__(self, session: Session, key: str, *, is_child: bool = False) -> None:
        self._opened, self.key, self._is_child = session, key, is_child

    @classmethod
    def open(
        cls,
        run_dir: PathLike,
        *,
        uri: str | None = None,
        experiment: str = "metasched",
        run_name: str | None = None,
        tags: Mapping[str, Any] | None = None,
    ) -> "Tracker":
        """Starts to track a run directory, or goes on with the MLflow run that it already has.

        Args:
            run_dir: Run directory; the folder ``tracking`` in it is created. Records are written
                to the SQLite database ``mlflow.db`` beside it, which all runs there share.
            uri: MLflow server, or another database, that gets a copy; by default the
                environment's MLFLOW_TRACKING_URI, if it is set.
            experiment: MLflow experiment.
            run_name: Name in MLflow, by default that of the directory.
            tags: More tags, besides commit, versions and command.

        Returns:
            A tracker; one that records nothing if even the run directory cannot be read.
        """
        directory = Path(run_dir).absolute()

        def start() -> "Tracker":
            server = server_uri(directory.parent, uri)
            session = Session(directory, read_run_file(directory) or RunFile(experiment), server)
            sent = session.file.sent or server is not None
            session.write_file(process=this_process(), ended=False, sent=sent)
            tracker = cls(session, session.file.key)
            tracker._begin(run_name or directory.name, {**provenance(), **(tags or {})})
            return tracker

        return _started(directory, start)

    @classmethod
    def open_result(
        cls, run_dir: PathLike, name: str, *, version: str = "", tags: Mapping[str, Any]
    ) -> "Tracker":
        """Starts to track a result as a run of its own, below the run that it belongs to.

        Args:
            run_dir: directory of a recorded run; or of the result, which then is below no run and
                in the experiment of results.
            name: of the result; the same name and version again go on with the same MLflow run.
            version: tells results of one name apart.
            tags: as for `open`.

        Returns:
            A tracker; one that records nothing if the directory cannot be read.
        """
        directory = Path(run_dir).absolute()

        def start() -> "Tracker":
            known, server = read_run_file(directory), server_uri(directory.parent)
            session = Session(directory, known or RunFile(RESULTS, ended=True), server)
            if known is None:
                session.write_file(sent=server is not None)
            tracker = cls(session, session.file.child_key(f"{name} {version}"))
            parent = None if session.file.experiment == RESULTS else session.file.key
            tracker._begin(name, {**provenance(), **tags}, parent)
            return tracker

        return _started(directory, start)

    def child(self, name: str, *, tags: Mapping[str, Any] | None = None) -> "Tracker":
        """Starts a run below this one, or goes on with the child of that name."""
        if self._opened is None:
            return self
        tracker = Tracker(self._session, uuid.uuid5(uuid.UUID(self.key), name).hex, is_child=True)
        tracker._begin(name, {**self._source, **(tags or {})}, self.key)
        return tracker

    @_harmless
    def _begin(self, name: str, tags: Mapping[str, Any], parent: str | None = None) -> None:
        text = as_text(tags)
        self._source = {k: v for k, v in text.items() if k.startswith("mlflow.source.")}
        text |= {KEY_TAG: self.key, FOLDER_TAG: self._session.file.key}
        self._session.writer.start(self.key, RunStart(hide_secrets(name), text, parent))

    @_harmless
    def params(self, params: Mapping[str, Any]) -> None:
        """Records parameters; nested mappings become names like ``training.lr``.

        MLflow keeps the first value of a parameter. Another value, as after a resume with a
        longer budget, becomes the tag ``changed.<name>``.
        """
        text = as_text(params)
        self._write(lambda store, run_id: store.params(run_id, text))

    @_harmless
    def tags(self, tags: Mapping[str, Any]) -> None:
        """Records tags; a later value replaces an earlier one."""
        text = as_text(tags)
        self._write(lambda store, run_id: store.tags(run_id, text))

    @_harmless
    def note(self, title: str, text: str) -> None:
        """Records a section of the run's description, which replaces an earlier one.

        The command that began the run stands below it, and the one of today, if it is another. The
        text is Markdown.
        """
        text, today = hide_secrets(text), command_line()

        def write(store: LocalStore, run_id: str) -> None:
            began = store.run(run_id).data.tags.get("command", today)
            store.note(run_id, {title: f"{text}\n\n{code([began, today])}"})

        self._write(write)

    @_harmless
    def metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Records points of curves; nested mappings become names like ``learner/loss``.

        NaN arrives as a gap; infinity does too, MLflow cannot hold it. What is no number is left
        out and counted, the other metrics arrive. Steps of a metric grow: a point at or before its
        last step, as when a resumed run repeats an iteration, is left out.
        """
        numbers, others = as_numbers(metrics)
        if others:
            self._session.throttle.warn(
                "lost", f"no numbers, not recorded: {', '.join(others[:5])}.", len(others)
            )
        now, step = now_ms(), int(step)
        points = [(name, value, now, step) for name, value in numbers.items()]
        self._session.writer.add(self.key, points)

    @_harmless
    def complete(self, rows: Iterable[tuple[int, Mapping[str, float]]]) -> None:
        """Records what a run's own table has beyond the last points that were recorded.

        A process that is killed takes the points of its last seconds with it.

        Args:
            rows: steps and metrics; read in the thread.
        """
        now = now_ms()
        self._write(lambda store, run_id: store.complete(run_id, rows, now))

    @_harmless
    def artifact(self, path: PathLike, folder: str | None = None) -> None:
        """Records a copy of a file, or of a folder with all it holds, under its name.

        It is copied as it is some seconds later, so it should not change or go away meanwhile. It
        goes to a folder among the run's artifacts, such as ``figures`` or ``checkpoints``.
        """
        full = Path(path).absolute()
        self._write(lambda store, run_id: store.artifact(run_id, full, folder))

    @_harmless
    def model(self, policy: PathLike, register: str | None = None) -> None:
        """Records a trained policy, as an artifact and as a model in MLflow that needs no Ray.

        Like an artifact it is taken as it is some seconds later; a run has one model of the same
        weights, however often they are.

        Args:
            policy: folder that `rllib_configs.policies.save_policy` wrote.
            register: name in the registry under which it becomes a new version; None for none.
        """
        full = Path(policy).absolute()

        def write(store: LocalStore, run_id: str) -> None:
            store.artifact(run_id, full)
            store.model(run_id, full, register)

        self._write(write)

    @_harmless
    def finish(self, status: RunStatus = "finished") -> None:
        """Records how the run ended."""
        if status not in ("finished", "failed", "killed"):
            raise ValueError(f"status must be finished, failed or killed, not {status!r}")
        now, is_whole = now_ms(), self.key == self._session.file.key

        def write(store: LocalStore, run_id: str) -> None:
            store.end(run_id, status.upper(), now)
            if is_whole:
                self._session.write_file(ended=True)

        self._write(write)

    @property
    def _session(self) -> Session:
        assert self._opened is not None
        return self._opened

    def _write(self, what: Callable[[LocalStore, str], None]) -> None:
        self._session.writer.write(self.key, what)

    @property
    def run_id(self) -> str | None:
        """The local store's id of the run, None until it has one."""
        return None if self._opened is None else self._opened.writer.ids.get(self.key)

    @property
    def uri(self) -> str | None:
        """The server that gets a copy, without credentials; None if there is none."""
        uri = None if self._opened is None else self._opened.uri
        return None if uri is None else hide_secrets(uri)

    def close(self, timeout_s: float = 30.0) -> Report:
        """Waits for what is on its way; closing a child does nothing.

        Args:
            timeout_s: Seconds to wait for a server at most; one that is away is not waited for.

        Returns:
            What is lost or left, and the command that sends it.
        """
        if self._opened is None or self._is_child:
            return Report()
        try:
            return self._session.close(timeout_s)
        except Exception as error:
            logger.warning("tracking: closing failed (%s).", error)
            return Report(message=f"tracking could not be closed ({error})")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish("finished")
        else:
            self.finish("killed" if issubclass(kind, KeyboardInterrupt) else "failed")
        self.close()

    def __reduce__(self) -> tuple[type["NullTracker"], tuple[()]]:
        return NullTracker, ()


class NullTracker(Tracker):
    """A tracker that does nothing: tracking is off."""

    def __init__(self) -> None:
        pass


def _started(run_dir: Path, start: Callable[[], Tracker]) -> Tracker:
    try:
        return start()
    except Exception as error:
        logger.warning("tracking: %s is not tracked (%s).", run_dir, error)
        return NullTracker()
