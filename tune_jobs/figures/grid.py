"""Every rule at many places in one table, side metrics in each cell: exhibits with many panels."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.evaluation import get_metric
from tune_jobs.comparing.wording import spec_of_row
from tune_jobs.figures.comparison import is_learned, name_of
from tune_jobs.figures.style import INK, MUTED, TABLE_DPI, WIDTH, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW, _COLUMN, _NAMES = 0.36, 0.82, 1.3  # inches
_WORST = 30.0  # times the best of a column, from where on all have the same color
_DARK = 8.0  # from here on letters are white
_TITLE_CHARACTERS = 12


def draw_grid(places: Mapping[str, Sequence[Cells]], metric: str) -> "Figure":
    """A line for each policy, best first, and a column for each place.

    Args:
        places: rows of each.
        metric: what the colors and the order go by.
    """
    cells = {(row["key"], place): row for place, some in places.items() for row in some}
    first = next(iter(places.values()))
    columns = {place: [number(row, metric) for row in some] for place, some in places.items()}
    higher = get_metric(metric).higher_is_better
    best = {place: (max if higher else min)(values) for place, values in columns.items()}
    worse = {
        row["key"]: [_times_worse(cells[row["key"], one], metric, best[one]) for one in places]
        for row in first
    }
    order = sorted(first, key=lambda row: float(np.mean(np.log(worse[row["key"]]))))
    with styled():
        height = 1.9 + _ROW * len(order)
        width = max(WIDTH, _NAMES + _COLUMN * len(places))
        figure = new_figure(height, width, TABLE_DPI)
        axes = figure.subplots()
        label = get_metric(metric).label
        other = "slowdown" if metric == "utilization" else "utilization while jobs arrive"
        headline(
            figure,
            first[0]["exhibit"],
            f"{label[0].upper()}{label[1:]}; below it in small print {other}, and the mean of the "
            f"longest waits. Color: times worse than the best of the column, which is bold. Means "
            f"over {int(number(first[0], 'jobsets')):,} jobsets; intervals and the rest of the "
            f"price are in the CSV",
        )
        shades = np.log(np.array([worse[row["key"]] for row in order]))
        axes.imshow(shades, cmap="YlOrBr", vmin=0, vmax=np.log(_WORST), aspect="auto", alpha=0.8)
        for line, row in enumerate(order):
            for column, place in enumerate(places):
                times = worse[row["key"]][column]
                _write(axes, column, line, cells[row["key"], place], metric, times)
        axes.set_yticks(range(len(order)), [_name_of(row) for row in order])
        for tick, row in zip(axes.get_yticklabels(), order, strict=True):
            tick.set_fontweight("bold" if is_learned(row) else "normal")
        heads = [textwrap.fill(place.replace(", ", " "), _TITLE_CHARACTERS) for place in places]
        axes.set_xticks(range(len(places)), heads)
        axes.tick_params(labelsize=8, length=0, labeltop=True, labelbottom=False)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return figure


def _name_of(row: Cells) -> str:
    """A rule without its number, which is tuned at each place anew."""
    if "*" in row["policy"] and not is_learned(row):
        return f"{row['key']}*"
    return name_of(row).replace("\n", " ")


def _times_worse(row: Cells, metric: str, best: float) -> float:
    """How many times worse than the best, at least 1."""
    value = number(row, metric)
    times = best / value if get_metric(metric).higher_is_better else value / best
    return max(times, 1.0) if value > 0 and best > 0 else 1.0


def _write(axes: "Axes", column: int, line: int, row: Cells, metric: str, times: float) -> None:
    """The mean, and side metrics below."""
    dark = times > _DARK
    value = number(row, metric)
    shown = f"{value:.0%}" if metric == "utilization" else f"{value:,.{2 if value < 100 else 0}f}"
    longest = spec_of_row(row).presentation.time(number(row, "longest_wait"))
    other = f"{number(row, 'utilization'):.0%}"
    if metric == "utilization":
        slowdown = number(row, spec_of_row(row).headline)
        other = f"{slowdown:,.{1 if slowdown < 100 else 0}f}"
    for text, shift, size, color in (
        (shown, -0.18, 9, "white" if dark else INK),
        (f"{other}, {longest}", 0.22, 6.5, "white" if dark else MUTED),
    ):
        axes.annotate(
            text,
            (column, line + shift),
            ha="center",
            va="center",
            fontsize=size,
            color=color,
            fontweight="bold" if times == 1 and size > 8 else "normal",
        )
