"""Policies trained for different objectives, on each of them (DeepRM, figure 5)."""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.errors import InputError
from cluster_env.evaluation import METRICS, Result, best
from tune_jobs.comparing.comparison import check_specs, evaluate_specs, spec_cells
from tune_jobs.comparing.policy_specs import PolicySpec, heuristic_spec, learned_name, learned_specs
from tune_jobs.comparing.trained_runs import TrainedRun
from tune_jobs.comparing.wording import on_jobs
from tune_jobs.figures.comparison import POLICY, is_learned, look_of, measured_on, read_rows
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALWAYS = ("slowdown", "completion_time")
"""Metrics that have a panel whatever the runs were trained for: the paper's two."""

COLUMNS = (
    *("metric", "jobsets", *POLICY, "trained_for", "value", "ratio", "ratio_low", "ratio_high"),
    *("interval_over", "reference", "best", "tied", "unfinished"),
)

_ROW_HEIGHT = 0.46
_TITLE_CHARACTERS = 22
_NAME_CHARACTERS = 26
_WIDEST = 2.5  # times the best heuristic; whoever is farther is an arrow at the edge


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates all heuristics and the runs' policies by every metric that one was trained for.

    Heuristics that take a number are tuned for each metric anew. The objective of a run that has no
    metric of its own name, such as a mixture, gets no panel; its policy is in all others.

    Returns:
        One row for each metric and policy: ``value``, its mean, over that of ``reference``, the
        best heuristic by this metric, with a 95 % interval in pairs (``ratio``); ``best`` marks the
        best of all policies by this metric, ``tied`` what cannot be told from it.

    Raises:
        InputError: if a run cannot be used, or no job arrives.
    """
    runs, config = request.load()
    whole = request.protocol(config)
    protocol = whole.at(*whole.values())
    heuristics = [heuristic_spec(name) for name in protocol.task.kind.heuristics.names()]
    learned = learned_specs(runs, request.decode)
    check_specs(protocol, [*heuristics, *learned])
    metrics = _metrics_of(runs)
    learned.sort(key=lambda one: [*metrics, one.trained_for].index(one.trained_for))
    progress = request.progress
    progress.start(len(learned) + len(metrics) * len(heuristics), unit="evaluation")
    learned_results = evaluate_specs(protocol, learned, progress)
    num_done = len(learned)
    rows: list[Row] = []
    for metric in metrics:
        tuned = replace(protocol, metric=metric)
        results = evaluate_specs(tuned, heuristics, progress, num_done)
        num_done += len(heuristics)
        head = tuned.columns()
        pairs = zip([*heuristics, *learned], [*results, *learned_results], strict=True)
        rows += [{**head, **row} for row in _rows(list(pairs), best(results, metric), metric)]
    progress.close()
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_rows(table, COLUMNS)
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    keys = list(dict.fromkeys(row["key"] for row in rows))
    columns = 2 if len(metrics) in (2, 4) else 3
    lines = -(-len(metrics) // columns)
    with styled():
        figure = new_figure(1.1 + lines * (1.1 + _ROW_HEIGHT * len(keys)))
        panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
        far = any(number(row, "ratio") > _WIDEST for row in rows)
        beyond = f"; arrows: more than {_WIDEST:g} times" if far else ""
        headline(
            figure,
            f"How policies do by each objective, {on_jobs(rows[0])}",
            f"{measured_on(rows)}; bold: the best, and what cannot be told from it{beyond}",
        )
        for axes, metric in zip(panels, metrics, strict=False):
            _draw_panel(axes, [row for row in rows if row["metric"] == metric], rows)
        for axes in panels[len(metrics) :]:
            axes.set_visible(False)
        names = [_name_of(row) for row in rows[: len(keys)]]
        panels[0].set_yticks(range(len(keys)), names)
        panels[0].set_ylim(len(keys) - 0.5, -0.8)
    return figure


def _metrics_of(runs: Sequence[TrainedRun]) -> list[str]:
    """The metrics to show: `ALWAYS`, then those of the runs' objectives."""
    objectives = [run.config.task.build_objective().name for run in runs]
    named = [name for name in objectives if name in METRICS.names()]
    return list(dict.fromkeys((*ALWAYS, *named)))


def _rows(pairs: Sequence[tuple[PolicySpec, Result]], reference: Result, metric: str) -> list[Row]:
    """One row for each spec; the best of them is found here."""
    if not reference.means["num_jobs"]:
        raise InputError("no job arrives in these jobsets; give more with --jobsets")
    winner = best([result for _, result in pairs], metric)
    rows: list[Row] = []
    for spec, result in pairs:
        ratio, gap = result.ratio(reference, metric), result.difference(winner, metric)
        estimate = result.estimate(metric)
        rows.append(
            {
                **spec_cells(spec, result),
                "num_jobs": result.means["num_jobs"],
                "unfinished": result.means["unfinished"],
                "value": estimate.value,
                "value_low": estimate.low,
                "value_high": estimate.high,
                "ratio": ratio.value,
                "ratio_low": ratio.low,
                "ratio_high": ratio.high,
                "interval_over": ratio.over,
                "reference": reference.name,
                "best": result is winner,
                "tied": result is not winner and gap.low <= 0 <= gap.high,
            }
        )
    return rows


def _draw_panel(axes: "Axes", panel: Sequence[Cells], rows: list[Cells]) -> None:
    """The policies by one metric, one below the other."""
    metric = METRICS.get(panel[0]["metric"])
    for place, row in enumerate(panel):
        color, marker = look_of(row["key"], rows)
        value = min(number(row, "ratio"), _WIDEST)
        beyond = number(row, "ratio") > _WIDEST
        if not beyond:
            low, high = (min(number(row, f"ratio_{end}"), _WIDEST) for end in ("low", "high"))
            axes.hlines(place, low, high, color, linewidth=3)
        axes.plot(
            value,
            place,
            marker=">" if beyond else marker,
            color=color,
            markersize=7,
            linestyle="none",
        )
        bold = "True" in (row["best"], row["tied"])
        cut = "at least " if number(row, "unfinished") and metric.per == "job" else ""
        axes.annotate(
            f"{cut}{_written(row)}",
            (value, place),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=9,
            fontweight="bold" if bold else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
    axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    axes.set_title("\n".join(textwrap.wrap(metric.label, _TITLE_CHARACTERS)), fontsize=10)
    reference = next(row for row in panel if row["policy"] == row["reference"])
    better = "; higher is better" if metric.higher_is_better else ""
    axes.set_xlabel(f"over the best heuristic,\n{reference['policy']}{better}", fontsize=9.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelsize=9.5)
    axes.margins(x=0.16)


def _name_of(row: Cells) -> str:
    """Name of a policy, with the objective that it was trained for."""
    if not is_learned(row):
        return f"{row['key']}*" if "*" in row["policy"] else row["policy"]
    seeds = int(number(row, "seeds"))
    plural = f"{seeds}\N{NO-BREAK SPACE}seed{'s' if seeds > 1 else ''}"
    objective = textwrap.fill(f"for {row['trained_for']}, {plural}", _NAME_CHARACTERS)
    return f"{learned_name(row['key']).replace('-' + row['trained_for'], '')}\n{objective}"


def _written(row: Cells) -> str:
    digits = 3 if row["metric"] == "utilization" else 2
    value = number(row, "value")
    return f"{value:.{digits}f}" if value < 100 else f"{value:,.0f}"
