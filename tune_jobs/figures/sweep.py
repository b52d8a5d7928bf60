"""A sweep: all trials as lines over their settings, and the metric against each setting."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from tune_jobs.figures.style import GRID, INK, MUTED, headline, new_figure, scale_values, styled
from tune_jobs.sweeps.folder import open_sweep
from tune_jobs.sweeps.results import FIXED_COLUMNS, table_of
from tune_jobs.terminal.tables import Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tune_jobs.figures.registry import FigureRequest

_MOST_SETTINGS = 8
_PER_ROW = 4
_COLORS = "viridis"
_LOG_FROM = 20.0  # a scale is logarithmic if its ends differ by such a factor


def collect(request: "FigureRequest") -> list[Row]:
    """A row for each trial of the sweep that ``--runs`` names.

    Raises:
        InputError: if it names none or several, or no trial has begun.
    """
    if len(request.runs) != 1:
        raise InputError("this figure shows one sweep: --runs SWEEP_DIR")
    folder = open_sweep(Path(request.runs[0]))
    rows: list[Row] = list(table_of(folder))
    if not rows:
        raise InputError(f"no trial of {folder.path} has begun")
    return rows


@dataclass(frozen=True)
class _Scale:
    """How a column is laid out along an axis.

    Attributes:
        name: of the column.
        places: of the trials, float ``(num_trials,)``; NaN without a value.
        ticks: places with their texts.
        log: whether places are logarithms.
    """

    name: str
    places: np.ndarray
    ticks: list[tuple[float, str]]
    log: bool = False

    @property
    def unit(self) -> np.ndarray:
        """Places from 0 to 1."""
        return self.to_unit(self.places)

    def to_unit(self, places: Any) -> np.ndarray:
        """Any places, relative to the lowest and the highest."""
        low, high = np.nanmin(self.places), np.nanmax(self.places)
        if not high > low:
            return np.where(np.isnan(places), np.nan, 0.5)
        return (np.asarray(places) - low) / (high - low)


def draw(table: Path) -> Figure:
    """Draws the table that `collect` gave."""
    with styled():
        return _draw(table)


def _draw(table: Path) -> Figure:
    rows = read_table(table, FIXED_COLUMNS)
    names = [name for name in rows[0] if name not in FIXED_COLUMNS][:_MOST_SETTINGS]
    scores = np.array([number(row, "score") for row in rows])
    if not np.isfinite(scores).any():
        raise InputError("no trial of this sweep has a score yet")
    metric, mode = rows[0]["metric"], rows[0]["mode"]
    scales = [_scale(name, [row[name] for row in rows]) for name in names]
    over = np.array([row["status"] == "finished" for row in rows])
    panel_rows = math.ceil(len(names) / _PER_ROW)
    figure = new_figure(3.9 + 2.5 * panel_rows)
    heights = [3.4, 2.5 * panel_rows]
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
    best = [place for place, row in enumerate(rows) if row["best"] == "1"]
    _parallel(top.add_subplot(), scales, _numeric(metric, scores), mode, best)
    columns = min(len(names), _PER_ROW)
    axes = bottom.subplots(panel_rows, columns, squeeze=False, sharey=True)
    for place, panel in enumerate(axes.flat):
        if place >= len(names):
            panel.set_visible(False)
            continue
        _panel(panel, scales[place], scores, over, best, columns)
        if place % columns == 0:
            panel.set_ylabel(metric)
    scale_values(axes.flat[0], scores)
    _say(figure, rows, scores, best)
    return figure


def _say(figure: Figure, rows: list[dict[str, str]], scores: np.ndarray, best: list[int]) -> None:
    row = rows[0]
    found = [f"trial {int(rows[place]['trial']):03d} with {scores[place]:.4g}" for place in best]
    leaders = f"The best, {found[0]}, is"
    if len(best) > 1:
        leaders = f"The best of each task, {', '.join(found)}, are"
    counts = {
        status: sum(each["status"] == status for each in rows)
        for status in dict.fromkeys(each["status"] for each in rows)
    }
    what = ", ".join(f"{count} {status}" for status, count in counts.items())
    better = "lower" if row["mode"] == "min" else "higher"
    headline(
        figure,
        f"Sweep {row['sweep']}: {row['metric']} by setting",
        f"{len(rows)} trials ({what}), one training seed each; {better} is better. {leaders} "
        f"red; hollow points did not run to their end.",
    )


def _scale(name: str, texts: list[str]) -> _Scale:
    try:
        values = np.array([float(text) if text else math.nan for text in texts])
    except ValueError:
        return _categories(name, texts)
    return _numeric(name, values)


def _categories(name: str, texts: list[str]) -> _Scale:
    known = sorted(set(texts) - {""})
    places = np.array([known.index(text) if text else math.nan for text in texts], float)
    return _Scale(name, places, [(float(k), _short(text)) for k, text in enumerate(known)])


def _numeric(name: str, values: np.ndarray) -> _Scale:
    finite = np.unique(values[np.isfinite(values)])
    log = finite.size > 1 and finite[0] > 0 and finite[-1] > _LOG_FROM * finite[0]
    places = np.log10(values) if log else values
    if finite.size <= 5:
        shown = finite
    elif log:
        shown = np.geomspace(finite[0], finite[-1], 4)
    else:
        shown = np.linspace(finite[0], finite[-1], 4)
    ticks = [(math.log10(value) if log else float(value), f"{value:.3g}") for value in shown]
    return _Scale(name, places, ticks, bool(log))


def _parallel(
    axes: "Axes", scales: list[_Scale], score: _Scale, mode: str, best: list[int]
) -> None:
    everything = [*scales, score]
    heights = np.stack([scale.unit for scale in everything], axis=1)  # (num_trials, num_axes)
    quality = score.unit if mode == "max" else 1 - score.unit
    colors = mpl.colormaps[_COLORS]
    for trial in np.argsort(np.nan_to_num(quality, nan=-1.0)):
        if trial in best or np.isnan(quality[trial]):
            continue
        axes.plot(heights[trial], color=colors(0.92 * (1 - quality[trial])), alpha=0.75, lw=1.2)
    axes.plot(heights[best].T, color="#d55e00", lw=2.6, zorder=4)
    for place, scale in enumerate(everything):
        axes.axvline(place, color=MUTED, lw=0.8, zorder=1)
        for where, text in scale.ticks:
            y = float(scale.to_unit(where))
            axes.annotate(
                text,
                (place, y),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=8.5,
                color=INK,
                va="center",
                zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
            )
    axes.set_xticks(range(len(everything)), [_axis_name(scale.name) for scale in everything])
    axes.set_xlim(-0.15, len(everything) - 0.65)
    axes.set_ylim(-0.06, 1.06)
    axes.yaxis.set_visible(False)
    axes.grid(visible=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, labelsize=10)


def _panel(
    axes: "Axes", scale: _Scale, scores: np.ndarray, over: np.ndarray, best: list[int], columns: int
) -> None:
    aside = np.linspace(-0.08, 0.08, len(scores)) if len(scale.ticks) <= 5 else 0.0
    spread = max(float(np.nanmax(scale.places) - np.nanmin(scale.places)), 1e-12)
    steps = max(1, len(scale.ticks) - 1)
    x = scale.places + aside * spread / steps
    axes.scatter(x[over], scores[over], s=22, color="#0072b2", alpha=0.8, lw=0)
    axes.scatter(x[~over], scores[~over], s=22, facecolors="none", edgecolors="#0072b2", lw=0.9)
    axes.scatter(x[best], scores[best], s=46, color="#d55e00", zorder=4)
    axes.set_xticks([where for where, _ in scale.ticks], [text for _, text in scale.ticks])
    crowded = sum(len(text) for _, text in scale.ticks) > 22 * _PER_ROW / columns
    axes.tick_params(axis="x", labelsize=8.5, rotation=30 if crowded else 0)
    axes.set_xlabel(_axis_name(scale.name), fontsize=10)
    axes.grid(axis="x", color=GRID, lw=0.5)
    axes.margins(x=0.12)


def _axis_name(key: str) -> str:
    """The last part of a key, with its section below if there is room."""
    return key.rpartition(".")[2] if key.count(".") else key


def _short(text: str) -> str:
    return text if len(text) <= 18 else f"{text[:15]}..."
