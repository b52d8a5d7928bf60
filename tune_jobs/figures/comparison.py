"""Comparisons as images: lines along the axis, or one row for each policy at a single place."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.evaluation import get_metric
from tune_jobs.comparing.comparison import compare
from tune_jobs.comparing.policy_specs import heuristic_spec, learned_name, learned_specs
from tune_jobs.comparing.wording import (
    described,
    on_jobs,
    short,
    spec_of_row,
    trained_on,
    value_of,
)
from tune_jobs.figures import deeprm
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.style import (
    color_of,
    headline,
    label_ends,
    marker_of,
    new_figure,
    scale_values,
    styled,
)
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POLICY = ("policy", "key", "learned", "trained_at", "trained_on", "seeds")
"""Columns that say who a row is about, see `tune_jobs.comparing.comparison.spec_cells`."""

COLUMNS = ("metric", "jobsets", *POLICY, "interval_over", "unfinished")

SHARES = ("win_rate", "within_2")
"""Columns of the figure ``win-rate``, each with its interval."""

_RENAMED = {"attainment": "win_rate", "trained_load": "trained_at"}
_HEIGHT = 4.6
_SHARES_HEIGHT = 7.4
_LABEL_CHARACTERS = 30  # of a line of a name that says how varied the jobs of training were
_ROW_HEIGHT = 0.38


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates all heuristics of the world and the runs' policies along the axis.

    Returns:
        The rows of `tune_jobs.comparing.comparison.compare`. ``win_rate`` is the share of jobsets
        on which a policy's mean is at least as good as the best of the world's baselines there; a
        jobset that it leaves unfinished is lost. ``within_2`` is the share of jobs with a slowdown
        of at most 2.

    Raises:
        InputError: if a run cannot be used, or the jobs are as they are.
    """
    runs, config = request.load()
    protocol = request.protocol(config, cap=True)
    task = protocol.task
    if not task.has_axis:
        raise InputError(
            f"this figure draws lines, but {task.spec.presentation.words(task)} has one value "
            f"only; use metasched compare --out FOLDER, or jobs that are drawn"
        )
    values = request.at or (deeprm.LOADS if task.world.kind == deeprm.WORLD else ())
    if not values:
        raise InputError("this figure draws lines: say with --at along which values")
    # Of the values that the workload cannot reach, the first stands for all.
    used = [protocol.at(value).task.position for value in values]
    reachable = [value for k, value in enumerate(values) if used[k] not in used[:k]]
    specs = [heuristic_spec(name) for name in task.spec.heuristics.names()]
    specs += learned_specs(runs, request.decode)
    return compare(protocol, specs, reachable, request.progress)


def read_rows(table: Path, columns: "Iterable[str]") -> list[Cells]:
    """The rows of a figure's CSV file.

    Raises:
        InputError: if the file cannot be read, lacks a column, or has one under an old name.
    """
    rows = read_table(table, ())
    for old, new in _RENAMED.items():
        if old in rows[0] and new not in rows[0] and new in columns:
            raise InputError(f"{table} is of an older version: rename its column {old} to {new}")
    return read_table(table, columns)


def draw(table: Path) -> "Figure":
    """Draws a comparison from its CSV file.

    Raises:
        InputError: if the file does not hold one.
    """
    rows = read_rows(table, COLUMNS)
    metric = rows[0]["metric"]
    label = get_metric(metric).label
    axis = spec_of_row(rows[0]).presentation.axis
    single = axis is None or _num_values(rows) == 1
    where = on_jobs(rows[0]) if axis is None or single else f"against {axis.name}"
    with styled():
        figure = new_figure(1.6 + _ROW_HEIGHT * len(rows) if single else _HEIGHT)
        axes = figure.subplots()
        headline(figure, f"{label[0].upper()}{label[1:]} {where}", measured_on(rows))
        if single:
            draw_ranking(axes, rows, metric)
        else:
            draw_lines(axes, rows, metric)
            axes.set_ylabel(label)
            scale_values(axes, np.array([number(row, metric) for row in rows]))
            label_values(axes, rows)
            label_lines(axes, rows, metric)
    return figure


