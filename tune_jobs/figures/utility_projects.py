"""Utility accrual with two projects, of which one has priority (Vengerov, section 6).

At most 20 experiments of 20,000 steps with the same arrivals under all policies, after 25,000 steps
of learning with each of five seeds. Each job is of either project with the same probability. Beside
it are the same jobs without priorities.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.recipes.utility_projects import ALL
from tune_jobs.tables.frames import read_frame

_SHARES = {
    (True, "1"): ("project with priority", "#d55e00"),
    (True, "0"): ("other project", "#0072b2"),
    (True, ALL): ("both together", "#8a8a8a"),
    (False, ALL): ("both, no priorities", "#009e73"),
}

_GAINS = {True: ("with priorities", "#d55e00"), False: ("no priorities", "#009e73")}


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    numbers = (
        "rate",
        *(f"{name}{end}" for name in ("share", "gain") for end in ("", "_low", "_high")),
    )
    rows = read_frame(
        table, ("policy", "priorities", "project"), (*numbers, "seeds", "experiments")
    )
    learned = rows[rows["policy"] == "utility"]
    with styled():
        figure = new_figure(4.4)
        left, right = figure.subplots(1, 2)
        for axes, column, looks in (
            (left, "share", _SHARES),
            (right, "gain", {(key, ALL): look for key, look in _GAINS.items()}),
        ):
            curves = []
            for (priorities, project), (name, color) in looks.items():
                of_project = learned[learned["project"] == project]
                mine = of_project[of_project["priorities"] == str(priorities)]
                curves.append(Curve.of(mine, "rate", column, name=name, color=color, marker="o"))
            draw_curves(axes, curves, "caps")
            rates = np.unique(learned["rate"])
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.set_xlabel("jobs arriving per step")
            axes.legend(fontsize=9)
        left.set_ylim(0, 1)
        left.set_title("utility-based policy")
        left.set_ylabel("share of the utility of jobs in time")
        right.axhline(0.0, color=INK, linewidth=1)
        right.set_title("over the aggressive policy")
        right.set_ylabel("gain of utility (%)")
        first = learned.iloc[0]
        headline(
            figure,
            "Two projects, of which one has priority",
            f"{first['seeds']:g} seeds of learning, {first['experiments']:g} experiments of 20,000 "
            "steps on 24 processors; bars: 95 % intervals over seeds and experiments",
        )
    return figure
