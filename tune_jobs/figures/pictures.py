"""Pictures of reports: what a command found about a log, drawn from its tables."""

from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from tune_jobs.tables.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWN_BY = {
    "calibration": "logs:draw_calibration",
    "changes": "waits:draw_changes_of_waits",
    "gantt": "replays:draw_gantt",
    "queues": "replays:draw_queues",
    "timeline": "replays:draw_timeline",
    "trace": "logs:draw_log",
    "waits": "waits:draw_waits",
    "whatif": "changes:draw_changes",
}
"""Modules and functions by the kind of a picture; matplotlib is imported once one is drawn."""


def with_pictures(report: Report) -> Report:
    """The report, which can now draw its pictures."""
    return replace(report, draw=_draw)


def _draw(kind: str, *tables: Path, **options: Any) -> "Figure":
    figure: Figure = resolve_name(f"tune_jobs.figures.{_DRAWN_BY[kind]}")(*tables, **options)
    return figure
