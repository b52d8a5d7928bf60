"""What training code holds: a tracker that records and never disturbs."""

import functools
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from rllib_configs.secrets import hide_secrets
from tune_jobs.tracking.notes import code
from tune_jobs.tracking.provenance import command_line, provenance
from tune_jobs.tracking.recorded import newest_root
from tune_jobs.tracking.records import as_numbers, as_text, take_in
from tune_jobs.tracking.spool import Record, Spool, tracking_dir
from tune_jobs.tracking.writer import Report, Writer, now_ms

logger = logging.getLogger("tune_jobs.tracking")

RunStatus = Literal["finished", "failed", "killed"]
PathLike = str | os.PathLike[str]

P = ParamSpec("P")
Owner = TypeVar("Owner", bound="Tracker")


def _harmless(
    method: Callable[Concatenate[Owner, P], None],
) -> Callable[Concatenate[Owner, P], None]:
    """Keeps every exception of a method away from training; counts and logs it instead."""

    @functools.wraps(method)
    def wrapped(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            logger.debug("tracking: %s failed", method.__name__, exc_info=True)
            self._writer.throttle.warn(
                "lost", f"{method.__name__} was not recorded ({type(error).__name__}: {error})."
            )

    return wrapped


class Tracker:
    """Records one run: parameters, metrics, files, its children and how it ended.

    A method writes one line to ``<run_dir>/tracking/spool.jsonl`` (tens of microseconds) and
    returns; a thread sends the lines to MLflow. No method raises, whatever happens to the disk or
    the server: troubles are counted, logged once and reported by `close`. Use `open`, best in a
    ``with`` statement, which also finishes and closes. All methods can be called from any thread.

    A copy that is pickled into another process is a `NullTracker`: only the process that opened a
    tracker records.
    """

    def __init__(self, writer: Writer, key: str, experiment: str, *, is_child: bool) -> None:
        self._writer = writer
        self._experiment = experiment
        self._is_child = is_child
        self.key = key

    @classmethod
    def open(
        cls,
        run_dir: PathLike,
        *,
        uri: str | None = None,
        experiment: str = "metasched",
        run_name: str | None = None,
        tags: Mapping[str, Any] | None = None,
        parent: "AnyTracker | PathLike | None" = None,
        anew: bool = False,
    ) -> "AnyTracker":
        """Starts to track a run directory, or goes on with the MLflow run that it already has.

        Args:
            run_dir: Run directory; the folder ``tracking`` in it is created.
            uri: MLflow tracking URI. By default the one this run directory was tracked with
                before, else the environment's MLFLOW_TRACKING_URI, else a SQLite database
                ``mlflow.db`` beside the run directory, shared by all runs there.
            experiment: MLflow experiment.
            run_name: Name in MLflow, by default that of the directory.
            tags: More tags, besides commit, versions and command.
            parent: Tracker or run directory of the parent run, in the same experiment.
            anew: Begin another MLflow run, whatever the directory has.

        Returns:
            A tracker; one that records nothing if even the run directory cannot be read.
        """
        directory = Path(run_dir).absolute()
        try:
            writer = Writer(directory, uri)
            root = None if anew else newest_root(writer.spool)
            key = uuid.uuid4().hex if root is None else root["run"]
            if root is not None:
                experiment = root["experiment"]
            tracker = cls(writer, key, experiment, is_child=False)
            all_tags = {**provenance(), **(tags or {})}
            tracker._begin(run_name or directory.name, all_tags, _key_of(parent))
            return tracker
        except Exception as error:
            logger.warning("tracking: %s is not tracked (%s).", directory, error)
            return NullTracker()

    def child(self, name: str, *, tags: Mapping[str, Any] | None = None) -> "AnyTracker":
        """Starts a run below this one, or goes on with the child of that name.

        Args:
            name: Name of the child, unique below this run.
            tags: Tags of the child.
        """
        key = uuid.uuid5(uuid.UUID(self.key), name).hex
        tracker = Tracker(self._writer, key, self._experiment, is_child=True)
        source = self._writer.started.get(self.key, {}).get("tags", {})
        columns = {k: v for k, v in source.items() if k.startswith("mlflow.source.")}
        tracker._begin(name, {**columns, **(tags or {})}, self.key)
        return tracker

    @_harmless
    def _begin(self, name: str, tags: Mapping[str, Any], parent: str | None) -> None:
        text = as_text(tags)
        known = self._writer.started.get(self.key)
        if known is None:
            start: Record = {"run": self.key, "time": now_ms(), "experiment": self._experiment}
            start |= {"name": name, "tags": text, "parent": parent}
            self._writer.started[self.key] = start
            self._writer.record("start", **start)
            return
        self._writer.record("resume", run=self.key, time=now_ms())
        changed = {k: v for k, v in text.items() if known["tags"].get(k) != v}
        self.tags({f"resumed.{k}": v for k, v in changed.items() if not k.startswith("mlflow.")})

    @_harmless
    def params(self, params: Mapping[str, Any]) -> None:
        """Records parameters; nested mappings become names like ``training.lr``.

        MLflow keeps the first value of a parameter. Another value, as after a resume with a
        longer budget, becomes the tag ``changed.<name>``.
        """
        if text := as_text(params):
            self._writer.record("params", run=self.key, params=text)

    @_harmless
    def tags(self, tags: Mapping[str, Any]) -> None:
        """Records tags; a later value replaces an earlier one."""
        if text := as_text(tags):
            self._writer.record("tags", run=self.key, tags=text)

    @_harmless
    def note(self, title: str, text: str) -> None:
        """Records a section of the run's description, which replaces an earlier one.

        The command that began the run stands below it, and the one of today, if it is another.

        Args:
            title: of the section.
            text: Markdown.
        """
        began = self._writer.started.get(self.key, {}).get("tags", {}).get("command")
        commands = [command for command in (began, command_line()) if command]
        self._writer.record("note", run=self.key, title=title, text=f"{text}\n\n{code(commands)}")

    @_harmless
    def metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Records points of curves; nested mappings become names like ``learner/loss``.

        NaN arrives as a gap; infinity does too, MLflow cannot hold it. What is no number is left
        out and counted, the other metrics arrive. Of a metric that a step has already, as when a
        resumed run repeats an iteration, the first value stands.

        Args:
            metrics: Numbers by name.
            step: The x value, usually the iteration.
        """
        numbers, others = as_numbers(metrics)
        if others:
            self._writer.throttle.warn(
                "lost", f"no numbers, not recorded: {', '.join(others[:5])}.", len(others)
            )
        if new := self._writer.points.add(self.key, int(step), numbers):
            self._writer.record("metrics", run=self.key, time=now_ms(), step=int(step), metrics=new)

    @_harmless
    def artifact(self, path: PathLike, folder: str | None = None) -> None:
        """Records a file, or a folder with all it holds, to be copied to the store.

        It is copied as it is when the records are sent, so it should not change afterwards. What
        lies outside the run directory is copied into it at once, because nothing else is ever sent.

        Args:
            path: File or folder; it keeps its name.
            folder: Folder among the run's artifacts, such as ``figures`` or ``checkpoints``.
        """
        full = Path(path).absolute()
        place = take_in(full, self._writer.run_dir)
        self._writer.record("artifact", run=self.key, path=str(place), folder=folder)

    @_harmless
    def model(self, policy: PathLike, register: str | None = None) -> None:
        """Records a trained policy, to become a model in MLflow that needs no Ray.

        Like an artifact it is taken as it is when the records are sent; a run has one model of
        the same weights, however often they are.

        Args:
            policy: folder that `rllib_configs.policies.save_policy` wrote.
            register: name in the registry under which it becomes a new version; None for none.
        """
        place = take_in(Path(policy).absolute(), self._writer.run_dir)
        self._writer.record("model", run=self.key, path=str(place), register=register)

    @_harmless
    def finish(self, status: RunStatus = "finished") -> None:
        """Records how the run ended."""
        if status not in ("finished", "failed", "killed"):
            raise ValueError(f"status must be finished, failed or killed, not {status!r}")
        self._writer.record(
            "end",
            run=self.key,
            time=now_ms(),
            status=status.upper(),
            experiment=self._experiment,
        )

    @property
    def run_id(self) -> str | None:
        """MLflow's id of the run, None until the store has it."""
        return self._writer.delivery.run_id(self.key)

    @property
    def uri(self) -> str | None:
        """Where the records go, without credentials; None if nowhere."""
        return hide_secrets(self._writer.delivery.uri)

    def close(self, timeout_s: float = 30.0) -> Report:
        """Waits for what is on its way; closing a child does nothing.

        Args:
            timeout_s: Seconds to wait at most; a store that is away is not waited for.

        Returns:
            What still waits, and the command that sends it.
        """
        if self._is_child:
            return Report()
        try:
            return self._writer.close(timeout_s)
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
        self.finish(_status_after(kind))
        self.close()

    def __reduce__(self) -> tuple[type["NullTracker"], tuple[()]]:
        return NullTracker, ()


class NullTracker:
    """The methods of a `Tracker`, doing nothing: tracking is off."""

    key = ""
    run_id: str | None = None
    uri: str | None = None

    def child(self, name: str, *, tags: Mapping[str, Any] | None = None) -> "AnyTracker":
        """Returns itself."""
        return self

    def params(self, params: Mapping[str, Any]) -> None:
        """Does nothing."""

    def tags(self, tags: Mapping[str, Any]) -> None:
        """Does nothing."""

    def note(self, title: str, text: str) -> None:
        """Does nothing."""

    def metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Does nothing."""

    def artifact(self, path: PathLike, folder: str | None = None) -> None:
        """Does nothing."""

    def model(self, policy: PathLike, register: str | None = None) -> None:
        """Does nothing."""

    def finish(self, status: RunStatus = "finished") -> None:
        """Does nothing."""

    def close(self, timeout_s: float = 30.0) -> Report:
        """Nothing waits."""
        return Report()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


AnyTracker = Tracker | NullTracker


def _status_after(kind: type[BaseException] | None) -> RunStatus:
    if kind is None:
        return "finished"
    return "killed" if issubclass(kind, KeyboardInterrupt) else "failed"


def _key_of(parent: "AnyTracker | PathLike | None") -> str | None:
    """Our key of a parent given as a tracker or as a run directory."""
    if parent is None:
        return None
    if isinstance(parent, Tracker | NullTracker):
        return parent.key or None
    if root := newest_root(Spool(tracking_dir(parent))):
        return str(root["run"])
    logger.warning("tracking: %s has no tracked run to be the parent.", parent)
    return None
