"""Policies with and without the guard, over the best heuristic, on many different tasks."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from cluster_env.evaluation import Estimate, Result, Summary, get_metric, rank_finishing
from cluster_env.evaluation.comparison import pooled
from cluster_env.evaluation.intervals import ratio_interval
from tune_jobs.comparing.choices import parse_limits
from tune_jobs.comparing.comparison import check_specs, spec_cells
from tune_jobs.comparing.evaluating import Evaluation
from tune_jobs.comparing.guarding import CALIBRATION_JOBSETS, Guarded, guards_of
from tune_jobs.comparing.policy_specs import PolicySpec
from tune_jobs.figures.comparison import POLICY, name_of, read_policies
from tune_jobs.figures.deeprm import GUARD_JOBS, GUARD_LOADS, STEPS_PER_WINDOW, WORLD
from tune_jobs.figures.kit.dots import draw_dots
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, plain_ticks, styled
from tune_jobs.tables.frames import Row, Value, estimate_cells

COLUMNS = (
    *("load", "window", "small_share", "rules", "metric", "jobsets"),
    *POLICY,
    *("heuristic", "policy_unfinished", "ratio", "ratio_low", "ratio_high"),
    *("guarded_ratio", "guarded_ratio_low", "guarded_ratio_high"),
    *("guard_used", "guard_jobsets", "guard_s", "worse", "worse_seeds"),
)

_NUMBERS = ("load", "policy_unfinished", "guard_s")
_ROW_HEIGHT = 0.24
_FINE, _FINE_TICKS = 2.5, (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2)
_TICKS = (0.5, 0.7, 1, 1.5, 2, 3, 5)
_WIDE, _WIDE_TICKS = 10.0, (0.5, 1, 2, 5, 10, 20, 50)


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates heuristics and policies on every task, and lets the guard decide on each.

    The guard decides on twice as many validation jobsets, as far as that is not more than it
    usually does.

    Returns:
        One row for each task and learned policy. ``heuristic`` is the best heuristic on the unseen
        jobsets, of those whose side metrics keep the guard's limits, and ``best`` its mean;
        ``value`` is the mean of the policy and ``guarded_value`` that of what the guard chose;
        ``ratio`` and ``guarded_ratio`` are the two over ``best``, with the 95 % intervals of the
        paired bootstrap over jobsets, seeds pooled; ``too_dear`` is the number of training seeds
        whose policy is beyond one of ``limits``; ``worse`` says whether the guarded one is worse
        with its whole interval, and ``worse_seeds`` for how many training seeds alone it is.

    Raises:
        InputError: if no run is named, a run cannot be used, or the jobs are those of a trace.
    """
    runs, config = request.load()
    if not runs:
        raise InputError("the figure guard needs learned policies: name runs with --runs")
    whole = request.protocol(config, cap=True)
    if whole.task.world.kind != WORLD or not whole.task.has_axis:
        raise InputError(
            "the figure guard uses synthetic jobs of several loads, windows and mixes; for "
            "other jobs use metasched compare --decide"
        )
    if "window" in request.task_options:
        raise InputError("the figure guard has windows of its own, so leave out --window")
    whole = replace(
        whole,
        metric=config.task.build_objective().metric.name,
        limits=parse_limits(request.limits, whole.task.spec),
        num_guard_jobsets=min(2 * request.num_jobsets, CALIBRATION_JOBSETS),
    )
    specs = request.specs(whole.task.spec.heuristics.names(), runs)
    progress = request.progress
    progress.start(len(GUARD_JOBS) * len(GUARD_LOADS) * len(specs), unit="evaluation")
    rows: list[Row] = []
    num_done = 0
    for window, small_share in GUARD_JOBS:
        workload: Any = whole.task.at_point().workload
        world: Any = whole.task.world
        task = replace(
            whole.task,
            workload=replace(workload, window=window, small_share=small_share),
            world=replace(world, max_time=max(world.max_time, STEPS_PER_WINDOW * window)),
        )
        places = [replace(whole, task=task).at(load) for load in GUARD_LOADS]
        check_specs(places[0], specs)
        evaluation = Evaluation(places, specs, len(specs))
        evaluations = list(evaluation.do(progress, num_done=num_done))
        num_done += evaluation.num_pieces
        guards = guards_of(evaluation, evaluations)
        for protocol, at_place, guarded in zip(places, evaluations, guards, strict=True):
            head = {**protocol.columns(), "small_share": small_share}
            results = [one.result for one in at_place]
            rows += _rows(head, protocol.metric, specs, results, guarded)
    progress.close()
    return rows


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    rows = read_policies(table, COLUMNS, ("ratio", "guarded_ratio"), _NUMBERS)
    panels = {str(key): some for key, some in rows.groupby("key", sort=False)}
    tasks = next(iter(panels.values()))
    jobs = list(zip(tasks["window"], tasks["small_share"], strict=True))
    groups = list(dict.fromkeys(jobs))
    # A line for each task, and one more before each group for its heading.
    lines = [1.0 + line + groups.index(group) for line, group in enumerate(jobs)]
    labels = {line: f"load {load:.0%}" for line, load in zip(lines, tasks["load"], strict=True)}
    headings = {lines[jobs.index(group)] - 1: group for group in groups}
    for line, (window, share) in headings.items():
        labels[line] = f"{window} steps, {float(share):.0%} short jobs"
    label = get_metric(rows["metric"].iloc[0]).label
    with styled():
        figure = new_figure(2.2 + _ROW_HEIGHT * len(labels))
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        title = f"{label} relative to the best heuristic"
        headline(figure, title, _measured_on(rows))
        for panel, some in zip(axes, panels.values(), strict=True):
            _draw_panel(panel, some, lines)
        axes[0].set_yticks(sorted(labels), [labels[line] for line in sorted(labels)], fontsize=9)
        for line, text in zip(sorted(labels), axes[0].get_yticklabels(), strict=True):
            text.set_fontweight("bold" if line in headings else "normal")
        _scale(axes[0], rows)
    return figure


