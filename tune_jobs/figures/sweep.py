"""A sweep: all trials as lines over their settings, and the metric against each setting."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from tune_jobs.figures.style import GRID, INK, MUTED, headline, new_figure, scale_values, styled
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.sweeps.folder import open_sweep
from tune_jobs.sweeps.results import FIXED_COLUMNS, table_of
from tune_jobs.tables.frames import Row, read_frame

_MOST_SETTINGS = 8
_PER_ROW = 4
_COLORS = "viridis"
_LOG_FROM = 20.0  # a scale is logarithmic if its ends differ by such a factor


def collect(request: FigureRequest) -> list[Row]:
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
    """How a column is laid out along an axis."""

    name: str
    places: NDArray[np.float64]  # of the trials, ``(num_trials,)``; NaN without a value
    ticks: list[tuple[float, str]]  # places with their texts

    @property
    def label(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    def to_unit(self, places: Any) -> NDArray[np.float64]:
        """Any places, relative to the lowest and the highest."""
        low, high = np.nanmin(self.places), np.nanmax(self.places)
        return np.interp(places, [low, high], [0.0, 1.0] if high > low else [0.5, 0.5])


def draw(table: Path) -> Figure:
    """Draws the table that `collect` gave.

    Raises:
        InputError: if the file does not hold it, or no trial has a score.
    """
    rows = read_frame(table, FIXED_COLUMNS, ("score",))
    scores = rows["score"].to_numpy()
    if not np.isfinite(scores).any():
        raise InputError("no trial of this sweep has a score yet")
    names = [name for name in rows if name not in FIXED_COLUMNS][:_MOST_SETTINGS]
    first = rows.iloc[0]
    scales = [_scale(name, rows[name]) for name in names]
    best = np.flatnonzero(rows["best"] == "1")
    panel_rows = math.ceil(len(names) / _PER_ROW)
    columns = min(len(names), _PER_ROW)
    heights = [3.4, 2.5 * panel_rows]
    with styled():
        figure = new_figure(0.5 + sum(heights))
        top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
        score = _numeric(first["metric"], scores)
        _parallel(top.add_subplot(), scales, score, first["mode"], best)
        panels = bottom.subplots(panel_rows, columns, squeeze=False, sharey=True).flat
        for place, (axes, scale) in enumerate(zip(panels, scales, strict=False)):
            _panel(axes, scale, rows, best, columns)
            if place % columns == 0:
                axes.set_ylabel(first["metric"])
        for axes in panels[len(scales) :]:
            axes.set_visible(False)
        scale_values(panels[0], scores)
        ends = [
            "" if status == "finished" else f" ({status} after {done} iterations)"
            for status, done in zip(rows["status"], rows["iterations"], strict=True)
        ]
        trials = [f"trial {int(rows['trial'][k]):03d} with {scores[k]:.4g}{ends[k]}" for k in best]
        leaders = f"The best, {trials[0]}, is"
        if len(best) > 1:
            leaders = f"The best of each task, {', '.join(trials)}, are"
        counts = rows.groupby("status", sort=False).size()
        headline(
            figure,
            f"Sweep {first['sweep']}: {first['metric']} by setting",
            f"{len(rows)} trials ({', '.join(f'{n} {status}' for status, n in counts.items())}), "
            f"one training seed each; {'lower' if first['mode'] == 'min' else 'higher'} is better. "
            f"{leaders} red; hollow points did not run to their end.",
        )
    return figure


def _scale(name: str, texts: pd.Series) -> _Scale:
    """Numbers as they are, other settings as categories."""
    try:
        return _numeric(name, np.array([float(text or "nan") for text in texts]))
    except ValueError:
        known = sorted(set(texts) - {""})
        places = np.array([known.index(text) if text else math.nan for text in texts], float)
        short = [text if len(text) <= 18 else f"{text[:15]}..." for text in known]
        return _Scale(name, places, list(zip(map(float, range(len(known))), short, strict=True)))


def _numeric(name: str, values: NDArray[np.float64]) -> _Scale:
    finite = np.unique(values[np.isfinite(values)])
    log = bool(finite.size > 1 and finite[0] > 0 and finite[-1] > _LOG_FROM * finite[0])
    shown = finite
    if finite.size > 5:
        shown = (np.geomspace if log else np.linspace)(finite[0], finite[-1], 4)
    ticks = [(math.log10(value) if log else float(value), f"{value:.3g}") for value in shown]
    return _Scale(name, np.log10(values) if log else values, ticks)


def _parallel(
    axes: Axes, scales: list[_Scale], score: _Scale, mode: str, best: NDArray[np.intp]
) -> None:
    """All trials as lines over their settings, ever brighter the better."""
    everything = [*scales, score]
    # Heights, (num_trials, num_axes).
    heights = np.stack([scale.to_unit(scale.places) for scale in everything], axis=1)
    quality = heights[:, -1] if mode == "max" else 1 - heights[:, -1]
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
    axes.set_xticks(range(len(everything)), [scale.label for scale in everything])
    axes.set_xlim(-0.15, len(everything) - 0.65)
    axes.set_ylim(-0.06, 1.06)
    axes.yaxis.set_visible(False)
    axes.grid(visible=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, labelsize=10)


def _panel(
    axes: Axes, scale: _Scale, rows: pd.DataFrame, best: NDArray[np.intp], columns: int
) -> None:
    """The score of each trial against one setting."""
    scores, over = rows["score"].to_numpy(), (rows["status"] == "finished").to_numpy()
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
    axes.set_xlabel(scale.label, fontsize=10)
    axes.grid(axis="x", color=GRID, lw=0.5)
    axes.margins(x=0.12)
