"""What correcting run times is worth: rules on whole logs, by what they believe."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cluster_env.evaluation import get_metric
from tune_jobs.figures.comparison import COLUMNS, read_policies
from tune_jobs.figures.kit.dots import draw_dots, name_lines, panels_beside, write_beside
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.scenarios import Scenario, ScenarioFigure, logs_of, written
from tune_jobs.figures.style import headline, styled
from tune_jobs.measuring.wording import spec_of_row
from tune_jobs.tables.frames import with_numbers

KINDS = {
    "user": ("#8a8a8a", "x"),
    "recent": ("#e69f00", "s"),
    "mixed": ("#d55e00", "o"),
    "actual": ("#0072b2", "D"),
}
"""What is believed, with color and marker; see `cluster_env.workloads.run_times`."""

_SIDE_METRICS = ("utilization", "wait", "longest_wait")
_COLUMN = 1.05  # inches, for a number beside the points


def _scenarios(request: FigureRequest) -> Iterator[Scenario]:
    for name, settings in logs_of(request):
        for kind in KINDS:
            changed = {**settings, "workload.run_times": kind}
            yield Scenario(f"{name}/{kind}", "hpc-smoke", changed, "whole")


def draw(table: Path) -> Figure:
    """A panel for each log, with a line for each rule, and side metrics below each number."""
    rows = read_policies(table, (*COLUMNS, "place", "exhibit"), numbers=_SIDE_METRICS)
    metric = get_metric(rows["metric"].iloc[0])
    rows = with_numbers(rows, [metric.name])
    rows[["log", "kind"]] = rows["place"].str.rsplit("/", n=1).tolist()
    rows["color"], rows["marker"] = zip(*(KINDS[kind] for kind in rows["kind"]), strict=True)
    logs = {str(log): some for log, some in rows.groupby("log", sort=False)}
    with styled():
        num_lines = [some["policy"].nunique() for some in logs.values()]
        figure, panels = panels_beside(num_lines, len(KINDS), line=0.42, head=0.8, column=_COLUMN)
        headline(
            figure,
            rows["exhibit"].iloc[0],
            f"{metric.label} of all jobs, one run each, with predicted run times: the "
            "users' estimates, the mean of the user's last two jobs, half way between "
            "estimates and the past, and the actual run times; below each number: utilization, "
            "mean wait and longest wait",
        )
        for panel, (log, some) in zip(panels, logs.items(), strict=True):
            _draw_log(panel, some, metric.name)
            panel.set_title(log, pad=14)
        panels[-1].set_xlabel(metric.label)
    return figure


def _draw_log(axes: Axes, rows: pd.DataFrame, metric: str) -> None:
    """Draws a log; the heads of the numbers have the colors of the points."""
    time = spec_of_row(rows.iloc[0]).presentation.time
    rules = {str(policy): some for policy, some in rows.groupby("policy", sort=False)}
    for line, some in enumerate(rules.values()):
        axes.hlines(line, some[metric].min(), some[metric].max(), "#c8c8c8", zorder=1)
        draw_dots(axes, some[["color", "marker", metric]], metric, lines=[line] * len(some))
        means = [written("bounded_slowdown", value) for value in some[metric]]
        write_beside(axes, line - 0.17, means, column=_COLUMN)
        beside = [
            " ".join(written(one, row[one], time).replace(" ", "") for one in _SIDE_METRICS)
            for _, row in some.iterrows()
        ]
        write_beside(axes, line + 0.22, beside, column=_COLUMN, size=6.5)
    colors = [color for color, _ in KINDS.values()]
    write_beside(axes, -1, list(KINDS), column=_COLUMN, bold=True, colors=colors)
    name_lines(axes, rules)
    axes.set_xscale("log")
    axes.tick_params(axis="x", labelsize=9)


FIGURE = ScenarioFigure(
    "Rules with better predictions of run times, on whole logs",
    _scenarios,
    baselines_only=True,
    draw=draw,
)
