"""The same jobs under the best rule and under a learned policy: who ran when, who waited."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.placement import paint, place
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import Summary, evaluate, get_metric, summarize
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import headline, new_figure, style_of, styled
from tune_jobs.measuring.comparison import check_specs, spec_cells
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.wording import best_of, described, jobs_of, on_jobs, spec_of_row
from tune_jobs.tables.columns import column
from tune_jobs.tables.frames import Row, read_frame

LIMITS = (1.0, 2.0, 5.0, 20.0)
"""Slowdowns that the colors of jobs change at."""

_NUMBERS = ("submit", "start", "duration", "units", "slowdown", "mean", "machine")
_COLORS = ("#ffffff", "#cfe3f2", "#7fb8d9", "#f2c14e", "#e07b39", "#a4262c")
_COLUMNS = 1600


@dataclass(frozen=True)
class _Played:
    """What a policy did on all jobsets."""

    spec: PolicySpec
    name: str
    schedule: Schedule
    summary: Summary


def collect(request: FigureRequest) -> list[Row]:
    """Plays all rules of the world and a learned policy, and keeps one jobset of two of them.

    These are the rule with the best mean over all jobsets, and the first of the policies. Of the
    jobsets, it is the one whose difference between both is closest to the mean difference.

    Returns:
        A row for each job of that jobset and policy: ``submit``, ``start`` (-1: never),
        ``duration``, ``units`` of the first resource, and ``slowdown``; with the ``mean`` of the
        world's headline on the jobset, side metrics, and on how many jobsets (``better``) the
        learned policy has the better mean.

    Raises:
        InputError: if no run is named, or it cannot be used.
    """
    runs, config = request.load()
    if not runs:
        raise InputError("this figure compares a learned policy with a rule; name one with --runs")
    whole = request.protocol(config)
    value, *others = request.at or whole.values()
    if others:
        raise InputError("this figure shows one jobset, so give one value with --at")
    protocol = whole.at(value)
    rules = list(protocol.task.spec.heuristics.names())
    specs = request.specs(rules, runs[:1])
    check_specs(protocol, specs)
    request.progress.start(len(specs), unit="evaluation")
    played = []
    for done, spec in enumerate(specs, start=1):
        played.append(_play(protocol, spec))
        request.progress.step(done, f"{jobs_of(protocol.task)}: {spec.key}")
    request.progress.close()
    metric, policy = get_metric(protocol.metric), played[-1].summary
    rule = min(played[:-1], key=lambda one: metric.rank(one.summary.mean(metric.name)))
    differences = policy.rows(metric.name) - rule.summary.rows(metric.name)
    mean = policy.mean(metric.name) - rule.summary.mean(metric.name)
    shown = int(np.nanargmin(np.abs(differences - mean)))
    gains = differences if metric.higher_is_better else -differences
    better = int((gains > 0).sum())
    head = {**protocol.columns(), "of_rules": best_of(rules), "place": shown + 1, "better": better}
    return [{**head, **row} for one in (rule, played[-1]) for row in _rows(one, protocol, shown)]


def _play(protocol: EvaluationProtocol, spec: PolicySpec) -> _Played:
    group, task = spec.make(protocol), protocol.task
    schedule = evaluate(group.members[0], protocol.held_out(), task.world, run_seed=task.seed)
    summary = summarize(schedule, warmup=protocol.warmup, metrics=task.spec.metrics)
    return _Played(spec, group.name, schedule, summary)


def _rows(played: _Played, protocol: EvaluationProtocol, shown: int) -> list[Row]:
    schedule, side_metrics = played.schedule, protocol.task.spec.side_metrics
    jobs = np.flatnonzero(schedule.jobset[schedule.episode] == shown)
    head = {
        **spec_cells(played.spec, played.name),
        "mean": float(played.summary.rows(protocol.metric)[shown]),
        **{name: float(played.summary.rows(name)[shown]) for name in side_metrics},
        "machine": int(schedule.capacity[0]),
    }
    columns: dict[str, NDArray[Any]] = {
        "submit": schedule.arrival,
        "start": schedule.start,
        "duration": schedule.duration,
        "units": schedule.demand[:, 0],
        "slowdown": schedule.slowdown,
    }
    return [
        {**head, **{name: values[job].item() for name, values in columns.items()}} for job in jobs
    ]


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    texts = ("policy", "learned", "metric", "jobsets", "of_rules", "place", "better")
    rows = read_frame(table, texts, _NUMBERS)
    policies = [(str(name), own) for name, own in rows.groupby("policy", sort=False)]
    end = float((rows["start"] + rows["duration"]).max())
    first, metric = rows.iloc[0], get_metric(rows["metric"].iloc[0])
    worded = "lower" if not metric.higher_is_better else "higher"
    with styled():
        figure = new_figure(8.0, width=10.0)
        *gantts, queue = figure.subplots(3, 1, sharex=True, height_ratios=[3, 3, 2])
        for k, (axes, (name, own)) in enumerate(zip(gantts, policies, strict=True)):
            color, style, _ = style_of(k)
            _draw_gantt(axes, own, end)
            axes.set_title(f"{name}: {_numbers(own)}", color=color)
            axes.set_ylabel("units of resource 1")
            queue.plot(*_queue(own, int(end)), color=color, linestyle=style, label=name)
        queue.set_title("Waiting jobs")
        queue.yaxis.set_major_locator(MaxNLocator(integer=True))
        queue.set_ylim(bottom=0)
        queue.set_xlim(0, end)
        queue.set_xlabel(f"time ({spec_of_row(first).presentation.time_unit})")
        queue.legend(fontsize=9, ncols=2)
        labels = ["1, starts at once", *(f"up to {limit:g}" for limit in LIMITS[1:])]
        figure.legend(
            [Patch(facecolor=color, edgecolor="#888888") for color in _COLORS],
            ["idle", *labels, f"above {LIMITS[-1]:g}"],
            title="a block is a job, and its color the slowdown: time in the system over run time",
            loc="outside lower center",
            ncols=len(_COLORS),
            fontsize=9,
        )
        headline(
            figure,
            f"The same jobs under two schedulers, {on_jobs(first)}",
            f"{first['policy']} is {first['of_rules']} over {first['jobsets']} "
            f"jobsets. {policies[-1][0]} has a {worded} {metric.name} on {first['better']} of "
            f"them. Shown is jobset {first['place']}, whose difference is closest to the mean "
            f"difference; {described(first)}",
        )
    return figure


def _numbers(jobs: pd.DataFrame) -> str:
    """The mean of a policy on the jobset, and what it was bought with."""
    row, waiting = jobs.iloc[0], int((jobs["start"] < 0).sum())
    spec = spec_of_row(row)
    side = (
        f"{column(name).title} {column(name).write(float(row[name]), spec.presentation.time)}"
        for name in spec.side_metrics
    )
    left = [f"{waiting:,} jobs never start"] if waiting else []
    return ", ".join((f"{get_metric(row['metric']).label} {row['mean']:.2f}", *side, *left))


def _draw_gantt(axes: Axes, jobs: pd.DataFrame, end: float) -> None:
    """Who held the units of the first resource; jobs get the lowest free ones."""
    started = jobs[jobs["start"] >= 0].sort_values("start", kind="stable")
    start, duration, units = (
        started[name].to_numpy().astype(np.int64) for name in ("start", "duration", "units")
    )
    color = np.searchsorted(np.asarray(LIMITS), started["slowdown"].to_numpy()) + 1
    machine = int(jobs["machine"].iloc[0])
    last = int((start + duration).max())
    shape, scale = (machine, round(_COLUMNS * last / end)), _COLUMNS / end
    left, right = (np.rint(at * scale).astype(np.int64) for at in (start, start + duration))
    axes.imshow(
        paint(left, right, color, place(start, start + duration, units, machine), machine, shape),
        cmap=ListedColormap(_COLORS),
        norm=BoundaryNorm(np.arange(len(_COLORS) + 1) - 0.5, len(_COLORS)),
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0, last, 0, machine),
    )
    axes.grid(visible=False)


def _queue(jobs: pd.DataFrame, end: int) -> Sequence[NDArray[np.int64]]:
    """Steps, and how many jobs wait in each."""
    steps = np.arange(end)
    submit, start = np.sort(jobs["submit"]), np.sort(jobs.loc[jobs["start"] >= 0, "start"])
    waiting = np.searchsorted(submit, steps, "right") - np.searchsorted(start, steps, "right")
    return steps, waiting
