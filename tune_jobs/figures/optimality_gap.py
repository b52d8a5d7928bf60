"""How far policies are from the best that anybody could have done in hindsight."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cluster_env.evaluation import METRICS
from tune_jobs.figures.comparison import POLICY, cut_texts, in_words, read_policies
from tune_jobs.figures.kit.dots import draw_dots, name_lines, write_above
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, styled
from tune_jobs.measuring.wording import described, on_jobs

COLUMNS = (
    *("series", "jobset", *POLICY, "unfinished", "value", "best", "bound", "status"),
    *("ratio", "ratio_low", "ratio_high", "interval_over"),
    *("metric", "jobsets", "proven", "time_limit_s"),
)

_MEASURED = ("unfinished", "value", "best", "bound", "ratio", "ratio_low", "ratio_high")

_ROW_HEIGHT = 0.62


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    rows = read_policies(table, COLUMNS, numbers=(*_MEASURED, "time_limit_s"))
    policies = rows[rows["series"] == "policy"].sort_values("ratio", kind="stable")
    first = policies.iloc[0]
    label = METRICS.get(first["metric"]).label
    digits = 2 if first["metric"] == "slowdown" else 1
    title = f"{label} relative to the best schedule in hindsight, {on_jobs(first)}"
    with styled():
        figure = new_figure(1.9 + _ROW_HEIGHT * len(policies))
        axes = figure.subplots()
        headline(figure, title, _measured_on(policies, digits))
        draw_dots(axes, policies, "ratio", size=8, width=3)
        texts = [
            f"{row['ratio']:.2f} times ({row['value']:.{digits}f})"
            for _, row in policies.iterrows()
        ]
        texts = cut_texts(policies, texts)
        write_above(axes, policies["ratio"], texts, offset=(-4, 8), align="left")
        for line, (_, row) in enumerate(policies.iterrows()):  # a stroke for each jobset
            each = rows.loc[(rows["series"] == "jobset") & (rows["key"] == row["key"]), "ratio"]
            heights = np.full(len(each), line + 0.22)
            stroke = {"markersize": 7, "color": row["color"], "alpha": 0.45}
            axes.plot(each, heights, marker="|", linestyle="none", **stroke)
        beside = [in_words(row) for _, row in policies.iterrows()]
        names = [
            "\n".join(filter(None, pair)) for pair in zip(policies["label"], beside, strict=True)
        ]
        name_lines(axes, names, size=9.5, top=-0.85)
        axes.margins(x=0.08)
        axes.axvline(1.0, color=INK, linewidth=1.2, zorder=1)
        if first["bound"] < first["best"]:  # the optimum may lie as low
            bound = first["bound"] / first["best"]
            axes.axvspan(bound, 1.0, color=MUTED, alpha=0.18, linewidth=0, zorder=0)
        axes.set_xlabel(
            f"{label} relative to the best known schedules ({first['best']:.{digits}f})"
        )
    return figure


def _measured_on(policies: pd.DataFrame, digits: int) -> str:
    """On what the numbers rest, and what marks mean."""
    row, over = policies.iloc[0], set(policies["interval_over"])
    jobsets, proven = int(row["jobsets"]), int(row["proven"])
    band = "" if proven == jobsets else f" (band: down to the bound, {row['bound']:.{digits}f})"
    seeds = " and seeds" if "seeds and jobsets" in over else ""
    bars = f"95% intervals over jobsets{seeds}" if over - {"nothing"} else "no intervals"
    return (
        f"{jobsets:,} unseen jobsets, {proven:,} of them proven optimal in "
        f"{row['time_limit_s']:g} s each{band}; {described(row)}, {bars}; strokes: single jobsets"
    )
