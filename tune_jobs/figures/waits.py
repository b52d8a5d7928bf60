"""Waits of whole logs as heat maps: by size and hour of the day, and what changed for whom."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, SymLogNorm
from matplotlib.figure import Figure

from tune_jobs.figures.kit.heat import HeatCell, draw_heat
from tune_jobs.figures.style import WIDTH, headline, new_figure, styled
from tune_jobs.tables.frames import read_frame

_SHORT_S, _LONG_S = 60.0, 3600.0  # where colors begin, and how far they reach at least
_DARK = 0.55  # luminance below which letters are white
_ACROSS = 2  # panels beside each other
_LINE, _HEAD = 0.34, 0.6  # inches
_LETTERS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "m"), (1.0, "s"))


def draw_waits(table: Path, *, clock: str) -> Figure:
    """Draws mean waits by size and hour of the day, a panel for each policy.

    The CSV table has the columns policy, size, hour, jobs and mean_wait.

    Args:
        table: the CSV file.
        clock: whose hours they are: ``UTC``.

    Raises:
        InputError: if the table cannot be read.
    """
    rows = read_frame(table, ("policy", "size"), ("hour", "jobs", "mean_wait"))
    hours = sorted(rows["hour"].unique())
    width = int(np.diff(hours).min()) if len(hours) > 1 else 24
    rows["column"] = [f"{hour:.0f}-{hour + width:.0f}" for hour in rows["hour"]]
    columns = [f"{hour:.0f}-{hour + width:.0f}" for hour in hours]
    norm = LogNorm(_SHORT_S, max(rows["mean_wait"].max(), _LONG_S), clip=True)
    with styled():
        figure, panels = _panels(rows)
        for axes, (policy, own) in zip(panels, rows.groupby("policy", sort=False), strict=False):
            shaded = own.assign(shade=own["mean_wait"].clip(_SHORT_S))
            _draw_panel(axes, shaded, columns, "mean_wait", _short, norm, "YlOrRd")
            axes.set_title(policy, fontweight="bold")
        headline(
            figure,
            "Mean wait by size and hour of submission",
            f"lines: processors of a job; columns: hours of the day ({clock}); small print: jobs",
        )
        return figure


def draw_changes_of_waits(table: Path) -> Figure:
    """Draws by how much waits changed, by size and by the time asked for, a panel for each policy.

    The CSV table has the columns policy, against, size, length, jobs, change, earlier and later.

    Raises:
        InputError: if the table cannot be read.
    """
    numbers = ("jobs", "change", "earlier", "later")
    rows = read_frame(table, ("policy", "against", "size", "length"), numbers)
    against = rows["against"].iloc[0]
    rows["column"] = rows["length"].str.replace("asks for ", "")
    rows["shade"] = rows["change"]
    known = ("up to 1 h", "1 to 12 h", "more than 12 h")
    columns = [name for name in known if name in set(rows["column"])]
    most = max(rows["change"].abs().max(), _LONG_S)
    norm = SymLogNorm(_SHORT_S, vmin=-most, vmax=most, clip=True)
    with styled():
        figure, panels = _panels(rows)
        for axes, (policy, own) in zip(panels, rows.groupby("policy", sort=False), strict=False):
            _draw_panel(axes, own, columns, "change", _signed, norm, "RdBu_r")
            earlier, later = (np.average(own[name], weights=own["jobs"]) for name in numbers[2:])
            axes.set_title(f"{policy}: {earlier:.0%} earlier, {later:.0%} later", fontweight="bold")
        headline(
            figure,
            f"Who starts earlier or later than {against}",
            "mean change of a job's wait, blue: shorter, red: longer; lines: processors of a job; "
            "columns: time that it asks for; small print: jobs; earlier, later: by over a minute",
        )
        return figure


def _panels(rows: pd.DataFrame) -> tuple[Figure, Sequence[Axes]]:
    """A panel for each policy, with a line for each size."""
    num_panels, num_lines = rows["policy"].nunique(), rows["size"].nunique()
    across = min(_ACROSS, num_panels)
    down = -(-num_panels // across)
    figure = new_figure(0.9 + down * (_HEAD + _LINE * num_lines), width=max(WIDTH, 5.6 * across))
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes in panels[num_panels:]:
        axes.set_visible(False)
    return figure, list(panels)


def _draw_panel(
    axes: Axes,
    rows: pd.DataFrame,
    columns: Sequence[str],
    value: str,
    write: Callable[[float], str],
    norm: Normalize,
    cmap: str,
) -> None:
    """A cell for each size and column, with the value and the number of jobs."""
    sizes = sorted(rows["size"].unique(), key=lambda text: int(text.split(" ")[0].replace(",", "")))
    tables = {
        name: rows.pivot_table(index="size", columns="column", values=name)
        .reindex(index=sizes, columns=columns)
        .to_numpy()
        for name in ("shade", value, "jobs")
    }
    red, green, blue, _ = np.moveaxis(colormaps[cmap](norm(tables["shade"])), -1, 0)
    dark = 0.3 * red + 0.59 * green + 0.11 * blue < _DARK
    cells = [
        [
            HeatCell("")
            if np.isnan(amount)
            else HeatCell(write(amount), f"{count:,.0f}", dark=bool(is_dark))
            for amount, count, is_dark in zip(*line, strict=True)
        ]
        for line in zip(tables[value], tables["jobs"], dark, strict=True)
    ]
    names = [text.replace(" to ", "-") for text in sizes]
    draw_heat(axes, tables["shade"], cells, names, columns, norm=norm, cmap=cmap)


def _short(seconds: float) -> str:
    """``5m``, ``3.2h``, ``2d``: in the largest unit of which there are at least two."""
    if abs(seconds) < 1:
        return "0"
    length, letter = next((one for one in _LETTERS if abs(seconds) >= 2 * one[0]), _LETTERS[-1])
    amount = seconds / length
    return f"{amount:.0f}{letter}" if abs(amount) >= 10 else f"{amount:.1f}{letter}"


def _signed(seconds: float) -> str:
    return f"+{_short(seconds)}" if seconds >= 1 else _short(seconds)
