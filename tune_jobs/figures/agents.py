"""PANDA's agents beside the central rules: their side metrics, and how they do as time goes on."""

import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import PolicyGroup, evaluate, get_metric
from cluster_env.objectives import read_class_weights
from tune_jobs.figures.comparison import COLUMNS, measured_on, name_of, ranked, read_policies
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.kit.dots import draw_dots, name_lines, write_above
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.style import MUTED, PALETTE, headline, label_ends, new_figure, styled
from tune_jobs.measuring.comparison import compare, spec_cells
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.tables.frames import Row, with_numbers

WORLD = "panda"
PANELS = ("utilization", "wait", "longest_wait", "class_deviation", "jain_index")
"""What is shown of each policy behind the metric: side metrics, and fairness."""
_BESIDE = 3  # panels in a line
BINS = 10
"""Parts of the time in which consumers arrive."""


def collect(request: FigureRequest) -> list[Row]:
    """Every rule and the runs' policies on the task of the first run; see `comparison.collect`.

    Where the objective has weights of classes, a rule that reads them is a bound
    (`cluster_env.worlds.panda.heuristics.WeightedPolicy`).

    Raises:
        InputError: if a run cannot be used, or the task is of another world.
    """
    protocol, specs = _asked(request)
    protocol = replace(protocol, metric=protocol.task.objective.name)
    make, objective = protocol.task.spec.tools.bound, protocol.task.objective
    if make is not None and read_class_weights(objective.name):
        policy = make(objective)
        bound = PolicyGroup(policy.name, (policy,))
        specs = [*specs, PolicySpec(bound.name, lambda protocol: bound, named=False)]
    return compare(protocol, specs, protocol.values(request.at), request.progress)


