"""What a run records beside its own folder: its line in MLflow, and its figures."""

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from cluster_env.core.seeding import Split
from rllib_configs.schema import ExperimentConfig, TrackingSection
from rllib_configs.secrets import hide_secrets
from tune_jobs.tracking import (
    AnyTracker,
    NullTracker,
    Spool,
    Tracker,
    local_uri,
    recorded_store,
    tracking_dir,
)
from tune_jobs.tracking.notes import code
from tune_jobs.tracking.provenance import command_line
from tune_jobs.tracking.recorded import newest_root
from tune_jobs.tracking.records import as_numbers, take_in
from tune_jobs.tracking.view import AXIS_TAG
from tune_jobs.tracking.writer import send_in_time

logger = logging.getLogger(__name__)


class HasFigures(Protocol):
    """A run, or a sweep."""

    @property
    def path(self) -> Path:
        """Its folder."""

    @property
    def figures(self) -> Path:
        """The folder of its figures."""


DrawFigure = Callable[[str, HasFigures, AnyTracker], object]
"""Draws a figure of a run into its folder and records it; see `tune_jobs.figures.draw_figure`."""


@contextmanager
def tracked(config: ExperimentConfig, run: HasFigures) -> Iterator[AnyTracker]:
    """A tracker as the config says, closed at the end, and finished too if there is an exception.

    A run that is in MLflow already is gone on with there.
    """
    if not config.tracking.enabled:
        yield NullTracker()
        return
    tracker = Tracker.open(
        run.path,
        uri=config.tracking.uri,
        experiment=config.tracking.experiment,
        tags={"seed": config.seed, "preset": config.name, **place_on_axis(config)},
    )
    try:
        yield tracker
    except BaseException as error:
        tracker.finish("failed" if isinstance(error, Exception) else "killed")
        raise
    finally:
        tracker.close()


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
    """Records a figure as a run of its own; see `record_result`.

    Args:
        image: the figure; the run is named after it.
        table: what it was drawn from.
        run: a run directory whose store and experiment it goes to, by default the image's folder.
    """
    folder = image.absolute().parent
    record_result(
        folder / image.stem,
        "figure",
        f"figure {image.stem}",
        files=(image, table),
        beside=run or folder,
    )


def record_result(
    folder: Path,
    kind: str,
    name: str,
    *,
    params: Mapping[str, Any] | None = None,
    curves: Iterable[tuple[int, Mapping[str, float]]] = (),
    files: Iterable[Path] = (),
    beside: Path | None = None,
    note: str = "",
) -> None:
    """Records a result as a run of its own; the same recorded again goes on with that run.

    With other numbers it becomes another run, because MLflow keeps the numbers that it has.

    Args:
        folder: of the result; what waits for the store lies there.
        kind: comparison, adaptation, methods or figure.
        name: of the run.
        params: what it was made with.
        curves: points, each with its step.
        files: tables and figures.
        beside: a run directory whose store and experiment it goes to. By default these are the
            environment's MLFLOW_TRACKING_URI, else the store beside the folder, and the usual
            experiment.
        note: the result in words and as a table, for the run's description.
    """
    folder, curves = folder.absolute(), list(curves)
    uri, experiment = _place_of(folder if beside is None else beside.absolute())
    with Tracker.open(
        folder,
        uri=uri,
        experiment=experiment,
        run_name=name,
        tags={"kind": kind},
        anew=_has_other_points(folder, curves),
    ) as tracker:
        if note:
            tracker.note("Result", note)
        if params:
            tracker.params(params)
        for step, values in curves:
            tracker.metrics(values, step)
        for path in files:
            tracker.artifact(path, "figures")


def _has_other_points(folder: Path, curves: Iterable[tuple[int, Mapping[str, float]]]) -> bool:
    """Whether a folder was recorded with other numbers."""
    spool = Spool(tracking_dir(folder))
    root = newest_root(spool)
    before = {
        (record["step"], name): value
        for record in spool.of_kind("metrics")
        if root is not None and record["run"] == root["run"]
        for name, value in record["metrics"].items()
    }
    now = {
        (step, name): value for step, row in curves for name, value in as_numbers(row)[0].items()
    }
    return any(before.get(point, value) != value for point, value in now.items())


def annotate(run: Path, title: str, text: str, files: Mapping[str, Path] | None = None) -> bool:
    """Adds a section to the description of a run that was recorded, and files to its artifacts.

    The run stays what it is: it is neither resumed nor ended. If it is being trained, its own
    process sends what is added.

    Args:
        run: its folder.
        title: of the section; an earlier one of that title is replaced.
        text: Markdown; today's command is written below it.
        files: files by the folder among the artifacts.

    Returns:
        False if the run was not recorded.
    """
    directory = tracking_dir(run)
    spool = Spool(directory)
    root = newest_root(spool)
    if root is None:
        return False
    try:
        with closing(spool):
            key = root["run"]
            for folder, path in (files or {}).items():
                place = str(take_in(path.absolute(), run.absolute()))
                spool.append({"kind": "artifact", "run": key, "path": place, "folder": folder})
            section = f"{hide_secrets(text)}\n\n{code([command_line()])}"
            spool.append({"kind": "note", "run": key, "title": title, "text": section})
        send_in_time(run)
    except OSError as error:
        logger.warning("tracking: nothing could be added to %s (%s).", run, error)
        return False
    return True


def _place_of(run: Path) -> tuple[str, str]:
    """Store and experiment that a folder is recorded in, or would be."""
    spool = Spool(tracking_dir(run))
    opened, started = spool.of_kind("open"), spool.of_kind("start")
    named = recorded_store(run) if opened else os.environ.get("MLFLOW_TRACKING_URI")
    experiment = started[0]["experiment"] if started else TrackingSection().experiment
    return named or local_uri(run.parent), experiment
