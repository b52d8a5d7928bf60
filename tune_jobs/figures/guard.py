"""Policies with and without the guard, over the best heuristic, on many different tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.task import Task
from cluster_env.evaluation import Estimate, Result, Summary, get_metric, rank_finishing
from cluster_env.evaluation.comparison import pooled
from cluster_env.evaluation.intervals import ratio_interval
from tune_jobs.comparing.choices import metric_of, parse_limits
from tune_jobs.comparing.comparison import check_specs, spec_cells
from tune_jobs.comparing.evaluating import Evaluation
from tune_jobs.comparing.guarding import CALIBRATION_JOBSETS, Guarded, guards_of
from tune_jobs.comparing.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.figures.comparison import POLICY, name_of, read_rows
from tune_jobs.figures.deeprm import GUARD_JOBS, GUARD_LOADS, STEPS_PER_WINDOW, WORLD
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, MUTED, color_of, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, Value, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    *("load", "window", "small_share", "rules", "metric", "jobsets"),
    *POLICY,
    *("heuristic", "policy_unfinished", "ratio", "ratio_low", "ratio_high"),
    *("guarded_ratio", "guarded_ratio_low", "guarded_ratio_high"),
    *("guard_used", "guard_jobsets", "guard_s", "worse", "worse_seeds"),
)

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
            "the figure guard draws made-up jobs of several loads, windows and mixes; for other "
            "jobs use metasched guard RUN"
        )
    if "window" in request.task_options:
        raise InputError("the figure guard has windows of its own, so leave out --window")
    whole = replace(
        whole,
        metric=metric_of(None, config),
        limits=parse_limits(request.limits, whole.task.spec),
        num_guard_jobsets=min(2 * request.num_jobsets, CALIBRATION_JOBSETS),
    )
    specs = [heuristic_spec(name) for name in whole.task.spec.heuristics.names()]
    specs += learned_specs(runs, request.decode)
    progress = request.progress
    progress.start(len(GUARD_JOBS) * len(GUARD_LOADS) * len(specs), unit="evaluation")
    rows: list[Row] = []
    num_done = 0
    for window, small_share in GUARD_JOBS:
        task = _with_jobs(whole.task, window, small_share, STEPS_PER_WINDOW * window)
        places = [replace(whole, task=task).at(load) for load in GUARD_LOADS]
        check_specs(places[0], specs)
        evaluation = Evaluation(places, specs, len(specs))
        found = list(evaluation.do(progress, num_done=num_done))
        num_done += evaluation.num_pieces
        guards = guards_of(evaluation, found)
        for protocol, at_place, guarded in zip(places, found, guards, strict=True):
            head = {**protocol.columns(), "small_share": small_share}
            results = [one.result for one in at_place]
            rows += _rows(head, protocol.metric, specs, results, guarded)
    progress.close()
    return rows


def _with_jobs(task: Task, window: int, small_share: float, max_time: int) -> Task:
    """A task of DeepRM with other jobs, in episodes that are at least so long."""
    workload: Any = task.at_point().workload
    world: Any = task.world
    return replace(
        task,
        workload=replace(workload, window=window, small_share=small_share),
        world=replace(world, max_time=max(world.max_time, max_time)),
    )


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_rows(table, COLUMNS)
    keys = list(dict.fromkeys(row["key"] for row in rows))
    panels = [[row for row in rows if row["key"] == key] for key in keys]
    label = get_metric(rows[0]["metric"]).label
    with styled():
        lines = len(panels[0]) + len(_groups(panels[0]))
        figure = new_figure(2.2 + _ROW_HEIGHT * lines)
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        title = f"{label[0].upper()}{label[1:]} over that of the best heuristic"
        headline(figure, title, _measured_on(rows))
        for place, (panel, ax) in enumerate(zip(panels, axes, strict=True)):
            _draw_panel(ax, panel, color_of(panel[0]["key"], True, place))
        _label_rows(axes[0], panels[0])
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
                "ratio": ratio.value,
                "ratio_low": ratio.low,
                "ratio_high": ratio.high,
                "guarded_ratio": safe.value,
                "guarded_ratio_low": safe.low,
                "guarded_ratio_high": safe.high,
                **line.cells(),
                "limits": _in_words(decision.limits),
                "too_dear": sum(bool(one.candidates[-1].too_dear) for one in line.decisions),
                "worse": _is_worse(safe, metric),
                "worse_seeds": sum(_is_worse(one, metric) for one in alone),
            }
        )
    return rows


def _in_words(limits: Mapping[str, float]) -> str:
    shown = {name: limit for name, limit in limits.items() if math.isfinite(limit)}
    return ", ".join(f"{name.replace('_', ' ')} {limit:.0%}" for name, limit in shown.items())


def _ratio(members: Sequence[Summary], best: Result, metric: str) -> Estimate:
    """A mean over that of a heuristic; the interval is over jobsets alone, so the strictest."""
    return ratio_interval(pooled(members, metric), pooled(best.members[:1], metric))


def _is_worse(ratio: Estimate, metric: str) -> bool:
    return ratio.high < 1 if get_metric(metric).higher_is_better else ratio.low > 1


def _draw_panel(axes: "Axes", rows: Sequence[Cells], color: str) -> None:
    """A line for each task: the policy alone above, what the guard chose below."""
    places = _places(rows)
    axes.axvline(1.0, color=INK, linewidth=1.2, zorder=1)
    for place, row in zip(places, rows, strict=True):
        cut = number(row, "policy_unfinished") > 0
        for start, shift, shade, fill in (
            ("ratio", -0.17, MUTED, "white"),
            ("guarded_ratio", 0.17, color, color),
        ):
            value, low, high = (number(row, start + end) for end in ("", "_low", "_high"))
            axes.hlines(place + shift, low, high, shade, linewidth=1.8, zorder=2)
            axes.plot(
                value,
                place + shift,
                marker=">" if cut and start == "ratio" else "o",
                markersize=5,
                markerfacecolor=fill,
                markeredgecolor=shade,
                zorder=3,
            )
        dear = f"{number(row, 'too_dear'):.0f}" if rows[0].get("limits") else ""
        used = f"{number(row, 'guard_used'):.0f}/{number(row, 'seeds'):.0f}"
        _note(axes, place, f"{used}     {dear}")
    axes.set_title(name_of(rows[0], several=True), fontsize=10)
    axes.set_xlabel("times the best heuristic's")
    axes.set_ylim(places[-1] + 0.8, -1.3)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    _note(axes, -0.75, "used  dear" if rows[0].get("limits") else "used")


def _scale(axes: "Axes", rows: Sequence[Cells]) -> None:
    """Makes the x axis logarithmic, with the same limits and plain numbers in all panels."""
    from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

    names = ("ratio_low", "ratio_high", "guarded_ratio_low", "guarded_ratio_high")
    values = np.array([number(row, name) for row in rows for name in names])
    values = np.append(values[values > 0], 1.0)
    low, high = values.min() * 0.93, values.max() * 1.07
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ratio = high / low
    ticks = _FINE_TICKS if ratio < _FINE else _TICKS if ratio <= _WIDE else _WIDE_TICKS
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))


def _note(axes: "Axes", place: float, text: str) -> None:
    """Small print at the right of a line."""
    axes.annotate(
        text,
        (1.01, place),
        xycoords=axes.get_yaxis_transform(),
        fontsize=8.5,
        color=MUTED,
        va="center",
        annotation_clip=False,
    )


def _groups(rows: Sequence[Cells]) -> list[tuple[str, str]]:
    """Windows with shares of short jobs, each once."""
    return list(dict.fromkeys((row["window"], row["small_share"]) for row in rows))


def _places(rows: Sequence[Cells]) -> list[float]:
    """Height of each row: a line each, and one more before each group for its heading."""
    groups = _groups(rows)
    return [
        1.0 + k + groups.index((row["window"], row["small_share"])) for k, row in enumerate(rows)
    ]


def _label_rows(axes: "Axes", rows: Sequence[Cells]) -> None:
    """Loads beside the lines, windows and mixes above the groups."""
    places, groups = _places(rows), _groups(rows)
    labels = {
        place: f"load {number(row, 'load'):.0%}" for place, row in zip(places, rows, strict=True)
    }
    for group in groups:
        first = next(
            place
            for place, row in zip(places, rows, strict=True)
            if (row["window"], row["small_share"]) == group
        )
        labels[first - 1] = f"{group[0]} steps, {float(group[1]):.0%} short jobs"
    axes.set_yticks(sorted(labels), [labels[place] for place in sorted(labels)], fontsize=9)
    for place, label in zip(sorted(labels), axes.get_yticklabels(), strict=True):
        if place not in places:
            label.set_fontweight("bold")


def _measured_on(rows: Sequence[Cells]) -> str:
    """On what the numbers rest, what marks mean, and what was found."""
    first = rows[0]
    worse = sum(row["worse"] == "True" for row in rows)
    found = f"in {worse} of {len(rows)} cases" if worse else f"in none of {len(rows)} cases"
    cut = any(number(row, "policy_unfinished") > 0 for row in rows)
    bounds = "; triangles: lower bounds, jobs were left unfinished" if cut else ""
    dear = (
        f"Heuristics whose price is worse than the best baseline's by more than {limits} do not "
        f"count, and the guard takes no such policy (dear: how many training seeds gave one). "
        if (limits := first.get("limits"))
        else ""
    )
    seconds = sorted(number(row, "guard_s") for row in rows)
    return (
        f"Hollow: the policy alone{bounds}. Filled: behind the guard, which takes the policy of as "
        f"many training seeds as stand at the right; worse than the best heuristic with the whole "
        f"95% interval (over jobsets, seeds pooled) {found}. {dear}"
        f"{int(number(first, 'jobsets')):,} unseen jobsets of each task, rules of the "
        f"{first['rules']}{' code' if first['rules'] == 'released' else ''}; the "
        f"guard decides on {first['guard_jobsets']} others, in {seconds[0]:.1f} to "
        f"{seconds[-1]:.1f} s"
    )
