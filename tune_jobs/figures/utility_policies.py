"""Policies of utility accrual, trained ones too: over the best in hindsight, and the rulebase.

``utility-bound`` is measured on small jobsets of the paper's jobs, because the search for the bound
takes seconds for each: arrivals in 40 steps, at most 20 jobsets a rate. ``utility-learned`` has
trained policies at the rate that each was trained at, in at most 20 experiments of 20,000 steps, in
which all policies have the same arrivals, preempt and squeeze.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.recipes.utility_policies import NETWORK, OTHERS, RULEBASE, WINDOW
from tune_jobs.tables.frames import read_frame

LOOKS = {
    RULEBASE: ("rulebase, learned by TD", "#d55e00"),
    NETWORK: ("network, trained", "#0072b2"),
}


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
