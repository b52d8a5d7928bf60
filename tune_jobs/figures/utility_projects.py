"""Utility accrual with two projects, of which one has priority (Vengerov, section 6).

At most 20 experiments of 20,000 steps with the same arrivals under all policies, after 25,000 steps
of learning with each of five seeds. Each job is of either project with the same probability. Beside
it are the same jobs without priorities.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cluster_env.core.metric import utilization
from cluster_env.core.schedule import Schedule
from cluster_env.core.utility import final_utility, largest_utility
from cluster_env.evaluation.intervals import seeds_interval
from rllib_configs.worlds.accrual.servers import Setting, project_experiment
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.figures.utility import setting_of
from tune_jobs.tables.frames import Row, Value, estimate_cells, read_frame

RATES = (0.1, 0.15, 0.2, 0.3)
EXPERIMENTS, SEEDS = 20, 5
PROJECTS = 2
ALL = "all"

Values = NDArray[np.float64]
"""A number for each experiment, or for each seed and experiment, ``(seeds, experiments)``."""

_SHARES = {
    (True, "1"): ("project with priority", "#d55e00"),
    (True, "0"): ("other project", "#0072b2"),
    (True, ALL): ("both together", "#8a8a8a"),
    (False, ALL): ("both, no priorities", "#009e73"),
}
_GAINS = {True: ("with priorities", "#d55e00"), False: ("no priorities", "#009e73")}


def collect(request: FigureRequest) -> list[Row]:
    """A row for each rate (``--at``), policy, with priorities and without, and project.

    Shares are of the utility that all jobs of the project would be worth in time. ``effect`` is
    what priorities change in them, and ``gain`` is the utility gained over the aggressive policy in
    per cent. Delays are steps beyond a job's duration, by waiting, preemption or squeezing.
    """
    count = min(request.num_jobsets, EXPERIMENTS)
    seeds = [request.seed + k for k in range(SEEDS)]
    rates = request.at or RATES
    request.progress.start(len(rates), unit="rate")
    rows: list[Row] = []
    for done, rate in enumerate(rates, start=1):
        setting = setting_of(request, rate=rate, experiments=count)
        world = replace(setting.world, projects=PROJECTS)
        rows += _rows(replace(setting, world=world), seeds)
        request.progress.step(done, f"{rate:g} jobs a step")
    request.progress.close()
    return rows


def _rows(setting: Setting, seeds: list[int]) -> list[Row]:
    measured: dict[tuple[str, bool, str], dict[str, Values]] = {}
    for policy, priorities, schedules in project_experiment(setting, seeds):
        for project in ("1", "0", ALL):
            each = [measure(one, project) for one in schedules]
            columns = {name: np.stack([one[name] for one in each]) for name in each[0]}
            measured[policy, priorities, project] = columns
    rows: list[Row] = []
    for (policy, priorities, project), mine in measured.items():
        row: dict[str, Value] = {
            "rate": setting.rate,
            "policy": policy,
            "priorities": priorities,
            "project": project,
            **estimate_cells("share", seeds_interval(mine["share"])),
            **{name: float(mine[name].mean()) for name in mine if name != "share"},
            "seeds": mine["share"].shape[0],
            "experiments": setting.experiments,
        }
        if priorities:
            without = measured[policy, False, project]
            row.update(estimate_cells("effect", seeds_interval(mine["share"], without["share"])))
        if policy != "aggressive":
            other = measured["aggressive", priorities, project]["productivity"]
            scale = 100 / other.mean()
            gain = seeds_interval(mine["productivity"] * scale, other * scale)
            row.update(estimate_cells("gain", gain))
        rows.append(row)
    return rows


def measure(schedule: Schedule, project: str) -> dict[str, Values]:
    """What became of the jobs of a project, or of ``all``, float64 ``(experiments,)`` by name."""
    mine = np.ones(schedule.job.size, np.bool_)
    if project != ALL:
        mine = schedule.job_class == int(project)
    episode, count = schedule.episode[mine], schedule.num_episodes
    utility, most, delay = (
        values[mine].astype(np.float64)
        for values in (
            final_utility(schedule),
            largest_utility(schedule),
            schedule.completion - schedule.duration,
        )
    )
    longest = np.zeros(count)
    np.maximum.at(longest, episode, delay)
    earned = np.bincount(episode, utility, count)
    return {
        "share": earned / np.bincount(episode, most, count),
        "productivity": earned / 1000,
        "delay": np.bincount(episode, delay, count) / np.bincount(episode, minlength=count),
        "longest_delay": longest,
        "utilization": utilization(schedule),
    }


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
