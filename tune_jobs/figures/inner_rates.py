"""Inner rates that meta-training has learned, by block of parameters."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.core.errors import InputError
from meta.adaptation import load_meta_policy
from tune_jobs.adapting.sources import method_of, trained_on
from tune_jobs.comparing.trained_runs import find_runs
from tune_jobs.figures.adaptation_data import color_and_style
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("method", "trained_on", "meta_seed", "block", "place", "rate", "start")

_ROW = 0.27
_CLOSE = 30.0  # rates within this factor have room for more ticks


def collect(request: FigureRequest) -> list[Row]:
    """Reads the inner rates of runs.

    Returns:
        One row for each run that has learned rates, and block of parameters in the order of the
        network: ``rate``, and ``start``, what it began with.

    Raises:
        InputError: if no run has learned rates, or one cannot be used.
    """
    if not request.runs:
        raise InputError("inner rates need runs: give them with --runs, for instance runs/MY_RUN")
    rows: list[Row] = []
    for path in find_runs(request.runs):
        policy = load_meta_policy(path)
        if not policy.learned_rates:
            continue
        rows += [
            {
                "method": method_of(policy.config),
                "trained_on": trained_on(policy.config),
                "meta_seed": policy.config.seed,
                "run": path.resolve().name,
                "block": block,
                "place": place,
                "rate": rate,
                "start": policy.meta.inner_rate,
            }
            for place, (block, rate) in enumerate(policy.rates.items())
        ]
    if not rows:
        raise InputError("none of these runs has learned inner rates")
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_table(table, COLUMNS)
    blocks = [row["block"] for row in sorted(rows, key=lambda row: int(row["place"]))]
    blocks = list(dict.fromkeys(blocks))
    families = list(dict.fromkeys(row["trained_on"] for row in rows))
    with styled():
        figure = new_figure(1.8 + _ROW * len(blocks))
        panels = figure.subplots(1, len(families), sharey=True, squeeze=False)[0]
        headline(
            figure,
            "Inner rates that were learned",
            "a dot for each run, a line at the geometric mean of a method's runs; dotted: where "
            "they began; layers from the input (top) to the actions (bottom)",
        )
        for axes, family in zip(panels, families, strict=True):
            _draw_panel(axes, [row for row in rows if row["trained_on"] == family], blocks)
            axes.set_title(f"trained on {family}")
        panels[0].set_yticks(range(len(blocks)), blocks, fontsize=9)
        panels[0].set_ylim(len(blocks) - 0.5, -0.5)
    return figure


def _draw_panel(axes: "Axes", rows: Sequence[Cells], blocks: Sequence[str]) -> None:
    """All methods of a family, beside each other on the line of each block."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    methods = list(dict.fromkeys(row["method"] for row in rows))
    for order, method in enumerate(methods):
        color, _ = color_and_style(method, methods)
        shift = 0.7 * ((order + 0.5) / len(methods) - 0.5)
        for place, block in enumerate(blocks):
            rates = np.array(
                [
                    number(row, "rate")
                    for row in rows
                    if (row["method"], row["block"]) == (method, block)
                ]
            )
            y = np.full(rates.size, place + shift)
            axes.plot(rates, y, "o", color=color, markersize=3.5, alpha=0.6)
            if rates.size:
                mean = float(np.exp(np.log(rates).mean()))
                label = method if place == 0 else None
                axes.plot([mean], [place + shift], "|", color=color, markersize=11, label=label)
    for start in {number(row, "start") for row in rows}:
        axes.axvline(start, color="#6b6b6b", linewidth=1.0, linestyle=":", zorder=1)
    axes.set_xscale("log")
    shown = [number(row, name) for row in rows for name in ("rate", "start")]
    close = max(shown) < _CLOSE * min(shown)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0) if close else (1.0, 3.0)))
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("inner rate")
    axes.tick_params(axis="y", length=0)
    axes.legend(fontsize=8.5, loc="best")
