"""Pictures of reports: what a command found about a log, drawn from its tables."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
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
    module, _, function = _DRAWN_BY[kind].partition(":")
    return getattr(import_module(f"tune_jobs.figures.{module}"), function)(*tables, **options)
