"""Several servers with one queue (Vengerov, section 4.2): productivity of a server by policy.

20 experiments of 20,000 steps, after 25,000 steps of learning on other arrivals; ``--jobsets``
makes it fewer experiments.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rllib_configs.worlds.accrual.pools import POOL_POLICIES, PoolSetting, pool_experiment
from rllib_configs.worlds.accrual.servers import Setting
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENTS = 20
RATES = (0.1, 0.2)
MACHINES = (1, 2, 4)

NAMES = {
    "none": "best fit alone",
    "aggressive": "aggressive",
    "own": "values of each server",
    "shared": "one value function",
}
COLORS = {"none": "#8a8a8a", "aggressive": "#e69f00", "own": "#d55e00", "shared": "#009e73"}

_TABLE = ("policy", "machines", "allocation", "rate", "experiments")
_MEASURED = ("productivity", "productivity_error")


def collect(request: FigureRequest) -> list[Row]:
    """A row for each rate of a server (``--at``), number of servers, allocation and policy."""
    experiments = min(request.num_jobsets, EXPERIMENTS)
    rows: list[Row] = []
    for rate in request.at or RATES:
        each = Setting(rate=rate, experiments=experiments, seed=request.seed)
        for machines in MACHINES:
            for allocation in ("machine", "job") if machines > 1 else ("machine",):
                setting = PoolSetting(machines=machines, allocation=allocation, each=each)
                rows += _rows_of(setting)
    return rows


def _rows_of(setting: PoolSetting) -> list[Row]:
    """Means over experiments, and gains over policies on the same arrivals."""
    found = {
        one.policy: one.productivity / 1000 / setting.machines for one in pool_experiment(setting)
    }
    root = np.sqrt(setting.each.experiments)

    def error(values: NDArray[np.float64]) -> float:
        return float(values.std(ddof=1) / root) if values.size > 1 else 0.0

    rows: list[Row] = []
    row: Row
    for policy, values in found.items():
        row = {
            "policy": policy,
            "machines": setting.machines,
            "allocation": setting.allocation,
            "rate": setting.each.rate,
            "experiments": setting.each.experiments,
            "productivity": float(values.mean()),
            "productivity_error": error(values),
        }
        for other in ("aggressive", "own"):
            gain = values - found[other]
            row[f"over_{other}"] = float(gain.mean())
            row[f"over_{other}_error"] = error(gain)
        rows.append(row)
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`: machine by machine, a panel for each rate."""
    rows = read_table(table, (*_TABLE, *_MEASURED))
    rates = list(dict.fromkeys(row["rate"] for row in rows))
    with styled():
        figure = new_figure(4.6)
        panels = figure.subplots(1, len(rates), squeeze=False)[0]
        for axes, rate in zip(panels, rates, strict=True):
            own = [row for row in rows if row["rate"] == rate and row["allocation"] == "machine"]
            _draw_bars(axes, own)
            axes.set_title(f"{float(rate):g} jobs a step and server")
        panels[0].set_ylabel("utility of a server (1000 units)")
        panels[0].legend(loc="upper left", fontsize=8, framealpha=1, frameon=True)
        count = int(number(rows[0], "experiments"))
        headline(
            figure,
            "Several servers with one queue",
            f"{count} experiments of 20,000 steps, each server of 24 processors; bars: standard "
            "errors; the axes do not begin at 0",
        )
    return figure


def _draw_bars(axes: "Axes", rows: list[Cells]) -> None:
    machines = list(dict.fromkeys(row["machines"] for row in rows))
    for place, policy in enumerate(POOL_POLICIES):
        own = [row for row in rows if row["policy"] == policy]
        x = np.arange(len(machines)) + 0.21 * (place - 1.5)
        values, errors = ([number(row, name) for row in own] for name in _MEASURED)
        axes.bar(x, values, 0.2, color=COLORS[policy], label=NAMES[policy])
        axes.errorbar(x, values, errors, fmt="none", ecolor=INK, capsize=2, linewidth=1)
        for k, value in enumerate(values):
            axes.annotate(
                f"{value:.0f}",
                (float(x[k]), value + errors[k]),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=7,
            )
    lowest = min(number(row, "productivity") for row in rows)
    highest = max(number(row, "productivity") for row in rows)
    axes.set_ylim(max(0.0, lowest - 20), highest + 0.35 * (highest - lowest) + 10)
    axes.set_xticks(
        range(len(machines)), [f"{count} server{'s' * (count != '1')}" for count in machines]
    )
    axes.grid(axis="x", visible=False)
