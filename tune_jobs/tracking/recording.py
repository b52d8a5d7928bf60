"""What a run records beside its own folder: its line in MLflow, and its figures."""

import hashlib
import json
import logging
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import click

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.secrets import hide_secrets
from tune_jobs.terminal.files import short_path
from tune_jobs.terminal.running import program
from tune_jobs.tracking.copying import Copy, CopyThread, lock_of
from tune_jobs.tracking.notes import code
from tune_jobs.tracking.places import local_store, server_uri
from tune_jobs.tracking.provenance import command_line
from tune_jobs.tracking.run_file import read_run_file
from tune_jobs.tracking.store import LocalStore, StoreAway
from tune_jobs.tracking.tracker import NullTracker, Tracker
from tune_jobs.tracking.view import AXIS_TAG
from tune_jobs.tracking.worker import LogThrottle

logger = logging.getLogger(__name__)

ADDITION_LIMIT_S = 30.0


class HasFigures(Protocol):
    """A run, or a sweep."""

    @property
    def path(self) -> Path:
        """Its folder."""

    @property
    def figures(self) -> Path:
        """The folder of its figures."""


DrawFigure = Callable[[str, HasFigures, Tracker], object]
"""Draws a figure of a run into its folder and records it; see `tune_jobs.figures.draw_figure`."""


@contextmanager
def tracked(
    config: ExperimentConfig, run_dir: Path, tags: Mapping[str, Any] | None = None
) -> Iterator[Tracker]:
    """A tracker as the config says, closed at the end, and finished too if there is an exception.

    A run that is in MLflow already is gone on with there. By default tags are seed, preset and the
    place on the axis of comparisons.
    """
    if not config.tracking.enabled:
        yield NullTracker()
        return
    tracker = Tracker.open(
        run_dir,
        uri=config.tracking.uri,
        experiment=config.tracking.experiment,
        tags=tags or {"seed": config.seed, "preset": config.name, **place_on_axis(config)},
    )
    try:
        yield tracker
    except BaseException as error:
        tracker.finish("failed" if isinstance(error, Exception) else "killed")
        raise
    finally:
        tracker.close()


def where_to_look(runs: Path, uri: str | None) -> str:
    """How to see in MLflow what was recorded of a folder of runs; `uri` is a server's."""
    here = f"{program()} ui --runs {shlex.quote(str(short_path(runs)))}"
    server = server_uri(runs, uri)
    return here if server is None else f"{here}, and {hide_secrets(server)}"


def place_on_axis(config: ExperimentConfig) -> dict[str, str]:
    """Tags that say where the jobs of a run stand on the axis of its world's comparisons.

    Returns:
        The value under the name of the setting (``load``), and that name, as the columns that
        ``metasched ui`` shows; empty in a world without an axis.
    """
    task = config.task.build(config.name, config.seed)
    axis, value = task.spec.presentation.axis, task.position_on(Split.VALIDATION)
    if axis is None or math.isnan(value):
        return {}
    return {axis.name: f"{value:.4g}", AXIS_TAG: axis.name}


def record_figure(image: Path, table: Path, run: Path | None = None) -> None:
    """Records a figure as a run of its own, below `run` if it is given; see `record_result`."""
    name = f"{image.stem} figure"
    record_result(image.parent, "figure", name, files=(image, table), beside=run)


def record_result(
    folder: Path,
    kind: str,
    name: str,
    *,
    params: Mapping[str, Any] | None = None,
    curves: Iterable[tuple[int, Mapping[str, float]]] = (),
    parts: Mapping[str, tuple[Mapping[str, str], Mapping[str, float]]] | None = None,
    files: Iterable[Path] = (),
    beside: Path | None = None,
    note: str = "",
) -> None:
    """Records a result as a run of its own; the same recorded again goes on with that run.

    With other numbers it becomes another run, because MLflow keeps the numbers that it has.

    Args:
        folder: of the result.
        kind: comparison, adaptation, study or figure.
        name: of the run; it begins with what tells it from others of its kind.
        params: what it was made with.
        curves: points, each with its step.
        parts: runs below this one by name, each with its tags and metrics; a single one is this.
        files: tables and figures.
        beside: a run directory that it belongs to. If that was recorded, the result is a run below
            its run; else it is recorded in the store beside ``folder``, among the results.
        note: the result in words and as a table, for the run's description.
    """
    curves = sorted(curves, key=lambda point: point[0])
    parts = dict(parts or {})
    tags: dict[str, str] = {"kind": kind}
    numbers = [*curves, *((name, dict(part[1])) for name, part in parts.items())]
    version = hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()
    if len(parts) == 1:
        ((part_tags, values),) = parts.values()
        tags, curves, parts = {**tags, **part_tags}, [*curves, (0, values)], {}
    recorded = folder if beside is None or read_run_file(beside) is None else beside
    with Tracker.open_result(recorded, name, version=version, tags=tags) as tracker:
        if note:
            tracker.note("Result", note)
        if params:
            tracker.params(params)
        for step, values in curves:
            tracker.metrics(values, step)
        for part, (part_tags, values) in parts.items():
            with tracker.child(part, tags={**tags, **part_tags}) as child:
                child.metrics(values, 0)
        for path in files:
            tracker.artifact(path, "figures")


def annotate(run: Path, title: str, text: str, files: Mapping[str, Path] | None = None) -> bool:
    """Adds a section to the description of a run that was recorded, and files to its artifacts.

    The run stays what it is: it is neither resumed nor ended. What is added goes to the local store
    beside the run, and to the environment's MLFLOW_TRACKING_URI if the run is there. Nothing in the
    run's folder can name another place.

    Args:
        run: its folder.
        title: of the section; an earlier one of that title is replaced.
        text: Markdown; today's command is written below it.
        files: files by the folder among the artifacts.

    Returns:
        False if the run was not recorded, or its store is not beside it.
    """
    file, home = read_run_file(run), run.absolute().parent
    if file is None or not local_store(home).is_file():
        return False
    try:
        store = LocalStore(home)
        run_id = store.find_run(file.experiment, file.key)
        if run_id is None:
            return False
        for folder, path in (files or {}).items():
            store.artifact(run_id, path, folder)
        store.note(run_id, {title: f"{hide_secrets(text)}\n\n{code([command_line()])}"})
        _send_addition(run, home, run_id, file.sent)
    except (StoreAway, InputError, OSError) as error:
        logger.warning("tracking: nothing could be added to %s (%s).", run, error)
        return False
    return True


def _send_addition(run: Path, home: Path, run_id: str, was_sent: bool) -> None:
    """Copies what was added, if the environment's server has the run; else says how to send it."""
    server, lock = server_uri(home), lock_of(run)
    send = f"{program()} sync {shlex.quote(str(short_path(run.absolute())))}"
    if server is None:
        if was_sent:
            click.echo(
                f"Added to {run.name} in {local_store(home)}; to send it to a server: "
                f"{send} --tracking-uri URI",
                err=True,
            )
        return
    if not lock.acquire(wait=False):
        return  # its own process copies it with what comes next
    copying = CopyThread(Copy(home, server, creates=False), LogThrottle())
    copying.changed(run_id)
    if trouble := copying.close(ADDITION_LIMIT_S):
        uri = hide_secrets(server)
        click.echo(f"Not sent to {uri} ({trouble}); later: {send} --tracking-uri {uri}", err=True)
    lock.release()
