"""How far policies of utility accrual are from what nobody can beat in hindsight.

Small jobsets of the paper's jobs, because the search for the bound takes seconds for each:
arrivals in 40 steps, at most 20 jobsets a rate.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.core.policy import Policy
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation.intervals import Pooled, ratio_interval
from rllib_configs.policy_files import Decode, load_policy
from rllib_configs.worlds.accrual import Setting
from rllib_configs.worlds.accrual.hindsight import (
    bound_of,
    earned,
    learned_rulebase,
    small_jobsets,
)
from tune_jobs.comparing.trained_runs import find_runs
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

JOBSETS = 20
WINDOW = 40
RATES = (0.1, 0.2)
HEURISTICS = ("edf", "lbesa", "dasa", "density", "none", "aggressive")
LEARNED = "rulebase"

_TABLE = ("rate", "policy", "share", "share_low", "share_high", "jobsets", "proven", "bound")


def collect(request: FigureRequest) -> list[Row]:
    """A row for each rate (``--at``) and policy: its utility over the sum of the bounds."""
    rows: list[Row] = []
    for rate in request.at or RATES:
        rows += _rows_at(rate, request)
    return rows


def _rows_at(rate: float, request: FigureRequest) -> Iterator[Row]:
    setting = Setting(rate=rate, experiments=JOBSETS, seed=request.seed)
    count = min(request.num_jobsets, JOBSETS)
    jobsets = small_jobsets(setting, WINDOW, count)
    progress = request.progress
    progress.start(len(jobsets), unit="jobset")
    found = []
    for done, jobset in enumerate(jobsets, start=1):
        found.append(bound_of(jobset, setting, request.time_limit_s))
        progress.step(done, f"{rate:g} jobs a step")
    progress.close()
    bound = np.array([one.bound for one in found])
    for policy in _policies(setting, request):
        utility = earned(policy, jobsets, setting)
        share = ratio_interval(Pooled.each(utility), Pooled.each(bound))
        yield {
            "rate": rate,
            "policy": policy.name,
            "share": share.value,
            "share_low": share.low,
            "share_high": share.high,
            "utility": float(utility.mean()),
            "bound": float(bound.mean()),
            "proven": sum(one.status == "optimal" for one in found),
            "jobsets": len(jobsets),
            "time_limit_s": request.time_limit_s,
        }


def _policies(setting: Setting, request: FigureRequest) -> Iterator[Policy]:
    """Rules, the mean of rulebases that were learned at this rate, and runs."""
    for name in HEURISTICS:
        yield get_heuristic(name, setting.world)
    yield learned_rulebase(setting, LEARNED)
    decode: Decode = "sample" if request.decode == "sample" else "argmax"
    for path in find_runs(request.runs):
        yield load_policy(path, decode, world=setting.world)[0]


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`."""
    rows = read_table(table, _TABLE)
    rates = list(dict.fromkeys(row["rate"] for row in rows))
    with styled():
        figure = new_figure(1.6 + 0.36 * len({row["policy"] for row in rows}))
        panels = figure.subplots(1, len(rates), squeeze=False, sharey=True)[0]
        for axes, rate in zip(panels, rates, strict=True):
            _draw_shares(axes, [row for row in rows if row["rate"] == rate])
        count, proven = (
            sum(
                int(number(next(row for row in rows if row["rate"] == rate), name))
                for rate in rates
            )
            for name in ("jobsets", "proven")
        )
        headline(
            figure,
            "Utility over what nobody can beat in hindsight",
            f"arrivals in {WINDOW} steps on 24 processors; {count} jobsets, the bound of {proven} "
            "searched to the end; bars: 95 % intervals",
        )
    return figure


def _draw_shares(axes: "Axes", rows: Sequence[Cells]) -> None:
    share, low, high = (
        np.array([number(row, name) for row in rows])
        for name in ("share", "share_low", "share_high")
    )
    place = np.arange(len(rows))
    axes.barh(place, share, 0.6, color="#0072b2")
    axes.errorbar(share, place, xerr=[share - low, high - share], fmt="none", ecolor=INK, capsize=3)
    for k, value in enumerate(share):
        axes.annotate(f"{value:.0%}", (0.02, place[k]), va="center", color="white", fontsize=9)
    axes.set_yticks(place, [row["policy"] for row in rows])
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the bound")
    axes.set_title(f"{number(rows[0], 'rate'):g} jobs a step")
    axes.grid(axis="y", visible=False)
