"""Figures as commands ask for them: drawn, kept beside their table, and recorded."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from tune_jobs.comparing.choices import parse_values
from tune_jobs.comparing.policy_specs import split_names
from tune_jobs.comparing.trained_runs import find_runs
from tune_jobs.figures.registry import FIGURES, FigureRequest, make_figure
from tune_jobs.terminal.progress import Progress
from tune_jobs.tracking import Tracker
from tune_jobs.tracking.recording import HasFigures, record_figure

logger = logging.getLogger(__name__)


def report_figure(
    *,
    name: str | None,
    runs: Sequence[str],
    at: str | None,
    out: Path,
    table: Path | None,
    track: bool,
    warmup: int | None = None,
    **request: Any,
) -> None:
    """Draws a figure and says where it is.

    Raises:
        InputError: if no figure is named, or it cannot be drawn.
    """
    if name is None:
        raise InputError(f"say which figure: {', '.join(FIGURES.names())}")
    wanted = FigureRequest(
        runs=split_names(runs),
        at=[] if at is None else parse_values(at),
        progress=Progress(),
        warmup=warmup or 0,
        **request,
    )
    image, csv = make_figure(name, wanted, out, table)
    click.echo(f"Wrote {image}, drawn from {csv}")
    if track:
        record_figure(image, csv, *find_runs(wanted.runs)[:1])


def draw_figure(name: str, run: HasFigures, tracker: Tracker, **request: Any) -> Path | None:
    """Draws a figure of a run into its folder, and records it.

    A figure that cannot be drawn is not worth losing a run for: there is a warning instead.

    Args:
        name: see `FIGURES`.
        run: what to draw.
        tracker: records the image and its table.
        request: other fields of `FigureRequest`.

    Returns:
        The image, None if it could not be drawn.
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
    from tune_jobs.figures import comparison  # these import matplotlib, which refusals do without
    from tune_jobs.figures.style import save

    save(comparison.draw(table), image)
