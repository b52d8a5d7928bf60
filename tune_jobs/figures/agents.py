"""PANDA's agents beside the central rules: their side metrics, and how they do as time goes on."""

import textwrap
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cluster_env.evaluation import get_metric
from tune_jobs.figures.comparison import COLUMNS, measured_on, name_of, ranked, read_policies
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.kit.dots import draw_dots, name_lines, write_above
from tune_jobs.figures.style import MUTED, PALETTE, headline, label_ends, new_figure, styled
from tune_jobs.tables.frames import with_numbers

PANELS = ("utilization", "wait", "longest_wait", "class_deviation", "jain_index")
"""What is shown of each policy behind the metric: side metrics, and fairness."""

_BESIDE = 3  # panels in a line


def draw(table: Path) -> Figure:
    """A row for each policy, from the best mean on, a panel for the metric and each of `PANELS`."""
    rows = read_policies(table, COLUMNS, numbers=PANELS)
    metric = rows["metric"].iloc[0]
    shown = [metric, *(name for name in PANELS if name != metric)]
    ends = [f"{name}_{end}" for name in shown for end in ("low", "high")]
    rows = with_numbers(rows, [metric, *(name for name in ends if name in rows)])
    order = ranked(rows, metric, metric)
    lines = -(-len(shown) // _BESIDE)
    with styled():
        figure = new_figure(0.8 + lines * (0.9 + 0.34 * len(order)))
        panels = figure.subplots(lines, _BESIDE, sharey=True)
        headline(figure, "Agents on unlike nodes, compared with central rules", measured_on(rows))
        for axes, name in zip(panels.flat, shown, strict=False):
            metric = get_metric(name)
            draw_dots(axes, order, name, size=5.5, width=2.4)
            axes.margins(x=0.2)
            texts = [f"{value:.3g}" for value in order[name]]
            write_above(axes, order[name], texts, size=7.5, offset=(0, 4))
            axes.set_title(textwrap.fill(metric.label, 24), fontsize=9.5)
            better = "more is better" if metric.higher_is_better else "less is better"
            axes.set_xlabel(better, fontsize=9)
            axes.tick_params(axis="x", labelsize=9)
            name_lines(axes, order["label"], size=8.5, top=-0.9, linespacing=1.0)
        for empty in panels.flat[len(shown) :]:
            empty.set_visible(False)
    return figure


def draw_drift(table: Path) -> Figure:
    """Total times by the time of arrival, above the mix of classes and the nodes that are there."""
    columns = ("policy", "key", "learned", "seeds", "jobsets", "mix")
    rows = read_policies(table, columns, numbers=("time", "there", "value", "low", "high"))
    with styled():
        figure = new_figure(6.4)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.1))
        headline(
            figure,
            "Total time of consumers in the system, by time of arrival",
            f"{int(rows['jobsets'].iloc[0]):,} unseen jobsets; bands: 95% intervals over them",
        )
        curves = []
        for _, line in rows.groupby("key", sort=False):
            last = line.iloc[-1]
            x, y, low, high = line[["time", "value", "low", "high"]].to_numpy().T
            width = 2.4 if last["is_learned"] else 1.3
            name = name_of(last, several=True)
            curves.append(Curve(name, last["color"], x, y, low, high, width=width))
        ends = draw_curves(upper, curves)
        upper.set_ylabel("mean total time (steps)")
        label_ends(upper, ends)
        first = rows[rows["key"] == rows["key"].iloc[0]]
        mix = np.array([[float(share) for share in shares.split()] for shares in first["mix"]])
        greys = [str(0.45 + 0.5 * k / mix.shape[1]) for k in range(mix.shape[1])]
        lower.stackplot(first["time"], mix.T, colors=greys, linewidth=0)
        lower.plot(first["time"], first["there"], color=PALETTE[0], linewidth=2)
        lower.set_ylim(0, 1.05)
        lower.set_ylabel("share")
        lower.set_xlabel("arrival (steps)")
        classes = (0.3, "greys: classes of consumers", MUTED)
        label_ends(lower, [(first["there"].iloc[-1], "available nodes", PALETTE[0]), classes], 9)
    return figure
