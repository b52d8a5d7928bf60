"""What correcting run times is worth: rules on whole logs, by what they believe."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.evaluation import get_metric
from cluster_env.worlds import get_spec
from tune_jobs.figures.comparison import COLUMNS, read_rows
from tune_jobs.figures.places import Exhibit, Place, logs_of, write_cells, written
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {
    "user": ("#8a8a8a", "x"),
    "recent": ("#e69f00", "s"),
    "learned": ("#d55e00", "o"),
    "actual": ("#0072b2", "D"),
}
"""What is believed, with color and marker; see `cluster_env.workloads.run_times`."""

_ROW_HEIGHT, _HEAD_HEIGHT = 0.42, 0.8
_CELL_SHARE = 0.13  # of the width of the image, for a number beside the points


def _places(request: FigureRequest) -> Iterator[Place]:
    for name, settings in logs_of(request):
        for kind in KINDS:
            changed = {**settings, "workload.run_times": kind}
            yield Place(f"{name}/{kind}", "hpc-smoke", changed, "whole")


EXHIBIT = Exhibit("What rules gain by better run times, on whole logs", _places)


def collect(request: FigureRequest) -> list[Row]:
    """The baselines of the world on each log, with each kind of run times; see `Exhibit.collect`.

    Raises:
        InputError: if no log is named, or one cannot be used.
    """
    return EXHIBIT.collect(request, baselines_only=True)


def draw(table: Path) -> "Figure":
    """A panel for each log, with a line for each rule, and side metrics below each number.

    Raises:
        InputError: if the file does not hold such rows.
    """
    rows = read_rows(table, (*COLUMNS, "place", "exhibit"))
    logs: dict[str, dict[str, dict[str, Cells]]] = {}
    for row in rows:
        log, _, kind = row["place"].rpartition("/")
        logs.setdefault(log, {}).setdefault(row["policy"], {})[kind] = row
    heights = [_HEAD_HEIGHT + _ROW_HEIGHT * len(rules) for rules in logs.values()]
    label = get_metric(rows[0]["metric"]).label
    with styled():
        figure = new_figure(sum(heights) + 0.9)
        figure.set_layout_engine("constrained", rect=(0, 0, 1 - _CELL_SHARE * len(KINDS), 1))
        panels = figure.subplots(len(logs), 1, squeeze=False, height_ratios=heights)[:, 0]
        headline(
            figure,
            rows[0]["exhibit"],
            f"{label[0].upper()}{label[1:]} of all jobs, one run each: with what users ask for, "
            f"the mean of the user's last two jobs, a learned correction, and the truth; "
            f"below each number utilization, mean and longest wait",
        )
        for panel, (log, rules) in zip(panels, logs.items(), strict=True):
            _draw_log(panel, log, rules)
        panels[-1].set_xlabel(label)
    return figure


def _draw_log(axes: "Axes", log: str, rules: dict[str, dict[str, Cells]]) -> None:
    """Draws a log; the heads of the numbers have the colors of the points."""
    for line, believed in enumerate(rules.values()):
        values = {
            kind: number(believed[kind], believed[kind]["metric"])
            for kind in KINDS
            if kind in believed
        }
        axes.hlines(line, min(values.values()), max(values.values()), "#c8c8c8", zorder=1)
        for kind, value in values.items():
            color, marker = KINDS[kind]
            axes.scatter(value, line, s=34, color=color, marker=marker, zorder=2)
        cells = [written("bounded_slowdown", value) for value in values.values()]
        write_cells(axes, line - 0.17, cells, bold=False, share=_CELL_SHARE)
        beside = [_side_metrics(believed[kind]) for kind in values]
        write_cells(axes, line + 0.22, beside, bold=False, share=_CELL_SHARE, size=6.5)
    colors = [color for color, _ in KINDS.values()]
    write_cells(axes, -1, list(KINDS), bold=True, colors=colors, share=_CELL_SHARE)
    axes.set_yticks(range(len(rules)), list(rules))
    axes.set_ylim(len(rules) - 0.5, -0.6)
    axes.set_xscale("log")
    axes.tick_params(labelsize=9)
    axes.grid(visible=False, axis="y")
    axes.set_title(log, pad=14)


def _side_metrics(row: Cells) -> str:
    """Utilization, mean wait and longest wait."""
    time = get_spec(row["world"]).presentation.time
    names = ("utilization", "wait", "longest_wait")
    return " ".join(written(name, number(row, name), time).replace(" ", "") for name in names)
