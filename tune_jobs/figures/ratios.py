"""Policies over the best ordinary rule, sequence by sequence, each with side metrics.

A mean over a few sequences hangs on a handful of jobs; the ratio on the same sequence does not.
"""

from pathlib import Path

from matplotlib.figure import Figure

from cluster_env.evaluation import get_metric
from tune_jobs.figures.comparison import POLICY, read_policies
from tune_jobs.figures.scenarios import counted, draw_panels
from tune_jobs.figures.style import plain_ticks, styled
from tune_jobs.recipes.ratios import SIDE_METRICS
from tune_jobs.tables.columns import column
from tune_jobs.tables.frames import with_numbers

_RATIO = ("ratio", "ratio_low", "ratio_high", "ratio_over", "better", "best_rule")

_COLUMNS = ("place", "exhibit", "metric", "jobsets", *POLICY, *_RATIO, *SIDE_METRICS)

_PANEL = 6.4  # inches

_TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 30)


def draw(table: Path) -> Figure:
    """A panel for each scenario: ratios with their intervals, and numbers beside."""
    rows = read_policies(table, _COLUMNS, ("ratio",), SIDE_METRICS)
    metric = get_metric(rows["metric"].iloc[0])
    rows = with_numbers(rows, [metric.name])
    scenarios = {
        str(name): some.sort_values("ratio", kind="stable")
        for name, some in rows.groupby("place", sort=False)
    }
    note = (
        f"{metric.label} relative to the best rule of a panel, as a geometric mean over "
        "sequences; bars: paired 95% intervals over sequences. Beside it: its mean, "
        "utilization until the last finish (to end) and while jobs arrive (util), mean "
        "wait and longest wait"
    )
    numbers = {"ratio": "ratio", metric.name: "mean"}
    numbers |= {name: column(name).head for name in SIDE_METRICS}
    with styled():
        figure, panels = draw_panels(scenarios, "ratio", numbers, note, _PANEL)
        for axes, (name, some) in zip(panels, scenarios.items(), strict=True):
            axes.axvline(1.0, color="#9a9a9a", linewidth=1, zorder=0)
            axes.set_xscale("log")
            plain_ticks(axes.xaxis, _TICKS)
            first = some.iloc[0]
            title = f"{counted(first['jobsets'], 'sequence')}, best rule {first['best_rule']}"
            axes.set_title(f"{name}: {title}", pad=14, fontsize=10)
        panels[-1].set_xlabel("ratio to the best rule; below 1 is better")
    return figure
