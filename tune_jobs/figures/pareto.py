"""Cost against a side metric: what a small bounded slowdown is bought with."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox

from cluster_env.evaluation import get_metric
from tune_jobs.figures.comparison import COLUMNS, read_policies
from tune_jobs.figures.scenarios import written
from tune_jobs.figures.style import INK, headline, new_figure, plain_ticks, styled
from tune_jobs.measuring.wording import spec_of_row
from tune_jobs.tables.frames import with_numbers

SIDE_METRICS = ("utilization_to_end", "longest_wait")
"""What costs are drawn against, each in a column of panels."""

_HEIGHT, _WIDTH = 4.4, 11.0  # inches of a row of panels

_AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))

_DISTANCES = (6, 12, 20, 30)  # points

_DAY = 86_400.0

_TIMES = (
    *(10.0, 60.0, 600.0, 3600.0, 4 * 3600.0, 12 * 3600.0),
    *(days * _DAY for days in (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 100, 200, 365)),
)


def draw(table: Path) -> Figure:
    """A row of panels for each scenario; a line joins those that no other beats in both."""
    rows = read_policies(table, (*COLUMNS, "place", "exhibit"), numbers=SIDE_METRICS)
    metric = get_metric(rows["metric"].iloc[0])
    rows = with_numbers(rows, [metric.name])
    scenarios = {str(name): some for name, some in rows.groupby("place", sort=False)}
    with styled():
        figure = new_figure(_HEIGHT * len(scenarios) + 0.8, _WIDTH)
        panels = figure.subplots(len(scenarios), len(SIDE_METRICS), squeeze=False)
        headline(
            figure,
            rows["exhibit"].iloc[0],
            f"{metric.label} against {' and '.join(map(_label, SIDE_METRICS))}; the line "
            "joins the policies that no other policy beats in both (Pareto front)",
        )
        for line, (name, some) in zip(panels, scenarios.items(), strict=True):
            for axes, side in zip(line, SIDE_METRICS, strict=True):
                _draw_panel(axes, some, metric.name, side)
            line[0].set_title(f"{name}: {int(some['jobsets'].iloc[0]):,} jobsets", fontsize=10)
            line[0].set_ylabel(metric.label)
        figure.draw_without_rendering()  # so that the layout has settled
        for line, some in zip(panels, scenarios.values(), strict=True):
            for axes, side in zip(line, SIDE_METRICS, strict=True):
                _name_points(axes, some, metric.name, side)
    return figure


def front(rows: pd.DataFrame, metric: str, side: str) -> pd.DataFrame:
    """Those that no other is as good as in both respects and better in one, by the side metric."""
    ranks = pd.DataFrame({name: rows[name].map(get_metric(name).rank) for name in (side, metric)})
    order = ranks.sort_values([side, metric], kind="stable")[metric]
    return rows.loc[order.index[order < order.cummin().shift(fill_value=np.inf)]]


def _label(side: str) -> str:
    return "utilization to the last finish" if side == SIDE_METRICS[0] else get_metric(side).label


def _draw_panel(axes: Axes, rows: pd.DataFrame, metric: str, side: str) -> None:
    best = front(rows, metric, side)
    axes.plot(best[side], best[metric], color="#c8c8c8", linewidth=1.4, zorder=1)
    for _, row in rows.iterrows():
        axes.plot(
            row[side],
            row[metric],
            marker=row["marker"],
            color=row["color"],
            markersize=8 if row["is_learned"] else 5,
            linestyle="none",
            zorder=3 if row["is_learned"] else 2,
        )
    axes.set_yscale("log")
    axes.margins(x=0.12, y=0.08)
    better = "right" if get_metric(side).higher_is_better else "left"
    axes.set_xlabel(f"{_label(side)} (better: {better} and down)")
    time = spec_of_row(rows.iloc[0]).presentation.time
    if side == "longest_wait":
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        ticks = [at for at in _TIMES if low <= at <= high]
        plain_ticks(axes.xaxis, ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: written(side, x, time)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))


def _name_points(axes: Axes, rows: pd.DataFrame, metric: str, side: str) -> None:
    """Writes names beside points, where they hide neither points nor other names.

    Learned policies choose first. Where no position is free, the least crowded is taken.
    """
    points = dict(zip(rows.index, axes.transData.transform(rows[[side, metric]]), strict=True))
    taken: list[Bbox] = []
    for index, row in rows.sort_values("is_learned", ascending=False, kind="stable").iterrows():
        others = [point for other, point in points.items() if other != index]
        best: tuple[int, Annotation, Bbox] | None = None
        for distance, (right, up) in product(_DISTANCES, _AROUND):
            note = _name_point(axes, row, (row[side], row[metric]), distance, right, up)
            box = note.get_window_extent()
            crowd = sum(box.contains(*point) for point in others)
            crowd += sum(box.overlaps(other) for other in taken)
            crowd += 2 * (box.x0 < axes.bbox.x0 or box.x1 > axes.bbox.x1)
            if best is not None and crowd >= best[0]:
                note.remove()
                continue
            if best is not None:
                best[1].remove()
            best = crowd, note, box
            if not crowd:
                break
        assert best is not None
        taken.append(best[2])


def _name_point(
    axes: Axes, row: pd.Series, point: tuple[float, float], distance: int, right: int, up: int
) -> Annotation:
    """A name at so many points from a point, joined to it unless it stands close by."""
    joined = {"arrowstyle": "-", "color": "#c8c8c8", "linewidth": 0.5}
    note = axes.annotate(
        row["key"],
        point,
        xytext=(distance * right, distance * up),
        textcoords="offset points",
        ha={1: "left", 0: "center", -1: "right"}[right],
        va={1: "bottom", 0: "center", -1: "top"}[up],
        fontsize=8.5 if row["is_learned"] else 7,
        fontweight="bold" if row["is_learned"] else "normal",
        color=row["color"] if row["is_learned"] else INK,
        arrowprops=joined if distance > _DISTANCES[0] else None,
    )
    note.set_in_layout(False)
    return note
