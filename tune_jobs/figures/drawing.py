"""Figures as commands ask for them: drawn, kept beside their table, and recorded."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cluster_env.core.errors import InputError
from tune_jobs.figures.registry import FIGURES, OPTIONS, make_figure
from tune_jobs.measuring.choices import parse_values
from tune_jobs.measuring.policy_specs import split_names
from tune_jobs.measuring.trained_runs import find_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.saving import save
from tune_jobs.terminal.progress import Progress
from tune_jobs.tracking import Tracker
from tune_jobs.tracking.recording import HasFigures, record_figure

logger = logging.getLogger(__name__)


def given_options(context: click.Context) -> dict[str, Any]:
    """Fields of `FigureRequest` that the user of a command gave, ``runs`` and ``at`` as texts."""
    return {
        field: context.params[field]
        for field in OPTIONS.values()
        if context.get_parameter_source(field) not in (None, ParameterSource.DEFAULT)
        or (field == "task_options" and context.params.get(field))
    }


def check_options(name: str, given: Mapping[str, Any], from_table: bool, track: bool) -> None:
    """Refuses options that a figure would ignore, see `FigureKind.refuse_unused`.

    Where it is recorded, runs say where, whatever is drawn.

    Raises:
        InputError: if there is no such figure, or it does not use what is given.
    """
    beside = {"runs"} if track else set[str]()
    used = {field: given[field] for field in given.keys() - beside}
    FIGURES.get(name).refuse_unused(used, from_table)


def report_figure(
    name: str | None, out: Path, table: Path | None, track: bool, **given: Any
) -> None:
    """Draws a figure, or a table of one again, and says where it is.

    With `track` it is recorded in MLflow beside the first run. For what is given see
    `given_options`.

    Raises:
        InputError: if no figure is named, it does not use what is given, or it cannot be drawn.
    """
    if name is None:
        raise InputError(f"name a figure: {', '.join(FIGURES.names())}")
    check_options(name, given, table is not None, track)
    runs = split_names(given.pop("runs", ()))
    if "at" in given:
        given["at"] = parse_values(given["at"])
    request = FigureRequest(runs=runs, progress=Progress(), **given)
    image, csv = make_figure(name, request, out, table)
    click.echo(f"Wrote {image}, drawn from {csv}")
    if track:
        record_figure(image, csv, *find_runs(runs)[:1])


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

    save(comparison.draw(table), image)
