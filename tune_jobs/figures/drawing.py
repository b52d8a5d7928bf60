"""Figures as commands ask for them: drawn, kept beside their table, and recorded."""

import logging
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from tune_jobs.commands.results import Figure
from tune_jobs.commands.shared import texts_of
from tune_jobs.figures.registry import FIGURES, OPTIONS, make_figure
from tune_jobs.measuring.policy_specs import split_names
from tune_jobs.measuring.trained_runs import find_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.terminal.files import save_figure
from tune_jobs.terminal.progress import Progress
from tune_jobs.tracking import Tracker
from tune_jobs.tracking.recording import HasFigures, record_figure

logger = logging.getLogger(__name__)


def given_fields(options: Figure) -> dict[str, Any]:
    """Fields of `FigureRequest` that are given, as it has them."""
    names = {"source": "on", "overrides": "changes"}
    readers: dict[str, Callable[[Any], Any]] = {
        "runs": split_names,
        "rows": lambda paths: list(map(Path, paths)),
        "traces": lambda paths: list(map(Path, paths)),
        "source": str,
        "overrides": texts_of,
    }
    given = {}
    for field in OPTIONS.values():
        if field == "rows" and options.table is not None:
            continue
        value = getattr(options, names.get(field, field))
        if value is not None and (not isinstance(value, Sized) or len(value)):
            given[field] = readers[field](value) if field in readers else value
    return given


def check_options(name: str, given: Mapping[str, Any], from_table: bool, track: bool) -> None:
    """Refuses options that a figure would ignore, see `FigureKind.refuse_unused`.

    Where it is recorded, runs say where, whatever is drawn.

    Raises:
        InputError: if there is no such figure, or it does not use what is given.
    """
    beside = {"runs"} if track else set[str]()
    used = {field: given[field] for field in given.keys() - beside}
    FIGURES.get(name).refuse_unused(used, from_table)


def report_figure(options: Figure, track: bool) -> None:
    """Draws a figure, or a table of one again, and says where it is.

    With `track` it is recorded in MLflow beside the first run.

    Raises:
        InputError: if no figure is named, it does not use what is given, or it cannot be drawn.
    """
    if not options.name:
        raise InputError(f"name a figure: {', '.join(FIGURES.names())}")
    given, table = given_fields(options), options.table
    check_options(options.name, given, table is not None, track)
    request = FigureRequest(progress=Progress(), **given)
    out = Path(options.out or "figures")
    image, csv = make_figure(options.name, request, out, table)
    click.echo(f"Wrote {image}, drawn from {csv}")
    if track:
        record_figure(image, csv, *find_runs(request.runs)[:1])


def draw_figure(name: str, run: HasFigures, tracker: Tracker, **request: Any) -> Path | None:
    """Draws a figure of a run into its folder, and records it.

    A figure that cannot be drawn is not worth losing a run for: there is a warning instead, and
    None is returned. Further arguments are fields of `FigureRequest`.
    """
    try:
        wanted = FigureRequest(runs=[str(run.path)], **request)
        image, table = make_figure(name, wanted, run.figures)
    except Exception as error:
        logger.warning("the figure %s could not be drawn: %s", name, error)
        return None
    for path in (image, table):
        tracker.artifact(path, "figures")
    return image


def draw_comparison(table: Path, image: Path) -> None:
    """Draws the table of a comparison."""
    from tune_jobs.figures import comparison  # it imports matplotlib, which refusals do without

    save_figure(comparison.draw(table), image)
