"""Comparisons as images: lines along the axis, or one row for each policy at a single place."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from cluster_env.core.errors import InputError
from cluster_env.evaluation import get_metric
from tune_jobs.figures.kit.curves import Curve, End, draw_curves
from tune_jobs.figures.kit.dots import draw_dots, name_lines, write_above
from tune_jobs.figures.style import (
    color_of,
    headline,
    label_ends,
    marker_of,
    new_figure,
    scale_values,
    styled,
)
from tune_jobs.measuring.policy_specs import learned_name
from tune_jobs.measuring.table import label_of
from tune_jobs.measuring.wording import (
    described,
    on_jobs,
    short,
    spec_of_row,
    trained_on,
    value_of,
)
from tune_jobs.tables.columns import column
from tune_jobs.tables.frames import number, read_frame, with_numbers

POLICY = ("policy", "key", "learned", "trained_at", "trained_on", "seeds")
"""Columns that say who a row is about, see `tune_jobs.measuring.comparison.spec_cells`."""

COLUMNS = ("metric", "jobsets", *POLICY, "interval_over", "unfinished")

SHORT = ("utilization", "wait", "longest_wait")
"""Side metrics that are shown where there is room for three numbers only."""

SHARES = ("win_rate", "within_2")
"""Columns of the figure ``win-rate``, each with its interval."""

_RENAMED = {"attainment": "win_rate", "trained_load": "trained_at"}

_HEIGHT = 4.6

_SHARES_HEIGHT = 7.4

_LABEL_CHARACTERS = 30  # of a line of a name that says how varied the jobs of training were

_METRIC_CHARACTERS, _TITLE_CHARACTERS = 64, 78  # of a line below the axis, and above all
_ROW_HEIGHT = 0.38


def read_policies(
    table: Path, columns: Iterable[str], estimates: Iterable[str] = (), numbers: Iterable[str] = ()
) -> pd.DataFrame:
    """The CSV file of a figure that has rows of policies.

    Args:
        table: the file.
        columns: that must be there; they are texts unless they are named below.
        estimates: columns that must be there as numbers, with the ends of their intervals.
        numbers: further columns that must be there as numbers.

    Returns:
        Its columns, and four more: ``color`` and ``marker`` of the policy among all those shown,
        whether it was trained (``is_learned``), and its ``label``, see `name_of`.

    Raises:
        InputError: if the file cannot be read, lacks a column, or has one under an old name.
    """
    rows = read_frame(table)
    for old, new in _RENAMED.items():
        if old in rows and new not in rows and new in columns:
            raise InputError(f"{table} is of an older version: rename its column {old} to {new}")
    ends = [f"{name}{end}" for name in estimates for end in ("", "_low", "_high")]
    rows = read_frame(table, columns, [*ends, *numbers])
    rows["is_learned"] = rows["learned"] == "True"
    learned = list(rows.loc[rows["is_learned"], "key"].unique())
    places = {key: learned.index(key) for key in learned}
    looks = [(key, key in places, places.get(key, 0)) for key in rows["key"]]
    rows["color"] = [color_of(*look) for look in looks]
    rows["marker"] = [marker_of(*look) for look in looks]
    rows["label"] = rows.apply(name_of, axis=1)
    return rows


def draw(table: Path) -> Figure:
    """Draws a comparison from its CSV file."""
    rows = read_policies(table, COLUMNS, numbers=["unfinished"])
    first = rows.iloc[0]
    metric = get_metric(first["metric"])
    label = label_of(first, metric.name)
    rows = with_numbers(rows, [f"{metric.name}{end}" for end in ("", "_low", "_high")])
    axis = spec_of_row(first).presentation.axis
    single = axis is None or _num_values(rows) == 1
    where = on_jobs(first) if axis is None or single else f"against {axis.name}"
    with styled():
        figure = new_figure(1.6 + _ROW_HEIGHT * len(rows) if single else _HEIGHT)
        axes = figure.subplots()
        title = textwrap.fill(f"{label} {where}", _TITLE_CHARACTERS)
        headline(figure, title, measured_on(rows))
        if single:
            order = ranked(rows, metric.name, metric.name)
            draw_dots(axes, order, metric.name, size=7, width=3)
            digits = 3 if metric.name == "utilization" else 2
            texts = [f"{value:.{digits}f}" for value in order[metric.name]]
            axes.set_xlabel(textwrap.fill(label, _METRIC_CHARACTERS))
            axes.margins(x=0.12)
            shown = [f"{metric.name}{end}" for end in ("", "_low", "_high")]
            scale_values(axes, order[shown].to_numpy(), "x")
            name_lines(axes, order["label"], size=11, top=-0.85)
            figure.draw_without_rendering()  # so that the layout has settled
            write_above(axes, order[metric.name], cut_texts(order, texts))
        else:
            ends = _draw_lines(axes, rows, metric.name)
            axes.set_ylabel(label)
            scale_values(axes, rows[metric.name].to_numpy())
            label_ends(axes, ends)
    return figure


def draw_win_rate(table: Path) -> Figure:
    """Draws how often policies do as well as the best baseline, from a comparison's CSV file."""
    rows = read_policies(table, COLUMNS, SHARES)
    *some, last = spec_of_row(rows.iloc[0]).baselines
    metric = get_metric(rows["metric"].iloc[0])
    than = (
        f"a {'higher' if metric.higher_is_better else 'lower'} "
        f"{label_of(rows.iloc[0], metric.name)}"
    )
    titles = (
        f"(a) jobsets on which neither {', '.join(some)} nor {last} has {than}",
        "(b) jobs with a slowdown of at most 2",
    )
    ends = []
    with styled():
        figure = new_figure(_SHARES_HEIGHT)
        panels = figure.subplots(2, 1, sharex=True)
        title = "How often policies match the best baseline"
        headline(figure, title, measured_on(rows))
        for axes, column, title, what in zip(
            panels, SHARES, titles, ("jobsets", "jobs"), strict=True
        ):
            axes.set_title(title)
            axes.set_ylabel(f"share of {what}")
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            ends.append(_draw_lines(axes, rows, column))
            lowest = 0.0 if rows[column].isna().all() else rows[column].min()
            axes.set_ylim(0.0 if lowest < 0.4 else lowest - 0.05, 1.02)
        panels[0].set_xlabel("")
        for axes, labels in zip(panels, ends, strict=True):
            label_ends(axes, labels)
    return figure