def _rows(
    head: dict[str, Value],
    metric: str,
    specs: Sequence[PolicySpec],
    results: Sequence[Result],
    guarded: Sequence[Guarded],
) -> list[Row]:
    """One row for each learned spec, on one task."""
    pairs = list(zip(specs, results, strict=True))
    decision = guarded[0].decisions[0]
    limits = {name: limit for name, limit in decision.limits.items() if math.isfinite(limit)}
    shown = ", ".join(f"{name.replace('_', ' ')} {limit:.0%}" for name, limit in limits.items())
    dear = {one.name for one in decision.candidates if one.too_dear}
    best = min(
        (result for spec, result in pairs if not spec.learned and result.name not in dear),
        key=lambda result: rank_finishing(result, metric),
    )
    learned = [(spec, result) for spec, result in pairs if spec.learned]
    rows: list[Row] = []
    for (spec, result), line in zip(learned, guarded, strict=True):
        ratio, safe = (_ratio(some.members, best, metric) for some in (result, line.result))
        alone = [_ratio([member], best, metric) for member in line.result.members]
        rows.append(
            {
                **head,
                **spec_cells(spec, result.name),
                "heuristic": best.name,
                "best": best.mean(metric),
                "value": result.mean(metric),
                "guarded_value": line.result.mean(metric),
                "unfinished": best.means["unfinished"],
                "policy_unfinished": result.means["unfinished"],
                "guarded_unfinished": line.result.means["unfinished"],
                **estimate_cells("ratio", ratio),
                **estimate_cells("guarded_ratio", safe),
                **line.cells(),
                "limits": shown,
                "too_dear": sum(bool(one.candidates[-1].too_dear) for one in line.decisions),
                "worse": _is_worse(safe, metric),
                "worse_seeds": sum(_is_worse(one, metric) for one in alone),
            }
        )
    return rows