def draw_win_rate(table: Path) -> "Figure":
    """Draws how often policies do as well as the best baseline, from the CSV file of a comparison.

    Raises:
        InputError: if the file does not hold it.
    """
    intervals = [f"{name}{end}" for name in SHARES for end in ("_low", "_high")]
    rows = read_rows(table, (*COLUMNS, *SHARES, *intervals))
    *some, last = spec_of_row(rows[0]).baselines
    metric = get_metric(rows[0]["metric"])
    than = f"a {'higher' if metric.higher_is_better else 'lower'} {metric.label}"
    with styled():
        figure = new_figure(_SHARES_HEIGHT)
        upper, lower = figure.subplots(2, 1, sharex=True)
        headline(figure, "How often policies do as well as the best baseline", measured_on(rows))
        upper.set_title(f"(a) jobsets on which none of {', '.join(some)} and {last} has {than}")
        lower.set_title("(b) jobs with a slowdown of at most 2")
        upper.set_ylabel("share of jobsets")
        lower.set_ylabel("share of jobs")
        for axes, column in zip((upper, lower), SHARES, strict=True):
            draw_lines(axes, rows, column)
            _scale_shares(axes, np.array([number(row, column) for row in rows]))
        label_values(lower, rows)
        upper.set_xlabel("")
        for axes, column in zip((upper, lower), SHARES, strict=True):
            label_lines(axes, rows, column)
    return figure


VALUES = FigureRecipe(collect, draw)
WIN_RATE = FigureRecipe(collect, draw_win_rate)


def draw_lines(axes: "Axes", rows: list[Cells], metric: str) -> None:
    """One line for each policy along the axis, with bars for the 95 % intervals.

    Args:
        axes: to draw into.
        rows: of a comparison.
        metric: name of the column; those with ``_low`` and ``_high`` hold the intervals.
    """
    for key, line in by_policy(rows).items():
        learned = is_learned(line[0])
        x = np.array([value_of(row, "_used") for row in line])
        y, low, high = (
            np.array([number(row, metric + end) for row in line]) for end in ("", "_low", "_high")
        )
        color, marker = look_of(key, rows)
        axes.plot(
            x,
            y,
            color=color,
            marker=marker,
            markersize=5.5 if learned else 4.5,
            linewidth=2.4 if learned else 1.4,
            zorder=3 if learned else 2,
        )
        axes.vlines(x, low, high, color=color, linewidth=1.6, alpha=0.55)
        if learned:
            _mark_training(axes, line, metric, color)
    axes.margins(x=0.02)


def draw_ranking(axes: "Axes", rows: list[Cells], metric: str) -> None:
    """Policies from best to worst, each with its 95 % interval."""
    digits = 3 if metric == "utilization" else 2
    order = sorted(rows, key=lambda row: get_metric(metric).rank(number(row, metric)))
    for place, row in enumerate(order):
        color, marker = look_of(row["key"], rows)
        value = number(row, metric)
        axes.hlines(
            place, number(row, f"{metric}_low"), number(row, f"{metric}_high"), color, linewidth=3
        )
        axes.plot(value, place, marker=marker, color=color, markersize=8, linestyle="none")
        left = number(row, "unfinished")
        cut = f", {left:,.4g} jobs unfinished: a lower bound" if left else ""
        axes.annotate(
            f"{value:.{digits}f}{cut}",
            (value, place),
            xytext=(0, 9),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=9.5,
        )
    axes.set_yticks(range(len(order)), [name_of(row) for row in order])
    axes.set_ylim(len(order) - 0.5, -0.85)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(get_metric(metric).label)
    axes.margins(x=0.12)


def label_lines(axes: "Axes", rows: list[Cells], metric: str) -> None:
    """Names beside the right ends of the lines."""
    labels = []
    for key, line in by_policy(rows).items():
        last = [number(row, metric) for row in line if not np.isnan(number(row, metric))]
        if last:
            labels.append((last[-1], name_of(line[-1], several=True), look_of(key, rows)[0]))
    label_ends(axes, labels)