def _draw_lines(axes: Axes, rows: pd.DataFrame, column: str) -> list[End]:
    """One line for each policy along the axis, with bars for the 95 % intervals.

    A ring stands around the point at the value that a policy was trained at. A value that the task
    cannot have keeps the name that was asked for.

    Returns:
        Labels of the ends of the lines.
    """
    axis = spec_of_row(rows.iloc[0]).presentation.axis
    assert axis is not None
    asked, used = rows.apply(value_of, axis=1), rows.apply(value_of, axis=1, ending="_used")
    rows = rows.assign(asked=asked, used=used).sort_values("asked", kind="stable")
    curves = []
    for _, line in rows[rows[column].notna()].groupby("key", sort=False):
        last = line.iloc[-1]
        width = 2.4 if last["is_learned"] else 1.4
        look = {"color": last["color"], "marker": last["marker"], "width": width}
        curves.append(Curve.of(line, "used", column, name=name_of(last, several=True), **look))
        trained_at = line.apply(number, axis=1, name="trained_at")
        for _, point in line[(line["used"] - trained_at).abs() < 1e-9].iterrows():
            ring = {"mfc": "none", "mec": last["color"], "markersize": 12, "mew": 1.3}
            axes.plot(point["used"], point[column], "o", **ring)
    ends = draw_curves(axes, curves, "bars")
    axes.margins(x=0.02)
    values = rows[["used", "asked"]].drop_duplicates().sort_values(["used", "asked"])
    shown = [short(axis.show(asked)) for asked in values["asked"]]
    percent = all(text.endswith("%") for text in shown)  # once in the label leaves ticks room
    axes.set_xticks(values["used"], [text.rstrip("%") for text in shown])
    capped = [
        f"; {short(axis.show(asked))} is impossible, so {short(axis.show(used))} is shown"
        for used, asked in values.itertuples(index=False)
        if used < asked
    ]
    axes.set_xlabel(f"{axis.name}{' (%)' if percent else ''}{''.join(capped)}")
    return ends


def ranked(rows: pd.DataFrame, column: str, metric: str) -> pd.DataFrame:
    """The rows from best to worst by a column that holds means of a metric."""
    return rows.sort_values(
        column, key=lambda means: means.map(get_metric(metric).rank), kind="stable"
    )


def cut_texts(rows: pd.DataFrame, texts: Iterable[str]) -> list[str]:
    """Means as they are shown, with a note where jobs were left unfinished."""
    return [
        f"{text}, {left:,.4g} jobs unfinished: a lower bound" if left else text
        for text, left in zip(texts, rows["unfinished"], strict=True)
    ]


def measured_on(rows: pd.DataFrame) -> str:
    """On what the numbers rest, and what the bars mean."""
    first = rows.iloc[0]
    axis = spec_of_row(first).presentation.axis
    over = set(rows["interval_over"])
    seeds = " and seeds" if "seeds and jobsets" in over else ""
    bars = f"95% intervals over jobsets{seeds}" if over - {"nothing"} else "no intervals"
    name = axis.name if axis is not None and _num_values(rows) > 1 else ""
    rings = f"; rings: {name} of training" if name and any(rows["trained_at"]) else ""
    jobsets = f"{int(first['jobsets']):,} unseen jobsets{f' a {name}' if name else ''}"
    return ", ".join(part for part in (jobsets, described(first), f"{bars}{rings}") if part)


def in_words(row: pd.Series) -> str:
    """What a mean was bought with: ``util 49%, wait 5.1, longest 21.3``; empty for old tables."""
    if not all(row.get(name) for name in SHORT):
        return ""
    columns = {name: column(name) for name in SHORT}
    return ", ".join(f"{one.head} {one.write(number(row, name))}" for name, one in columns.items())


def name_of(row: pd.Series, several: bool = False) -> str:
    """What to call a policy: where it was trained and on how many seeds, if it was.

    At several places other numbers may have been tuned.
    """
    if row["learned"] == "True":
        seeds = int(number(row, "seeds"))
        training = f"({trained_on(row)}, {f'{seeds} seeds' if seeds > 1 else '1 seed'})"
        if np.isnan(number(row, "trained_at")):
            training = textwrap.fill(training, _LABEL_CHARACTERS)
        choice = row.get("guard_choice", "")
        shown = f" -> {choice}" if choice and not several else ""
        return f"{learned_name(row['key'])}{shown}\n{training}"
    return f"{row['key']}* (tuned)" if several and "*" in row["policy"] else row["policy"]


def _num_values(rows: pd.DataFrame) -> int:
    """How many values of the axis were asked for."""
    return len({str(value) for value in rows.apply(value_of, axis=1)})
