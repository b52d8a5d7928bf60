"""A comparison as an image: lines over the loads, or one row for each policy at a single load."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.evaluation import get_metric
from tune_jobs.comparing.policy_specs import learned_name
from tune_jobs.comparing.wording import arriving, on_jobs, trained_on
from tune_jobs.figures.style import (
    color_of,
    headline,
    label_ends,
    marker_of,
    new_figure,
    scale_values,
    styled,
)
from tune_jobs.terminal.tables import number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Cells = dict[str, str]

COLUMNS = (
    "load",
    "load_used",
    "rules",
    "window",
    "metric",
    "jobsets",
    "policy",
    "key",
    "learned",
    "trained_load",
    "seeds",
    "interval_over",
    "unfinished",
)

_HEIGHT = 4.6
_LABEL_CHARACTERS = 30  # of a line of a name that says how varied the jobs of training were
_ROW_HEIGHT = 0.38


def draw(table: Path) -> "Figure":
    """Draws a comparison from its CSV file.

    Raises:
        InputError: if the file does not hold one.
    """
    rows = read_table(table, COLUMNS)
    metric = rows[0]["metric"]
    label = get_metric(metric).label
    single = _num_loads(rows) == 1
    jobs = on_jobs(number(rows[0], "load"), rows[0].get("trace", ""))
    where = jobs if single else "against cluster load"
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
            label_loads(axes, rows)
            label_lines(axes, rows, metric)
    return figure


def draw_lines(axes: "Axes", rows: list[Cells], metric: str) -> None:
    """One line for each policy over the loads, with bars for the 95 % intervals.

    Args:
        axes: to draw into.
        rows: of a comparison.
        metric: name of the column; those with ``_low`` and ``_high`` hold the intervals.
    """
    for key, line in by_policy(rows).items():
        first = line[0]
        learned = is_learned(first)
        x = np.array([100 * number(row, "load_used") for row in line])
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
    over = {row["interval_over"] for row in rows}
    seeds = " and seeds" if "seeds and jobsets" in over else ""
    bars = f"95% intervals over jobsets{seeds}" if over - {"nothing"} else "no intervals"
    several = _num_loads(rows) > 1
    ringed = several and not all(np.isnan(number(row, "trained_load")) for row in rows)
    rings = "; rings: load of training" if ringed else ""
    return (
        f"{int(number(first, 'jobsets')):,} unseen jobsets{' a load' if several else ''}, "
        f"{arriving(first['window'], number(first, 'warmup'))}, {rules_of(first)}, {bars}{rings}"
    )


def rules_of(row: Cells) -> str:
    """The rules as a figure names them."""
    return "released code's rules" if row["rules"] == "released" else "paper's rules"


def by_policy(rows: list[Cells]) -> dict[str, list[Cells]]:
    """The rows of each policy, in the order of the loads."""
    lines: dict[str, list[Cells]] = {}
    for row in sorted(rows, key=lambda row: number(row, "load")):
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
        several: whether it stands for several loads, at which other numbers may have been tuned.
    """
    if is_learned(row):
        seeds = int(number(row, "seeds"))
        plural = f"{seeds} seeds" if seeds > 1 else "1 seed"
        mixture = row.get("trained_mixture", "")
        jobs = trained_on(number(row, "trained_load"), row.get("trained_trace", ""), mixture)
        training = f"({jobs}, {plural})"
        if mixture:
            training = textwrap.fill(training, _LABEL_CHARACTERS)
        choice = row.get("guard_choice", "")
        shown = f" -> {choice}" if choice and not several else ""
        return f"{learned_name(row['key'])}{shown}\n{training}"
    if several and "*" in row["policy"]:
        return f"{row['key']}* (best knob)" if row["key"] == "tetris" else f"{row['key']}* (tuned)"
    return row["policy"]


def look_of(key: str, rows: list[Cells]) -> tuple[str, str]:
    """Color and marker of a policy among all those shown."""
    learned = list(dict.fromkeys(row["key"] for row in rows if is_learned(row)))
    if key in learned:
        return color_of(key, True, learned.index(key)), marker_of(key, True)
    return color_of(key, False), marker_of(key, False)


def _mark_training(axes: "Axes", line: list[Cells], metric: str, color: str) -> None:
    """A ring around the point at the load that a policy was trained at."""
    for row in line:
        if abs(number(row, "load_used") - number(row, "trained_load")) < 1e-9:
            axes.plot(
                100 * number(row, "load_used"),
                number(row, metric),
                marker="o",
                markersize=12,
                markerfacecolor="none",
                markeredgecolor=color,
                markeredgewidth=1.3,
            )


def label_loads(axes: "Axes", rows: list[Cells]) -> None:
    """Ticks at the loads; one that the workload cannot reach keeps the name that was asked for."""
    loads = sorted({(number(row, "load_used"), number(row, "load")) for row in rows})
    axes.set_xticks([100 * used for used, _ in loads], [f"{100 * asked:g}" for _, asked in loads])
    capped = [
        f"; {100 * asked:g} is a job in every step, {used:.1%}"
        for used, asked in loads
        if used < asked
    ]
    axes.set_xlabel(f"cluster load (%){''.join(capped)}")


def _num_loads(rows: list[Cells]) -> int:
    return len({row["load"] for row in rows})
