"""What hidden facts are worth: rules and policies that know more, on the same tasks.

Families whose names begin with that of another one have its tasks, and show more of them. All costs
are divided by those of the best rule of each task where least is known.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from tune_jobs.figures.adaptation import side_means
from tune_jobs.figures.adaptation_data import Ratios, geometric, load_methods, log_ratio
from tune_jobs.figures.kit.dots import draw_dots, name_lines
from tune_jobs.figures.style import INK, color_of, headline, new_figure, styled
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, estimate_cells, read_frame, with_numbers

TEXTS = ("family", "kind", "method")
NUMBERS = ("step", "ratio", "ratio_low", "ratio_high", "seeds", "tasks")
RULE, LEARNED = "best rule", "learned"


def collect(request: FigureRequest) -> list[Row]:
    """Compares families that show different things of the same tasks.

    Returns:
        For each family, a row for the rule with the lowest costs over all tasks, and one for each
        method and number of steps. ``ratio`` is the geometric mean over tasks, and runs, of the
        cost over that of the best rule of the task in the family that shows least, with its 95 %
        interval.

    Raises:
        InputError: if there are no rows, or none of rules, a family's name does not begin with that
            of the family that shows least, or its tasks are others.
    """
    methods, rules = load_methods(request)
    if not {"cost", "best", "baseline"} <= {*rules}:
        raise InputError("these rows hold no costs of rules; give the folder of metasched study")
    rules = with_numbers(rules, ["task", "cost", "best"])
    costs = {
        name: mine.pivot_table("cost", "method", "task", sort=False)
        for name, mine in rules.groupby("family", sort=False)
    }
    best = {
        name: mine.groupby("task")["best"].first().to_numpy(float)
        for name, mine in rules.groupby("family", sort=False)
    }
    home = min(best, key=len)
    for name, values in best.items():
        if not name.startswith(home) or values.size != best[home].size:
            raise InputError(
                f"the families {home} and {name} have different tasks; measure each on as many, "
                f"and let the name of one that shows more begin with {home}"
            )
    found: list[Row] = []
    for name, table in costs.items():
        of_world = rules[(rules["family"] == name) & (rules["baseline"] == "1")]
        logs = np.log(table.loc[of_world["method"].unique()] / best[home])
        lowest = str(logs.mean(axis=1).idxmin())
        beside = of_world[of_world["method"] == lowest]
        found.append(
            {
                **{"family": name, "kind": RULE, "method": lowest, "step": 0},
                **_ratio(logs.loc[lowest].to_numpy(float)),
                **{"seeds": 1, "tasks": len(beside)},
                **side_means(beside),
            }
        )
        shift = np.log(best[name] / best[home])
        found += [
            {
                **{"family": name, "kind": LEARNED, "method": method.label, "step": step},
                **estimate_cells("ratio", geometric(method.table(step, log_ratio) + shift)),
                **{"seeds": method.num_seeds, "tasks": method.num_tasks},
                **method.means_beside(step),
            }
            for method in methods
            if method.family == name
            for step in method.steps
        ]
    return found


def _ratio(logs: Ratios) -> Row:
    """The geometric mean over tasks with its interval, from logarithms."""
    cells = estimate_cells("ratio", jobset_interval(Pooled.each(logs)))
    return {name: float(np.exp(float(value))) for name, value in cells.items()}


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`: a line for each rule, and each method after some steps."""
    rows = read_frame(table, TEXTS, NUMBERS)
    learned = rows["kind"] == LEARNED
    places, families = pd.factorize(rows["family"])
    rows["color"] = [color_of("", learned=True, place=place) for place in places]
    rows["marker"] = np.where(learned, "o", "s")
    after = np.where(learned, " +" + rows["step"].astype(int).astype(str), "")
    names = rows["method"] + after + ", " + rows["family"]
    with styled():
        figure = new_figure(1.5 + 0.22 * len(rows))
        axes = figure.subplots()
        headline(
            figure,
            f"What is hidden in {families[0]}, and who finds it",
            "cost over that of the best rule of each task where least is known, geometric mean "
            "over tasks; squares: the best rule; circles: learned policies after so many steps; "
            f"bars: 95% intervals; {rows['tasks'].iloc[0]:.0f} unseen tasks, up to "
            f"{rows['seeds'].max():.0f} training seeds",
        )
        axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
        draw_dots(axes, rows, "ratio")
        name_lines(axes, names)
        axes.set_xlabel("cost / best rule that knows least")
    return figure