def draw(table: Path) -> Figure:
    """A row for each policy, from the best mean on, a panel for the metric and each of `PANELS`."""
    rows = read_policies(table, COLUMNS, numbers=PANELS)
    metric = rows["metric"].iloc[0]
    shown = [metric, *(name for name in PANELS if name != metric)]
    ends = [f"{name}_{end}" for name in shown for end in ("low", "high")]
    rows = with_numbers(rows, [metric, *(name for name in ends if name in rows)])
    order = ranked(rows, metric, metric)
    lines = -(-len(shown) // _BESIDE)
    with styled():
        figure = new_figure(0.8 + lines * (0.9 + 0.34 * len(order)))
        panels = figure.subplots(lines, _BESIDE, sharey=True)
        headline(figure, "Agents on unlike nodes, compared with central rules", measured_on(rows))
        for axes, name in zip(panels.flat, shown, strict=False):
            metric = get_metric(name)
            draw_dots(axes, order, name, size=5.5, width=2.4)
            axes.margins(x=0.2)
            texts = [f"{value:.3g}" for value in order[name]]
            write_above(axes, order[name], texts, size=7.5, offset=(0, 4))
            axes.set_title(textwrap.fill(metric.label, 24), fontsize=9.5)
            better = "more is better" if metric.higher_is_better else "less is better"
            axes.set_xlabel(better, fontsize=9)
            axes.tick_params(axis="x", labelsize=9)
            name_lines(axes, order["label"], size=8.5, top=-0.9, linespacing=1.0)
        for empty in panels.flat[len(shown) :]:
            empty.set_visible(False)
    return figure


def collect_drift(request: FigureRequest) -> list[Row]:
    """Mean total time of the consumers that arrive in each part of the window, by policy.

    Beside it stand the share of the nodes' work that is there in that part, and that of each class
    among the consumers, with spaces between. Intervals are over jobsets, 1.96 standard errors.

    Raises:
        InputError: as `collect`.
    """
    protocol, specs = _asked(request)
    task = protocol.task
    jobsets = protocol.held_out()
    there = _supply(jobsets, task.world)
    arrived = [np.minimum(one.arrival * BINS // one.window, BINS - 1) for one in jobsets]
    classes = np.concatenate([one.job_class for one in jobsets])
    counts = pd.crosstab(np.concatenate(arrived), classes)
    counts = counts.reindex(range(BINS), columns=range(classes.max() + 1), fill_value=0)
    mix = counts.div(counts.sum(axis=1).clip(lower=1), axis=0).to_numpy()
    rows: list[Row] = []
    for spec in specs:
        spec.check(protocol)
        group = spec.make(protocol)
        parts = [
            _by_arrival(evaluate(policy, jobsets, task.world, run_seed=task.seed))
            for policy in group.members
        ]
        # NaN, and no part of a mean, where nobody arrives.
        values = pd.DataFrame(np.mean(parts, axis=0))
        count, squares = values.count(), ((values - values.mean()) ** 2).sum()
        errors = 1.96 * np.sqrt(squares / (count - 1).clip(lower=1) / count)
        for place, (mean, error) in enumerate(zip(values.mean(), errors, strict=True)):
            rows.append(
                {
                    **spec_cells(spec, group.name),
                    "jobsets": len(jobsets),
                    "bin": place,
                    "time": (place + 0.5) * jobsets[0].window / BINS,
                    "there": float(there[place]),
                    "mix": " ".join(f"{share:.4f}" for share in mix[place]),
                    "value": float(mean),
                    "low": float(mean - error),
                    "high": float(mean + error),
                }
            )
    return rows


def draw_drift(table: Path) -> Figure:
    """Total times by the time of arrival, above the mix of classes and the nodes that are there."""
    columns = ("policy", "key", "learned", "seeds", "jobsets", "mix")
    rows = read_policies(table, columns, numbers=("time", "there", "value", "low", "high"))
    with styled():
        figure = new_figure(6.4)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.1))
        headline(
            figure,
            "Total time of consumers in the system, by time of arrival",
            f"{int(rows['jobsets'].iloc[0]):,} unseen jobsets; bands: 95% intervals over them",
        )
        curves = []
        for _, line in rows.groupby("key", sort=False):
            last = line.iloc[-1]
            x, y, low, high = line[["time", "value", "low", "high"]].to_numpy().T
            width = 2.4 if last["is_learned"] else 1.3
            name = name_of(last, several=True)
            curves.append(Curve(name, last["color"], x, y, low, high, width=width))
        ends = draw_curves(upper, curves)
        upper.set_ylabel("mean total time (steps)")
        label_ends(upper, ends)
        first = rows[rows["key"] == rows["key"].iloc[0]]
        mix = np.array([[float(share) for share in shares.split()] for shares in first["mix"]])
        greys = [str(0.45 + 0.5 * k / mix.shape[1]) for k in range(mix.shape[1])]
        lower.stackplot(first["time"], mix.T, colors=greys, linewidth=0)
        lower.plot(first["time"], first["there"], color=PALETTE[0], linewidth=2)
        lower.set_ylim(0, 1.05)
        lower.set_ylabel("share")
        lower.set_xlabel("arrival (steps)")
        classes = (0.3, "greys: classes of consumers", MUTED)
        label_ends(lower, [(first["there"].iloc[-1], "available nodes", PALETTE[0]), classes], 9)
    return figure


COMPARISON = FigureRecipe(collect, draw)
DRIFT = FigureRecipe(collect_drift, draw_drift)


def _asked(request: FigureRequest) -> tuple[EvaluationProtocol, list[PolicySpec]]:
    """What to compare on, and all rules and policies."""
    runs, config = request.load()
    protocol = request.protocol(config)
    require_agents(protocol.task.world.kind)
    return protocol, request.specs(protocol.task.spec.heuristics.names(), runs)


def require_agents(kind: str) -> None:
    """Makes sure that a task has agents.

    Raises:
        InputError: if it is of another world.
    """
    if kind != WORLD:
        raise InputError(
            f"this figure shows agents on unlike nodes, but the world is {kind}; give "
            f"--config panda-drift, or a run of the world {WORLD} with --runs"
        )


def _by_arrival(schedule: Schedule) -> NDArray[np.float64]:
    """Mean total times, float64 ``(num_episodes, BINS)``; NaN where nobody arrives."""
    window = schedule.window[schedule.episode]
    place = np.minimum(schedule.arrival * BINS // window, BINS - 1)
    until = np.where(schedule.finished, schedule.finish, schedule.end[schedule.episode])
    sums, counts = (np.zeros((schedule.num_episodes, BINS)) for _ in range(2))
    np.add.at(sums, (schedule.episode, place), until - schedule.arrival)
    np.add.at(counts, (schedule.episode, place), 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _supply(jobsets: list[JobSet], world: object) -> NDArray[np.float64]:
    """What the nodes that are there can do over what all can, float64 ``(BINS,)``."""
    work = np.asarray(world.nodes.work, np.float64)  # type: ignore[attr-defined]
    there = np.zeros(BINS)
    for one in jobsets:
        steps = np.full(one.window, work.sum())
        for node, _, leaves, returns in np.asarray(getattr(one, "away", ())).reshape(-1, 4):
            steps[leaves:returns] -= work[node]
        there += [part.mean() for part in np.array_split(steps, BINS)]
    return there / (len(jobsets) * work.sum())
