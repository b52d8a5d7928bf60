"""How far policies are from the best that anybody could have done in hindsight."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.evaluation import METRICS, Result
from tune_jobs.comparing.comparison import side_cells, spec_cells
from tune_jobs.comparing.hindsight import Hindsight, look_back, metric_in_hindsight
from tune_jobs.comparing.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.comparing.wording import described, on_jobs
from tune_jobs.figures.comparison import POLICY, is_learned, name_of, read_rows
from tune_jobs.figures.deeprm import IN_HINDSIGHT
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.side_metrics import in_words
from tune_jobs.figures.style import (
    INK,
    MUTED,
    color_of,
    headline,
    marker_of,
    new_figure,
    styled,
)
from tune_jobs.terminal.tables import Cells, Row, Value, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    *("series", "jobset", *POLICY, "unfinished", "value", "best", "bound", "status"),
    *("ratio", "ratio_low", "ratio_high", "interval_over"),
    *("metric", "jobsets", "proven", "time_limit_s"),
)

_ROW_HEIGHT = 0.62


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates policies, and searches for the best schedule of each of the same unseen jobsets.

    What is compared is the completion time if that is the config's objective, else the slowdown.

    Returns:
        One row for each policy (``series`` is ``policy``) with means over the jobs of all jobsets,
        and ``ratio``, the mean over that of the best schedules, with its 95 % interval; then, one
        for each jobset and policy (``jobset``), the same within the jobset. ``best`` and ``bound``
        are the means of the best known schedules and of what no schedule can beat, ``status``
        says whether the two are proven to be one, and ``proven`` of how many jobsets they are. Rows
        of policies have what their means were bought with, see `side_cells`.

    Raises:
        InputError: if OR-tools is not installed, or a run cannot be used.
    """
    runs, config = request.load()
    whole = request.protocol(config)
    metric = metric_in_hindsight(whole.task)
    protocol = replace(whole.at(*whole.values()), metric=metric)
    specs = [heuristic_spec(name) for name in IN_HINDSIGHT]
    specs += learned_specs(runs, request.decode)
    hindsight = look_back(
        specs, protocol, time_limit_s=request.time_limit_s, progress=request.progress
    )
    head = {
        **protocol.columns(),
        "proven": hindsight.num_proven,
        "time_limit_s": request.time_limit_s,
    }
    pairs = list(zip(specs, hindsight.results, strict=True))
    rows = [
        _policy_row(spec, result, hindsight) | side_cells(protocol, result)
        for spec, result in pairs
    ]
    for spec, result in pairs:
        rows += _jobset_rows(spec, result, hindsight)
    return [{**head, **row} for row in rows]


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_rows(table, COLUMNS)
    policies = [row for row in rows if row["series"] == "policy"]
    first = policies[0]
    label = METRICS.get(first["metric"]).label
    with styled():
        figure = new_figure(1.9 + _ROW_HEIGHT * len(policies))
        axes = figure.subplots()
        headline(
            figure,
            f"{label[0].upper()}{label[1:]} over the best in hindsight, {on_jobs(first)}",
            _measured_on(first),
        )
        _draw_ranking(axes, rows, policies)
        _draw_reference(axes, first)
        axes.set_xlabel(
            f"{label}, over that of the best known schedules ({_number(first, 'best')})"
        )
    return figure


def _policy_row(spec: PolicySpec, result: Result, hindsight: Hindsight) -> dict[str, Value]:
    num_jobs = float(hindsight.counts.sum())
    proven = hindsight.num_proven == len(hindsight.references)
    ratio = hindsight.ratio(result)
    return {
        "series": "policy",
        "jobset": "",
        **spec_cells(spec, result.name),
        "num_jobs": num_jobs,
        "unfinished": result.means["unfinished"],
        "value": result.mean(hindsight.metric),
        "best": float(hindsight.best.sum()) / num_jobs,
        "bound": float(hindsight.bound.sum()) / num_jobs,
        "status": "optimal" if proven else "feasible",
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "interval_over": ratio.over,
    }


def _jobset_rows(spec: PolicySpec, result: Result, hindsight: Hindsight) -> list[dict[str, Value]]:
    """One row for each jobset that has jobs."""
    means = np.mean([member.rows(hindsight.metric) for member in result.members], axis=0)
    unfinished = np.mean([member.num_unfinished for member in result.members], axis=0)
    return [
        {
            "series": "jobset",
            "jobset": index,
            **spec_cells(spec, result.name),
            "num_jobs": reference.num_jobs,
            "unfinished": float(unfinished[index]),
            "value": float(means[index]),
            "best": reference.value / reference.num_jobs,
            "bound": reference.bound / reference.num_jobs,
            "status": reference.status,
            "ratio": float(means[index]) * reference.num_jobs / reference.value,
        }
        for index, reference in enumerate(hindsight.references)
        if reference.num_jobs
    ]


def _draw_ranking(axes: "Axes", rows: Sequence[Cells], policies: Sequence[Cells]) -> None:
    """Policies from best to worst with their intervals, and a dot for each jobset."""
    learned = [row["key"] for row in policies if is_learned(row)]
    order = sorted(policies, key=lambda row: number(row, "ratio"))
    for place, row in enumerate(order):
        key = row["key"]
        color = color_of(key, is_learned(row), learned.index(key) if key in learned else 0)
        each = [
            number(other, "ratio")
            for other in rows
            if other["series"] == "jobset" and other["key"] == key
        ]
        axes.plot(
            each,
            np.full(len(each), place + 0.22),
            marker="|",
            markersize=7,
            color=color,
            alpha=0.45,
            linestyle="none",
        )
        axes.hlines(place, number(row, "ratio_low"), number(row, "ratio_high"), color, linewidth=3)
        value = number(row, "ratio")
        marker = marker_of(key, is_learned(row))
        axes.plot(value, place, marker=marker, color=color, markersize=8, linestyle="none")
        left = number(row, "unfinished")
        cut = f", {left:,.4g} jobs unfinished: a lower bound" if left else ""
        axes.annotate(
            f"{value:.2f} times ({_number(row, 'value')}){cut}",
            (value, place),
            xytext=(-4, 8),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=9.5,
        )
    names = ["\n".join(filter(None, (name_of(row), in_words(row)))) for row in order]
    axes.set_yticks(range(len(order)), names, fontsize=9.5)
    axes.set_ylim(len(order) - 0.45, -0.85)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)


def _draw_reference(axes: "Axes", row: Cells) -> None:
    """A line at the best schedules; where the optimum may lie below them, a band."""
    axes.axvline(1.0, color=INK, linewidth=1.2, zorder=1)
    bound = number(row, "bound") / number(row, "best")
    if bound < 1.0:
        axes.axvspan(bound, 1.0, color=MUTED, alpha=0.18, linewidth=0, zorder=0)


def _measured_on(row: Cells) -> str:
    """On what the numbers rest, and what marks mean."""
    jobsets, proven = int(number(row, "jobsets")), int(number(row, "proven"))
    band = "" if proven == jobsets else f" (band: down to the bound, {_number(row, 'bound')})"
    over = row["interval_over"]
    bars = "no intervals" if over == "nothing" else f"95% intervals over {over}"
    return (
        f"{jobsets:,} unseen jobsets, {proven:,} of them proven optimal in "
        f"{number(row, 'time_limit_s'):g} s each{band}; {described(row)}, {bars}; "
        f"strokes: single jobsets"
    )


def _number(row: Cells, name: str) -> str:
    return f"{number(row, name):.{2 if row['metric'] == 'slowdown' else 1}f}"
