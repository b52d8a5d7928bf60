"""What past months of a site teach: policies before and after, on the months that follow.

Each log is cut into an earlier and a later half. Whatever is learned or chosen comes from the
earlier one. Then the whole log is played under each policy, and the weeks of the later half count.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from cluster_env.objectives.standard import bounded_slowdown
from cluster_env.task import Task
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.windows import filling_time
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import load_policy, policy_of, read_weights
from rllib_configs.runners.searching import search_here
from rllib_configs.search_problem import prepare
from tune_jobs.measuring.trained_runs import find_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.site_units import MAX_WAIT, weeks_of
from tune_jobs.recipes.sites import DEFAULT_BOUND, RULES, units_of_logs
from tune_jobs.replaying.description import WEEK_S
from tune_jobs.tables.frames import Row
from tune_jobs.terminal.files import digest

POLICY = "hpc-order"

UNADAPTED, CHOSEN, SEARCHED = "as shipped", "best rule", "evolution"

HALF, VALIDATED_FROM = 0.5, 0.4
"""Shares of the log's time: where the later half begins, and where, before it, the jobs begin that
choose among what a search has found."""

FEWEST_JOBS = 50
"""Of a week that counts; the mean of fewer hangs on one of them."""

WINDOW_JOBS = 2048
"""Jobs of a window that is searched on, on average."""

SEARCH = {
    "iterations": 40,
    "jobsets": 4,
    "episodes_per_jobset": 16,
    "step_size": 0.5,
    "validate_every": 5,
    "validation_jobsets": 16,
}
"""Settings of the search: 2,560 windows are played, which takes half a minute."""

STEPS = 3
"""Gradient steps of meta-trained runs, as many as ``metasched adapt`` takes."""

ALL = "all logs"
"""Stands in place of a log's name in the rows that are geometric means over logs."""

TEXTS = ("log", "sha256", "bound", "method", "chosen")

NUMBERS = (
    *("jobs", "processors", "max_wait", "weeks", "ratio", "ratio_low", "ratio_high"),
    *("bounded_slowdown", "mean_wait", "longest_wait", "utilization"),
)
"""Columns of the table. ``ratio`` is the mean bounded slowdown of a week over that of the policy as
it is shipped, as a geometric mean over the later weeks, with the interval of such a mean. The last
four columns are of the jobs that were submitted in these weeks; times are seconds."""


