"""How much of the way from joint training to specialists adaptation goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled, ratio_interval
from tune_jobs.adapting.rows import SPECIALISTS_FILE
from tune_jobs.figures.adaptation_data import (
    JOINT,
    SIDE_METRICS,
    Method,
    cells_of,
    interval,
    load_methods,
    ratio,
    untrained,
)
from tune_jobs.figures.adaptation_panels import draw_methods, grid_of_panels
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPECIALIST = "specialist"
COLUMNS = ("family", "method", "step", "value", "value_low", "value_high", "closed", "tasks")


def collect(request: FigureRequest) -> list[Row]:
    """Compares methods on the tasks that have specialists.

    Returns:
        For each family with specialists, a row for them, then one for each method and number of
        steps: ``value``, mean cost over baseline on these tasks, and ``closed``, the share of the
        difference between the unadapted joint policy and the specialists that lies between the
        unadapted joint policy and the method, with 95 % intervals (of ``closed`` over tasks alone).
        Each has the means of `SIDE_METRICS` on these tasks, as far as rows have them.

    Raises:
        InputError: if there are no rows, no specialists, or no joint training to compare with.
    """
    methods, _ = load_methods(request)
    rows: list[Row] = []
    for family in dict.fromkeys(method.family for method in methods):
        specialists = _specialists(request.rows, family)
        if specialists:
            rows += _rows([method for method in methods if method.family == family], specialists)
    if not rows:
        raise InputError("there are no specialists; metasched specialists RUN --out FOLDER trains")
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_table(table, COLUMNS)
    families = list(dict.fromkeys(row["family"] for row in rows))
    with styled():
        figure, panels = grid_of_panels(len(families))
        tasks = sorted({int(number(row, "tasks")) for row in rows})
        headline(
            figure,
            "How much of what is to be gained adaptation gains",
            f"cost over the best heuristic's; line: policies that were trained for each task alone;"
            f" {' and '.join(map(str, tasks))} held-out tasks; bars: 95% intervals",
        )
        for axes, family in zip(panels, families, strict=True):
            _draw_panel(axes, family, [row for row in rows if row["family"] == family])
    return figure


def _specialists(folders: Sequence[Path], family: str) -> list[Cells]:
    """A row for each task that has one."""
    for folder in folders:
        path = Path(folder) / family / SPECIALISTS_FILE
        if path.is_file():
            return read_table(path, ("task", "ratio"))
    return []


def _rows(methods: Sequence[Method], of_specialists: Sequence[Cells]) -> list[Row]:
    specialists = np.array([number(row, "ratio") for row in of_specialists])
    count = specialists.size
    joint = next((method for method in methods if method.kind == JOINT and 0 in method.steps), None)
    if joint is None or joint.num_tasks < count:
        raise InputError(
            f"the family {methods[0].family} has no rows of joint training on the specialists' "
            f"tasks"
        )
    before = joint.table(0, ratio)[:, :count].mean(axis=0)
    head: dict[str, str | float | int | bool] = {"family": joint.family, "tasks": count}
    rows: list[Row] = [
        {
            **head,
            "method": SPECIALIST,
            "step": 0,
            **cells_of(interval(specialists[None]), "value"),
            "closed": 1.0,
            **{
                name: float(np.mean([number(row, name) for row in of_specialists]))
                for name in SIDE_METRICS
                if of_specialists[0].get(name)
            },
        }
    ]
    for method in methods:
        for step in method.steps:
            table = method.table(step, ratio)[:, :count]
            gained = Pooled.each(before - table.mean(axis=0))
            closed = ratio_interval(gained, Pooled.each(before - specialists))
            value = cells_of(interval(table), "value")
            rows.append(
                {
                    **head,
                    "method": method.label,
                    "step": step,
                    **value,
                    **cells_of(closed, "closed"),
                    **method.means_beside(step, count),
                }
            )
    return rows


def _draw_panel(axes: "Axes", family: str, rows: Sequence[Cells]) -> None:
    floor = next(number(row, "value") for row in rows if row["method"] == SPECIALIST)
    methods = [row for row in rows if row["method"] != SPECIALIST and not untrained(row["method"])]
    values = [floor, *(number(row, "value") for row in methods)]
    room = 0.07 * float(np.ptp(values))
    limits = (min(values) - room, max(values) + room)
    draw_methods(axes, family, methods, [(floor, "specialists", INK)], limits)
