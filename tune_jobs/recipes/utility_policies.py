"""Policies of utility accrual, trained ones too: over the best in hindsight, and the rulebase."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
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
from tune_jobs.measuring.trained_runs import find_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, estimate_cells

JOBSETS, EXPERIMENTS = 20, 20

WINDOW = 40

RATES = (0.1, 0.2)

HEURISTICS = ("edf", "lbesa", "dasa", "density", "none", "aggressive")

LEARNED = "rulebase"

RULEBASE, NETWORK = "rulebase", "network"

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
        shared = setting, request.time_limit_s
        bounds = list(request.work.measure(_bound, shared, jobsets, unit="jobset", name=_num_jobs))
        bound = np.array([one.bound for one in bounds])
        policies = [
            *(get_heuristic(name, setting.world) for name in HEURISTICS),
            learned_rulebase(setting, LEARNED),
            *load_policies(request, find_runs(request.runs), setting.world),
        ]
        measured = request.work.measure(_earned, (jobsets, setting), policies, name=_name)
        for policy, utility in zip(policies, measured, strict=True):
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


def _bound(shared: tuple[Setting, float], jobset: JobSet) -> Any:
    setting, time_limit_s = shared
    return bound_of(jobset, setting, time_limit_s)


def _num_jobs(jobset: JobSet, bound: Any) -> str:
    return f"{jobset.num_jobs} jobs: {bound.status}"


def _earned(shared: tuple[Sequence[JobSet], Setting], policy: Policy) -> NDArray[np.float64]:
    jobsets, setting = shared
    return earned(policy, jobsets, setting)


def _name(policy: Policy, utility: object) -> str:
    return policy.name


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
        shared = unseen_jobsets(setting), until
        policies = list(load_policies(request, runs[rate], until.world))
        found = request.work.measure(_earned, shared, policies, name=_name)
        utility[NETWORK] = np.stack(list(found))
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
