"""Utility accrual with two projects, of which one has priority (Vengerov, section 6)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.metric import utilization
from cluster_env.core.schedule import Schedule
from cluster_env.core.utility import final_utility, largest_utility
from cluster_env.evaluation.intervals import seeds_interval
from rllib_configs.worlds.accrual.servers import Setting, project_experiment
from tune_jobs.measuring.fingerprints import fingerprint
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.utility import setting_of
from tune_jobs.tables.frames import Row, Value, estimate_cells

RATES = (0.1, 0.15, 0.2, 0.3)

EXPERIMENTS, SEEDS = 20, 5

PROJECTS = 2

ALL = "all"


Values = NDArray[np.float64]
"""A number for each experiment, or for each seed and experiment, ``(seeds, experiments)``."""


def collect(request: FigureRequest) -> list[Row]:
    """A row for each rate (``--at``), policy, with priorities and without, and project.

    Shares are of the utility that all jobs of the project would be worth in time. ``effect`` is
    what priorities change in them, and ``gain`` is the utility gained over the aggressive policy in
    per cent. Delays are steps beyond a job's duration, by waiting, preemption or squeezing.
    """
    count = min(request.num_jobsets, EXPERIMENTS)
    seeds = [request.seed + k for k in range(SEEDS)]
    rates = request.at or RATES
    settings = [setting_of(request, rate=rate, experiments=count) for rate in rates]
    settings = [replace(one, world=replace(one.world, projects=PROJECTS)) for one in settings]
    keys = [fingerprint("projects", str(one), seeds) for one in settings]
    found = request.work.measure(
        _rows,
        seeds,
        settings,
        keys=keys,
        unit="rate",
        name=lambda one, _: f"{one.rate:g} jobs a step",
    )
    return [row for rows in found for row in rows]


def _rows(seeds: list[int], setting: Setting) -> list[Row]:
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