def _ratio(members: Sequence[Summary], best: Result, metric: str) -> Estimate:
    """A mean over that of a heuristic; the interval is over jobsets alone, so the strictest."""
    return ratio_interval(pooled(members, metric), pooled(best.members[:1], metric))


def _is_worse(ratio: Estimate, metric: str) -> bool:
    return ratio.high < 1 if get_metric(metric).higher_is_better else ratio.low > 1


def _draw_panel(axes: Axes, rows: pd.DataFrame, lines: list[float]) -> None:
    """A line for each task: the policy alone above, what the guard chose below."""
    limited = bool(rows.iloc[0].get("limits"))
    axes.axvline(1.0, color=INK, linewidth=1.2, zorder=1)
    marks = np.where(rows["policy_unfinished"] > 0, ">", "o")
    alone, guarded = rows.assign(color=MUTED, marker=marks), rows.assign(marker="o")
    heights = np.array(lines)
    draw_dots(axes, alone, "ratio", lines=heights - 0.17, width=1.8, mfc="white")
    draw_dots(axes, guarded, "guarded_ratio", lines=heights + 0.17, width=1.8)
    notes = {-0.75: "used  violate" if limited else "used"}
    for line, (_, row) in zip(lines, rows.iterrows(), strict=True):
        dear = f"{float(row['too_dear']):.0f}" if limited else ""
        notes[line] = f"{row['guard_used']}/{row['seeds']}     {dear}"
    for line, text in notes.items():
        small: dict[str, Any] = {"size": 8.5, "color": MUTED, "annotation_clip": False}
        axes.annotate(text, (1.01, line), xycoords=("axes fraction", "data"), va="center", **small)
    axes.set_title(name_of(rows.iloc[0], several=True), fontsize=10)
    axes.set_xlabel("times the best heuristic's")
    axes.set_ylim(lines[-1] + 0.8, -1.3)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _scale(axes: Axes, rows: pd.DataFrame) -> None:
    """Makes the x axis logarithmic, with the same limits and plain numbers in all panels."""
    names = ("ratio_low", "ratio_high", "guarded_ratio_low", "guarded_ratio_high")
    values = rows[[*names]].to_numpy()
    values = np.append(values[values > 0], 1.0)
    low, high = values.min() * 0.93, values.max() * 1.07
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ratio = high / low
    ticks = _FINE_TICKS if ratio < _FINE else _TICKS if ratio <= _WIDE else _WIDE_TICKS
    plain_ticks(axes.xaxis, ticks)


def _measured_on(rows: pd.DataFrame) -> str:
    """On what the numbers rest, what marks mean, and what was found."""
    first = rows.iloc[0]
    worse = (rows["worse"] == "True").sum()
    cases = f"in {worse} of {len(rows)} cases" if worse else f"in none of {len(rows)} cases"
    cut = (rows["policy_unfinished"] > 0).any()
    bounds = "; triangles: lower bounds, because jobs were left unfinished" if cut else ""
    dear = (
        "Heuristics with a side metric worse than the best baseline's by more than "
        f"{limits} do not count, and the guard refuses such policies (violate: training "
        "seeds whose policy violates a limit). "
        if (limits := first.get("limits"))
        else ""
    )
    return (
        f"Hollow: the policy alone{bounds}. Filled: with the guard, which uses the policy "
        "of as many training seeds as the column used shows; the whole 95% interval (over "
        f"jobsets, seeds pooled) is worse than the best heuristic {cases}. "
        f"{dear}{int(first['jobsets']):,} unseen jobsets of each task, rules of the "
        f"{first['rules']}{' code' if first['rules'] == 'released' else ''}; the guard "
        f"decides on {first['guard_jobsets']} others, in {rows['guard_s'].min():.1f} to "
        f"{rows['guard_s'].max():.1f} s"
    )
