"""Adaptation step by step: every method's cost over the best baseline's, and its win rate."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from cluster_env.worlds import get_spec
from tune_jobs.figures.adaptation_by_objective import draw_objectives
from tune_jobs.figures.adaptation_data import (
    SIDE_METRICS,
    WIN_RATIO,
    Method,
    Statistic,
    cells_of,
    geometric,
    load_methods,
    log_ratio,
    ratio,
    won,
)
from tune_jobs.figures.adaptation_panels import draw_methods, grid_of_panels, measured_on
from tune_jobs.figures.learning_curves import MOST_LINES
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, color_of, headline, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    *("series", "family", "objective", "method", "step", "episodes"),
    *("value", "value_low", "value_high", "seeds", "tasks", "adaptations"),
)


@dataclass(frozen=True)
class StepsFigure:
    """A statistic of every method against steps of adaptation, a panel for each family of tasks.

    Attributes:
        title: of the figure.
        note: what its small print says of the statistic.
        statistic: of the ratio of cost to baseline.
        by_objective: whether it shows the first and the last step for each objective instead.
        heuristics: whether heuristics that are no baselines have lines of their own.
        share: whether the statistic is a share, from 0 to 1.
    """

    title: str
    note: str = ""
    statistic: Statistic = ratio
    by_objective: bool = False
    heuristics: bool = False
    share: bool = False

    def collect(self, request: FigureRequest) -> list[Row]:
        """Sums up rows of `metasched study`.

        Returns:
            For each panel, a row for each method and number of steps (``series`` is ``method``):
            the mean of the statistic over meta-seeds, tasks and adaptations, with its 95 %
            interval, and ``geometric``, where it is the ratio, that of its logarithms; one for
            each heuristic that is drawn; and one for the best baselines, whose ratio is 1
            (``series`` is ``baseline``). Each has the means of `SIDE_METRICS` as far as rows have
            them.

        Raises:
            InputError: if there are no rows, they do not belong together, or each family has a
                single objective where objectives have panels.
        """
        methods, heuristics = load_methods(request)
        place = ("family", "objective") if self.by_objective else ("family",)
        if self.by_objective:
            methods = _by_objective(methods)
        rows = [row for method in methods for row in self._rows(method)]
        rows += _heuristics(heuristics) if self.heuristics else []
        return rows + _best_baselines(heuristics, *place)

    def draw(self, table: Path) -> "Figure":
        """Draws the CSV file of `collect`.

        Raises:
            InputError: if the file does not hold it.
        """
        from matplotlib.ticker import PercentFormatter

        rows = read_table(table, COLUMNS)
        if self.by_objective:
            return draw_objectives([row for row in rows if row["series"] == "method"], self.title)
        families = list(dict.fromkeys(row["family"] for row in rows))
        with styled():
            figure, panels = grid_of_panels(len(families))
            headline(figure, self.title, f"{measured_on(rows)}; {self.note}")
            for axes, family in zip(panels, families, strict=True):
                mine = [row for row in rows if row["family"] == family]
                if self.share:
                    axes.set_ylabel("share of tasks")
                    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
                else:
                    axes.set_ylabel("cost over the best baseline's")
                    axes.axhline(1.0, color=INK, linewidth=1.2, zorder=1)
                lines = [
                    (number(row, "value"), row["method"], color_of(row["method"], learned=False))
                    for row in mine
                    if row["series"] == "heuristic"
                ]
                of_methods = [row for row in mine if row["series"] == "method"]
                draw_methods(axes, family, of_methods, lines, (0.0, 1.03) if self.share else None)
        return figure

    def _rows(self, method: Method) -> list[Row]:
        """A row for each number of steps."""
        rows: list[Row] = []
        for step, episodes in zip(method.steps, method.episodes, strict=True):
            cells = cells_of(method.estimate(step, self.statistic), "value")
            if self.share:  # Student's interval over seeds knows no bounds
                for end in ("value_low", "value_high"):
                    cells[end] = float(np.clip(float(cells[end]), 0.0, 1.0))
            if self.statistic is ratio:
                cells |= cells_of(geometric(method.table(step, log_ratio)), "geometric")
            rows.append(
                {
                    "series": "method",
                    "family": method.family,
                    "objective": method.objectives[0] if self.by_objective else "",
                    "method": method.label,
                    "step": step,
                    "episodes": episodes,
                    **cells,
                    "seeds": method.num_seeds,
                    "tasks": method.num_tasks,
                    "adaptations": int(method.ratios.shape[3]),
                    **method.means_beside(step),
                }
            )
        return rows


BY_FAMILY = StepsFigure(
    "Adaptation to unseen tasks: cost over that of the best baseline",
    "1 is the best baseline on each task",
    heuristics=True,
)
BY_OBJECTIVE = StepsFigure(
    "Adaptation by objective: cost over that of the best baseline",
    by_objective=True,
)
WIN_RATE = StepsFigure(
    "On how many unseen tasks methods do as well as the best baseline after adaptation",
    f"a task is won at a cost of at most {WIN_RATIO:g} times the baseline's",
    statistic=won,
    share=True,
)


def _by_objective(methods: Sequence[Method]) -> list[Method]:
    """The methods on the tasks of each objective, in families that have several."""
    found: list[Method] = []
    for family in dict.fromkeys(method.family for method in methods):
        mine = [method for method in methods if method.family == family]
        objectives = sorted({name for method in mine for name in method.objectives})
        if len(objectives) > 1:
            found += [method.on(objective) for objective in objectives for method in mine]
    if not found:
        raise InputError("in these rows every family has a single objective; draw adaptation")
    return found


def _heuristics(heuristics: Sequence[Cells]) -> list[Row]:
    """A row for each family and each heuristic that is no baseline: those are what 1 stands for.

    None where a family has more of them than lines can be told apart.
    """
    others = _grouped([row for row in heuristics if not _is_baseline(row)], "family", "method")
    families = Counter(family for family, _ in others)
    rows: list[Row] = []
    for (family, name), some in others.items():
        if families[family] > MOST_LINES:
            continue
        ratios = np.array([number(row, "ratio") for row in some])
        estimate = jobset_interval(Pooled.each(ratios))
        rows.append(
            {
                "series": "heuristic",
                "family": family,
                "method": name,
                **cells_of(estimate, "value"),
                "tasks": ratios.size,
                **_side_means(some),
            }
        )
    return rows


def _best_baselines(heuristics: Sequence[Cells], *place: str) -> list[Row]:
    """A row for each family, or objective of one: each task's best baseline, and side metrics."""
    best = [row for row in heuristics if row.get("best_heuristic", "") == row.get("policy")]
    return [
        {
            "series": "baseline",
            **dict(zip(place, names, strict=True)),
            "method": "best baseline",
            "value": 1.0,
            "tasks": len(some),
            **_side_means(some),
        }
        for names, some in _grouped(best, *place).items()
    ]


def _grouped(rows: Sequence[Cells], *columns: str) -> dict[tuple[str, ...], list[Cells]]:
    """Rows by what stands in some columns, in the order of the first of each."""
    groups: dict[tuple[str, ...], list[Cells]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return groups


def _side_means(rows: Sequence[Cells]) -> Row:
    """Means of the side metrics that rows have."""
    names = [name for name in SIDE_METRICS if rows[0].get(name)]
    return {name: float(np.mean([number(row, name) for row in rows])) for name in names}


def _is_baseline(row: Cells) -> bool:
    """Whether a heuristic is among those whose best cost divides all others."""
    if "baseline" in row:
        return row["baseline"] == "1"
    return row["method"] in get_spec("deeprm").baselines  # rows of when no other world was there