def measured_on(rows: list[Cells]) -> str:
    """On what the numbers rest, and what the bars mean."""
    first = rows[0]
    axis = spec_of_row(first).presentation.axis
    over = {row["interval_over"] for row in rows}
    seeds = " and seeds" if "seeds and jobsets" in over else ""
    bars = f"95% intervals over jobsets{seeds}" if over - {"nothing"} else "no intervals"
    name = axis.name if axis is not None and _num_values(rows) > 1 else ""
    ringed = name and not all(np.isnan(number(row, "trained_at")) for row in rows)
    rings = f"; rings: {name} of training" if ringed else ""
    jobsets = f"{int(number(first, 'jobsets')):,} unseen jobsets{f' a {name}' if name else ''}"
    return ", ".join(part for part in (jobsets, described(first), f"{bars}{rings}") if part)


def by_policy(rows: list[Cells]) -> dict[str, list[Cells]]:
    """The rows of each policy, in the order of the axis."""
    lines: dict[str, list[Cells]] = {}
    for row in sorted(rows, key=value_of):
        lines.setdefault(row["key"], []).append(row)
    ordered = dict.fromkeys(row["key"] for row in rows)
    return {key: lines[key] for key in ordered}


def is_learned(row: Cells) -> bool:
    """Whether a row belongs to a trained policy."""
    return row["learned"] == "True"


def name_of(row: Cells, several: bool = False) -> str:
    """What to call a policy: where it was trained and on how many seeds, if it was.

    Args:
        row: one of its rows.
        several: whether it stands for several places, at which other numbers may have been tuned.
    """
    if is_learned(row):
        seeds = int(number(row, "seeds"))
        training = f"({trained_on(row)}, {f'{seeds} seeds' if seeds > 1 else '1 seed'})"
        if np.isnan(number(row, "trained_at")):
            training = textwrap.fill(training, _LABEL_CHARACTERS)
        choice = row.get("guard_choice", "")
        shown = f" -> {choice}" if choice and not several else ""
        return f"{learned_name(row['key'])}{shown}\n{training}"
    return f"{row['key']}* (tuned)" if several and "*" in row["policy"] else row["policy"]


def look_of(key: str, rows: list[Cells]) -> tuple[str, str]:
    """Color and marker of a policy among all those shown."""
    learned = list(dict.fromkeys(row["key"] for row in rows if is_learned(row)))
    if key in learned:
        return color_of(key, True, learned.index(key)), marker_of(key, True)
    return color_of(key, False), marker_of(key, False)


def _mark_training(axes: "Axes", line: list[Cells], metric: str, color: str) -> None:
    """A ring around the point at the value that a policy was trained at."""
    for row in line:
        if abs(value_of(row, "_used") - number(row, "trained_at")) < 1e-9:
            axes.plot(
                value_of(row, "_used"),
                number(row, metric),
                marker="o",
                markersize=12,
                markerfacecolor="none",
                markeredgecolor=color,
                markeredgewidth=1.3,
            )


def label_values(axes: "Axes", rows: list[Cells]) -> None:
    """Ticks at the values; one that the task cannot have keeps the name that was asked for."""
    axis = spec_of_row(rows[0]).presentation.axis
    assert axis is not None
    values = sorted({(value_of(row, "_used"), value_of(row)) for row in rows})
    shown = [short(axis.show(asked)) for _, asked in values]
    percent = all(text.endswith("%") for text in shown)  # once in the label leaves ticks room
    axes.set_xticks([used for used, _ in values], [text.rstrip("%") for text in shown])
    capped = [
        f"; {short(axis.show(asked))} is out of reach: {short(axis.show(used))} in its place"
        for used, asked in values
        if used < asked
    ]
    axes.set_xlabel(f"{axis.name}{' (%)' if percent else ''}{''.join(capped)}")


def _scale_shares(axes: "Axes", shares: np.ndarray) -> None:
    """Percent, from 0 or from where the lowest share is, to all."""
    from matplotlib.ticker import PercentFormatter

    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    lowest = np.nanmin(shares) if np.isfinite(shares).any() else 0.0
    axes.set_ylim(0.0 if lowest < 0.4 else lowest - 0.05, 1.02)


def _num_values(rows: list[Cells]) -> int:
    return len({str(value_of(row)) for row in rows})
