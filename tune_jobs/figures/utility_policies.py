"""Policies of utility accrual, trained ones too: over the best in hindsight, and the rulebase.

``utility-bound`` is measured on small jobsets of the paper's jobs, because the search for the bound
takes seconds for each: arrivals in 40 steps, at most 20 jobsets a rate. ``utility-learned`` has
trained policies at the rate that each was trained at, in at most 20 experiments of 20,000 steps, in
which all policies have the same arrivals, preempt and squeeze.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.spec import get_heuristic
from cluster_env.core.world import World
from cluster_env.evaluation.intervals import (
    Estimate,
    Pooled,
    difference_interval,
    ratio_interval,
    two_level_interval,
)
from rllib_configs.policy_files import Decode, load_policy, read_policy_config
from rllib_configs.worlds.accrual.servers import (
    Setting,
    bound_of,
    earned,
    experiment,
    learned_rulebase,
    unseen_jobsets,
)
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.measuring.trained_runs import find_runs
from tune_jobs.tables.frames import Row, estimate_cells, read_frame

JOBSETS, EXPERIMENTS = 20, 20
WINDOW = 40
RATES = (0.1, 0.2)
HEURISTICS = ("edf", "lbesa", "dasa", "density", "none", "aggressive")
LEARNED = "rulebase"

RULEBASE, NETWORK = "rulebase", "network"
LOOKS = {
    RULEBASE: ("rulebase, learned by TD", "#d55e00"),
    NETWORK: ("network, trained", "#0072b2"),
}
OTHERS = {"aggressive": (RULEBASE, NETWORK), RULEBASE: (NETWORK,)}
"""Whom policies are compared with, and which ones."""


def load_policies(
    request: FigureRequest, runs: Sequence[str | Path], world: World
) -> Iterator[Policy]:
    """The policies of runs in a world."""
    decode: Decode = "sample" if request.decode == "sample" else "argmax"
    for path in runs:
        yield load_policy(path, decode, world=world)[0]


def collect_bound(request: FigureRequest) -> list[Row]:
    """A row for each rate (``--at``) and policy: its utility over the sum of the bounds.

    Policies are rules, the mean of rulebases that were learned at this rate, and runs.
    """
    rows: list[Row] = []
    for rate in request.at or RATES:
        setting = Setting(rate=rate, experiments=JOBSETS, seed=request.seed)
        small = replace(setting, steps=WINDOW, experiments=min(request.num_jobsets, JOBSETS))
        jobsets = [jobset for jobset in unseen_jobsets(small) if jobset.num_jobs]
        request.progress.start(len(jobsets), unit="jobset")
        bounds = []
        for done, jobset in enumerate(jobsets, start=1):
            bounds.append(bound_of(jobset, setting, request.time_limit_s))
            request.progress.step(done, f"{rate:g} jobs a step")
        request.progress.close()
        bound = np.array([one.bound for one in bounds])
        policies = [
            *(get_heuristic(name, setting.world) for name in HEURISTICS),
            learned_rulebase(setting, LEARNED),
            *load_policies(request, find_runs(request.runs), setting.world),
        ]
        for policy in policies:
            utility = earned(policy, jobsets, setting)
            share = ratio_interval(Pooled.each(utility), Pooled.each(bound))
            rows.append(
                {
                    "rate": rate,
                    "policy": policy.name,
                    **estimate_cells("share", share),
                    "utility": float(utility.mean()),
                    "bound": float(bound.mean()),
                    "proven": sum(one.status == "optimal" for one in bounds),
                    "jobsets": len(jobsets),
                    "time_limit_s": request.time_limit_s,
                }
            )
    return rows


def draw_bound(table: Path) -> Figure:
    """Draws the CSV file of `collect_bound`."""
    ends = ("share", "share_low", "share_high")
    rows = read_frame(table, ["policy", "bound"], ["rate", *ends, "jobsets", "proven"])
    rates = rows.groupby("rate", sort=False)
    with styled():
        figure = new_figure(1.6 + 0.36 * rows["policy"].nunique())
        panels = figure.subplots(1, rates.ngroups, squeeze=False, sharey=True)[0]
        for axes, (rate, mine) in zip(panels, rates, strict=True):
            places = np.arange(len(mine))
            share, low, high = mine[list(ends)].to_numpy().T
            axes.barh(places, share, 0.6, color="#0072b2")
            bars = [share - low, high - share]
            axes.errorbar(share, places, xerr=bars, fmt="none", ecolor=INK, capsize=3)
            for place, value in zip(places, share, strict=True):
                axes.annotate(f"{value:.0%}", (0.02, place), va="center", color="white", fontsize=9)
            axes.set_yticks(places, mine["policy"])
            axes.set_xlim(0, 1)
            axes.set_xlabel("share of the bound")
            axes.set_title(f"{rate:g} jobs a step")
            axes.grid(axis="y", visible=False)
        jobsets, proven = rates[["jobsets", "proven"]].first().sum()
        headline(
            figure,
            "Utility relative to a bound in hindsight",
            f"arrivals in {WINDOW} steps on 24 processors; {jobsets:g} jobsets, the search "
            f"for the bound finished on {proven:g}; bars: 95 % intervals",
        )
    return figure


def collect_learned(request: FigureRequest) -> list[Row]:
    """A row for each rate, policy and policy that it is compared with: gains in per cent.

    Raises:
        InputError: if there is no run, or one that was not trained on Poisson arrivals.
    """
    runs: dict[float, list[Path]] = {}
    for path in find_runs(request.runs):
        task = read_policy_config(path).task
        rate = getattr(task.workload, "rate", None)
        if task.world.kind != "accrual" or rate is None:
            raise InputError(f"{path} was not trained on Poisson arrivals at accrual servers")
        runs.setdefault(float(rate), []).append(path)
    if not runs:
        raise InputError("this figure is of trained policies; name their folders with --runs")
    count = min(request.num_jobsets, EXPERIMENTS)
    rows: list[Row] = []
    for rate in sorted(runs):
        setting = Setting(rate=rate, experiments=count, seed=request.seed)
        utility = {
            one.policy: one.productivity[None]
            for one in experiment(setting, ("aggressive", "utility"), ("both",))
        }
        utility[RULEBASE] = utility.pop("utility")
        until = replace(setting, world=replace(setting.world, max_time=setting.steps))
        jobsets = unseen_jobsets(setting)
        policies = load_policies(request, runs[rate], until.world)
        utility[NETWORK] = np.stack([earned(policy, jobsets, until) for policy in policies])
        for other, names in OTHERS.items():
            for name in names:
                gain = _gain(utility[name], utility[other][0])
                rows.append(
                    {
                        "rate": rate,
                        "policy": name,
                        "over": other,
                        **estimate_cells("gain", gain),
                        "productivity": float(utility[name].mean()) / 1000,
                        "seeds": len(runs[rate]) if name == NETWORK else "",
                        "experiments": count,
                    }
                )
    return rows


def _gain(utility: NDArray[np.float64], other: NDArray[np.float64]) -> Estimate:
    """Gain in per cent of the other's mean, on the same arrivals.

    Of utilities ``(seeds, experiments)`` over ``(experiments,)``, float64.
    """
    scale = 100 / other.mean()
    means = Pooled.each(utility.mean(axis=0) * scale)
    pooled = difference_interval(means, Pooled.each(other * scale))
    gains = [float(mean) for mean in (utility.mean(axis=1) - other.mean()) * scale]
    return two_level_interval([gains], pooled, other.size)


def draw_learned(table: Path) -> Figure:
    """Draws the CSV file of `collect_learned`."""
    numbers = ("rate", "gain", "gain_low", "gain_high", "experiments")
    rows = read_frame(table, ("policy", "over", "seeds"), numbers)
    with styled():
        figure = new_figure(4.4)
        panels = figure.subplots(1, 2)
        for axes, (other, policies) in zip(panels, OTHERS.items(), strict=True):
            mine = rows[rows["over"] == other]
            curves = []
            for policy in policies:
                name, color = LOOKS[policy]
                some = mine[mine["policy"] == policy]
                curves.append(Curve.of(some, "rate", "gain", name=name, color=color, marker="o"))
            draw_curves(axes, curves, "caps")
            axes.axhline(0.0, color=INK, linewidth=1)
            axes.set_title(f"over the {'aggressive policy' if other == 'aggressive' else other}")
            rates = np.unique(mine["rate"])
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.margins(x=0.16)
            axes.set_xlabel("jobs arriving per step")
        for _, row in rows[rows["over"] == RULEBASE].iterrows():
            panels[1].annotate(
                f"{row['gain']:+.2f}",
                (row["rate"], row["gain"]),
                xytext=(7, 7),
                textcoords="offset points",
                fontsize=9,
            )
        panels[0].set_ylabel("gain of utility (%)")
        panels[0].legend(loc="upper left", fontsize=9)
        seeds = sorted(rows["seeds"][rows["policy"] == NETWORK].unique())
        headline(
            figure,
            "Utility gained by trained networks",
            f"{' or '.join(seeds)} training seeds per rate, {rows['experiments'].iloc[0]:g} "
            "experiments of 20,000 steps; bars: 95 % intervals over seeds and experiments",
        )
    return figure


BOUND = FigureRecipe(collect_bound, draw_bound)
LEARNED_FIGURE = FigureRecipe(collect_learned, draw_learned)
