"""Utility accrual: trained policies (``--runs``) against the paper's rulebase, rate by rate.

At the rate that each run was trained at: 20 experiments of 20,000 steps, in which all policies have
the same arrivals; ``--jobsets`` makes it fewer experiments. Both preempt and squeeze.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import (
    Estimate,
    Pooled,
    difference_interval,
    two_level_interval,
)
from rllib_configs.policy_files import Decode, load_policy, read_policy_config
from rllib_configs.worlds.accrual import Setting, experiment
from rllib_configs.worlds.accrual.hindsight import earned, unseen_jobsets
from tune_jobs.comparing.trained_runs import find_runs
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENTS = 20
RULEBASE, NETWORK = "rulebase", "network"
NAMES = {RULEBASE: "rulebase, learned by TD", NETWORK: "network, trained"}
COLORS = {RULEBASE: "#d55e00", NETWORK: "#0072b2"}
OTHERS = {"aggressive": (RULEBASE, NETWORK), RULEBASE: (NETWORK,)}
"""Whom policies are compared with, and which ones."""

_TABLE = ("rate", "policy", "over", "gain", "gain_low", "gain_high", "seeds", "experiments")


def collect(request: FigureRequest) -> list[Row]:
    """A row for each rate, policy and policy that it is compared with: gains in per cent.

    Raises:
        InputError: if there is no run, or one that was not trained on Poisson arrivals.
    """
    at: dict[float, list[Path]] = {}
    for path in find_runs(request.runs):
        task = read_policy_config(path).task
        rate = getattr(task.workload, "rate", None)
        if task.world.kind != "accrual" or rate is None:
            raise InputError(f"{path} was not trained on Poisson arrivals at accrual servers")
        at.setdefault(float(rate), []).append(path)
    if not at:
        raise InputError("this figure is of trained policies; name their folders with --runs")
    return [row for rate in sorted(at) for row in _rows_at(rate, at[rate], request)]


def _rows_at(rate: float, runs: Sequence[Path], request: FigureRequest) -> Iterator[Row]:
    count = min(request.num_jobsets, EXPERIMENTS)
    setting = Setting(rate=rate, experiments=count, seed=request.seed)
    found = {
        one.policy: one.productivity[None]
        for one in experiment(setting, ("aggressive", "utility"), ("both",))
    }
    found[RULEBASE] = found.pop("utility")
    jobsets, until = unseen_jobsets(setting), replace(setting.world, max_time=setting.steps)
    decode: Decode = "sample" if request.decode == "sample" else "argmax"
    policies = [load_policy(path, decode, world=until)[0] for path in runs]
    each = replace(setting, world=until)
    found[NETWORK] = np.stack([earned(policy, jobsets, each) for policy in policies])
    for other, names in OTHERS.items():
        for name in names:
            gain = _gain(found[name], found[other][0])
            yield {
                "rate": rate,
                "policy": name,
                "over": other,
                "gain": gain.value,
                "gain_low": gain.low,
                "gain_high": gain.high,
                "productivity": float(found[name].mean()) / 1000,
                "seeds": len(runs) if name == NETWORK else "",
                "experiments": count,
            }


def _gain(utility: NDArray[np.float64], other: NDArray[np.float64]) -> Estimate:
    """Gain in per cent of the other's mean.

    Args:
        utility: float64 ``(seeds, experiments)``.
        other: float64 ``(experiments,)``, on the same arrivals.
    """
    scale = 100 / other.mean()
    means = Pooled.each(utility.mean(axis=0) * scale)
    pooled = difference_interval(means, Pooled.each(other * scale))
    gains = [float(mean) for mean in (utility.mean(axis=1) - other.mean()) * scale]
    return two_level_interval([gains], pooled, other.size)


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`."""
    rows = read_table(table, _TABLE)
    with styled():
        figure = new_figure(4.4)
        panels = figure.subplots(1, 2)
        for axes, other in zip(panels, OTHERS, strict=True):
            own = [row for row in rows if row["over"] == other]
            for policy in OTHERS[other]:
                _draw_gains(axes, [row for row in own if row["policy"] == policy], policy)
            axes.axhline(0.0, color=INK, linewidth=1)
            axes.set_title(f"over the {'aggressive policy' if other == 'aggressive' else other}")
            rates = sorted({number(row, "rate") for row in own})
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.margins(x=0.16)
            axes.set_xlabel("jobs that arrive in a step")
        _annotate(panels[1], [row for row in rows if row["over"] == RULEBASE])
        panels[0].set_ylabel("gain of utility (%)")
        panels[0].legend(loc="upper left", fontsize=9)
        seeds = {row["seeds"] for row in rows if row["policy"] == NETWORK}
        count = int(number(rows[0], "experiments"))
        headline(
            figure,
            "What a trained network gains",
            f"{' or '.join(sorted(seeds))} training seeds at each rate, {count} experiments of "
            "20,000 steps; bars: 95 % intervals over both",
        )
    return figure


def _draw_gains(axes: "Axes", rows: Sequence[Cells], policy: str) -> None:
    rate, gain, low, high = (
        np.array([number(row, name) for row in rows])
        for name in ("rate", "gain", "gain_low", "gain_high")
    )
    axes.errorbar(
        rate,
        gain,
        [gain - low, high - gain],
        fmt="o-",
        color=COLORS[policy],
        capsize=3,
        label=NAMES[policy],
    )


def _annotate(axes: "Axes", rows: Sequence[Cells]) -> None:
    for row in rows:
        gain = number(row, "gain")
        axes.annotate(
            f"{gain:+.2f}",
            (number(row, "rate"), gain),
            xytext=(7, 7),
            textcoords="offset points",
            fontsize=9,
        )