@dataclass(frozen=True, eq=False)
class Site:
    """A log that is played as a whole."""

    name: str
    path: Path
    task: Task  # at the bound
    jobs: RecordedJobs

    @property
    def week(self) -> NDArray[np.int64]:
        """The week of each job, int64 ``(num_jobs,)``."""
        return weeks_of(self.jobs)

    @property
    def later(self) -> NDArray[np.int64]:
        """The weeks that lie in the later half and have enough jobs; the last one may be short."""
        first = -(-int(self.jobs.span * HALF) // WEEK_S)
        counts = np.bincount(self.week)
        return np.flatnonzero((counts >= FEWEST_JOBS) & (np.arange(counts.size) >= first))

    @cached_property
    def earlier(self) -> RecordedJobs:
        """The jobs of the earlier half."""
        return self.jobs.between(0.0, HALF)

    @property
    def window(self) -> int:
        """Seconds in which `WINDOW_JOBS` of the earlier half are submitted on average."""
        return max(1, round(self.earlier.span * WINDOW_JOBS / self.earlier.num_jobs))

    def play(self, policy: Policy) -> Schedule:
        """The whole log under a policy."""
        return evaluate(policy, [self.jobs.jobset()], self.task.world, run_seed=self.task.seed)


Method = Callable[[Site], tuple[Policy, str]]
"""Gives the policy for a log, and what to call what it has chosen."""


def collect(request: FigureRequest) -> list[Row]:
    """Adapts to the earlier half of each log, and measures on the later one; see `NUMBERS`.

    Runs that can be adapted (``--runs``) are adapted as by ``metasched adapt``.

    Raises:
        InputError: if no log is named or can be used, or a run cannot be adapted.
    """
    runs, seed = find_runs(request.runs), request.seed
    methods: dict[str, Method] = {
        UNADAPTED: lambda site: (load_policy(POLICY, "argmax", world=site.task.world)[0], POLICY),
        CHOSEN: best_rule,
        SEARCHED: lambda site: (searched(site, seed), POLICY),
        **{run.name: _adapted_run(run, seed) for run in runs},
    }
    sites = {site.name: site for site in _sites(request)}
    pieces = list(product(sites, methods))
    found = request.work.measure(
        _play, (sites, methods), pieces, unit="replay", name=lambda piece, _: ", ".join(piece)
    )
    bound, rows = str(request.task_options.get(MAX_WAIT, DEFAULT_BOUND)), list[Row]()
    for site in sites.values():
        rows += _rows(site, {name: next(found) for name in methods}, bound)
    next(found, None)  # so that the progress ends
    return [*rows, *_over_sites(rows)]


def _play(
    shared: tuple[Mapping[str, Site], Mapping[str, Method]], piece: tuple[str, str]
) -> tuple[str, Schedule]:
    """What a method chose on a log, and its schedule: a piece of work."""
    (sites, methods), (log, method) = shared, piece
    policy, chosen = methods[method](sites[log])
    return chosen, sites[log].play(policy)


def _sites(request: FigureRequest) -> Iterator[Site]:
    """The logs that can be played, and that have two weeks or more to measure."""
    found = False
    for name, unit in units_of_logs(request).items():
        try:
            site = Site(name, unit.path, *unit.task())
        except InputError as error:
            request.work.progress.say(f"{unit.path.name} is left out: {error}")
            continue
        if site.later.size < 2:
            request.work.progress.say(
                f"{unit.path.name} is left out: fewer than 2 weeks of its later half have "
                f"{FEWEST_JOBS} jobs"
            )
            continue
        found = True
        yield site
    if not found:
        raise InputError("none of the files is a job log with enough weeks to adapt to")


def best_rule(site: Site) -> tuple[Policy, str]:
    """The rule with the lowest weekly slowdowns of the earlier half, and its name."""
    jobs, world = site.earlier, site.task.world
    week, costs = weeks_of(jobs), {}
    for name in RULES:
        schedule = evaluate(get_heuristic(name, world), [jobs.jobset()], world)
        means = _weekly(week, schedule)
        costs[name] = float(np.log(means[np.bincount(week) >= FEWEST_JOBS]).mean())
    name = min(costs, key=costs.__getitem__)
    return get_heuristic(name, world), name


def searched(site: Site, seed: int) -> Policy:
    """What evolution strategies find on windows of the earlier half, beginning as shipped."""
    world: Any = site.task.world
    # What counts is the slowdown, without limits relative to a rule.
    limits = load_config(POLICY).training.limits
    settings = {
        "seed": seed,
        "task.workload.trace": site.path,
        "task.workload.splits": f"[{VALIDATED_FROM},{HALF}]",
        "task.workload.window": site.window,
        "task.workload.warmup": max(site.window // 4, filling_time(site.earlier)),
        "task.world.processors": world.processors,
        "task.world.max_wait": world.max_wait,
        "training.start": POLICY,
        "training.family": '""',
        "training.reference": '""',
        "training.limits_hold": "each",
        "training.multiplier_rate": 0,
        **{f"training.limits.{name}": "null" for name in limits},
        **{f"training.{name}": value for name, value in SEARCH.items()},
    }
    config = prepare(load_config(POLICY, [f"{key}={value}" for key, value in settings.items()]))
    start, _ = read_weights(POLICY)
    return policy_of(config, search_here(config, start), SEARCHED, "argmax", world)


def _adapted_run(run: Path, seed: int) -> Callable[[Site], tuple[Policy, str]]:
    """Adapts a run as ``metasched adapt`` does, to windows of the earlier half."""
    # Only now, because it imports PyTorch; and not later, so that a run is refused at once.
    from meta.adaptation import adapt_policy, load_meta_policy

    policy = load_meta_policy(run)

    def adapt(site: Site) -> tuple[Policy, str]:
        workload: Any = site.task.workload
        splits = (VALIDATED_FROM, HALF)
        earlier = replace(workload, whole=False, jobs=None, splits=splits, window=site.window)
        task = replace(site.task, workload=earlier)
        return adapt_policy(policy, task, STEPS, seed=seed).policies()[-1], run.name

    return adapt


def _weekly(week: NDArray[np.int64], schedule: Schedule) -> NDArray[np.float64]:
    """Mean bounded slowdown of the jobs of each week, float64 ``(num_weeks,)``; 0 without any."""
    totals = np.bincount(week[schedule.job], bounded_slowdown(schedule), week[-1] + 1)
    return totals / np.maximum(np.bincount(week), 1)


def _rows(
    site: Site, played: Mapping[str, tuple[str, Schedule]], bound: str
) -> Iterator[dict[str, Any]]:
    """The rows of a log, relative to the policy as it is shipped."""
    weeks, world = site.later, site.task.world
    logs = {
        name: np.log(_weekly(site.week, schedule)[weeks]) for name, (_, schedule) in played.items()
    }
    for name, (chosen, schedule) in played.items():
        ratio = jobset_interval(Pooled.each(logs[name] - logs[UNADAPTED]))
        yield {
            "log": site.name,
            "sha256": digest(site.path),
            "bound": bound,
            "method": name,
            "chosen": chosen,
            "jobs": site.jobs.num_jobs,
            "processors": world.processors,  # type: ignore[attr-defined]
            "max_wait": world.max_wait,  # type: ignore[attr-defined]
            "weeks": weeks.size,
            "ratio": float(np.exp(ratio.value)),
            "ratio_low": float(np.exp(ratio.low)),
            "ratio_high": float(np.exp(ratio.high)),
            **_price(site, schedule),
        }


def _price(site: Site, schedule: Schedule) -> dict[str, float]:
    """Slowdown, waits and utilization of the later weeks."""
    later = np.isin(site.week[schedule.job], site.later)
    waited = (schedule.start - schedule.arrival)[later]
    first, last = schedule.arrival[later].min(), schedule.arrival[later].max()
    # What jobs held between the first and the last submission of these weeks.
    held = np.minimum(schedule.finish, last) - np.maximum(schedule.start, first)
    work = float((np.maximum(held, 0) * site.jobs.demand[schedule.job, 0]).sum())
    capacity = site.task.world.capacity[0]  # type: ignore[attr-defined]
    return {
        "bounded_slowdown": float(bounded_slowdown(schedule)[later].mean()),
        "mean_wait": float(waited.mean()),
        "longest_wait": float(waited.max()),
        "utilization": work / capacity / max(int(last - first), 1),
    }


def _over_sites(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Geometric means over logs, which count as independent; only where there are several."""
    table = pd.DataFrame(rows)
    if table["log"].nunique() < 2:
        return
    for method, own in table.groupby("method", sort=False):
        ratio = jobset_interval(Pooled.each(np.log(own["ratio"].to_numpy(float))))
        yield {
            **dict.fromkeys(TEXTS, ""),
            **dict.fromkeys(NUMBERS, np.nan),
            "log": ALL,
            "method": method,
            "weeks": int(own["weeks"].sum()),
            "ratio": float(np.exp(ratio.value)),
            "ratio_low": float(np.exp(ratio.low)),
            "ratio_high": float(np.exp(ratio.high)),
        }
