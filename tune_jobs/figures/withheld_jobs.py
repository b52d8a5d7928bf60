"""Which jobs are kept waiting though there is room for them, and how long (DeepRM, figure 7)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import Result, Summary, evaluate, summarize
from cluster_env.evaluation.summary import is_measured
from cluster_env.evaluation.withholding import find_withheld
from tune_jobs.figures.comparison import POLICY, in_words, measured_on, read_policies
from tune_jobs.figures.deeprm import WITHHOLDING
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import headline, new_figure, scale_values, styled
from tune_jobs.measuring.comparison import check_specs, side_cells, spec_cells
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.wording import jobs_of, on_jobs
from tune_jobs.tables.frames import Row, estimate_cells, with_numbers

ALL = "all"
"""What stands in the column ``length`` of the row that holds all jobs of a policy."""

OF_A_LENGTH = ("slowdown", "withheld", "waited")
COLUMNS = (
    *("jobsets", *POLICY, "interval_over", "length", "num_jobs", "holding"),
    *(f"{name}{end}" for name in OF_A_LENGTH for end in ("", "_low", "_high")),
)

_HEIGHT = 4.5
_GAP = 3  # steps between the lengths of two jobs that a line still joins


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates policies and works out what they withheld.

    What withheld means, and what is not asked, is said in `cluster_env.evaluation.withholding`.

    Returns:
        For each policy one row for each length of a job in time steps, and first one for ``all``:
        ``slowdown``, its mean; ``withheld``, the share of these jobs that were withheld;
        ``waited``, how many steps a withheld job waited from the first in which it could have
        started; ``holding``, in the row for all, the share of the steps of whole episodes in which
        a job was withheld (the paper's 23.4 %). All of them with 95 % intervals; and in the row
        for all, what the mean was bought with, see `side_cells`.

    Raises:
        InputError: if a run cannot be used, or no job arrives.
    """
    runs, config = request.load()
    whole = request.protocol(config)
    protocol = whole.at(*whole.values())
    specs = request.specs(WITHHOLDING, runs)
    check_specs(protocol, specs)
    jobsets = protocol.held_out()
    lengths = sorted({int(length) for jobset in jobsets for length in jobset.duration})
    if not lengths:
        raise InputError("no job arrives in these jobsets; give more with --jobsets")
    request.progress.start(len(specs), unit="evaluation")
    rows: list[Row] = []
    for done, spec in enumerate(specs, start=1):
        rows += _rows(protocol, spec, jobsets, lengths)
        request.progress.step(done, f"{jobs_of(protocol.task)}: {spec.key}")
    request.progress.close()
    return rows


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    rows = read_policies(table, COLUMNS, OF_A_LENGTH, ["holding"])
    of_all = rows[rows["length"] == ALL]
    lengths = with_numbers(rows[rows["length"] != ALL], ["length"])
    held = ", ".join(
        f"{row['key'] if row['is_learned'] else row['policy']} {row['holding']:.0%}"
        for _, row in of_all.iterrows()
    )
    titles = (
        ("(a) slowdown", "mean slowdown"),
        ("(b) jobs delayed", "share of jobs"),
        ("(c) delay", "mean steps of delay"),
    )
    with styled():
        figure = new_figure(_HEIGHT)
        panels = figure.subplots(1, 3)
        headline(
            figure,
            f"Jobs delayed although they fit, {on_jobs(rows.iloc[0])}",
            f"{measured_on(rows)}; time steps in which a job is delayed although it fits: {held}",
        )
        for axes, (title, label), column in zip(panels, titles, OF_A_LENGTH, strict=True):
            axes.set_title(title)
            axes.set_ylabel(label)
            axes.set_xlabel("job length (steps)")
            columns = ["length", *(f"{column}{end}" for end in ("", "_low", "_high"))]
            curves = []
            for _, row in of_all.iterrows():
                points = lengths[lengths["key"] == row["key"]][columns].to_numpy()
                # A point of nothing where many lengths have no jobs, so that no line crosses it.
                gaps = np.flatnonzero(np.diff(points[:, 0]) > _GAP) + 1
                points = np.insert(points, gaps, np.nan, axis=0)
                name = "\n".join(filter(None, (row["label"], in_words(row))))
                look = {"marker": row["marker"], "width": 2.0 if row["is_learned"] else 1.2}
                curves.append(Curve(name, row["color"], *points.T, **look))
            draw_curves(axes, curves, "bars")
        slowdown, share, steps = panels
        scale_values(slowdown, lengths["slowdown"].to_numpy())
        share.set_ylim(-0.03, 1.03)
        share.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        steps.set_ylim(bottom=0)
        handles = slowdown.get_lines()
        room = {"ncols": 3, "fontsize": 9, "columnspacing": 1.2, "handlelength": 1.5}
        figure.legend(handles=handles, loc="outside lower center", **room)
    return figure


def _rows(
    protocol: EvaluationProtocol,
    spec: PolicySpec,
    jobsets: Sequence[JobSet],
    lengths: Sequence[int],
) -> Iterator[Row]:
    """What a spec achieved: on ``all`` jobs, then by length."""
    group = spec.make(protocol)
    members = []
    for policy in group.members:
        schedule = evaluate(
            policy,
            jobsets,
            protocol.task.world,
            run_seed=protocol.task.seed,
            episodes_per_jobset=protocol.num_episodes,
        )
        every_metric = summarize(
            schedule, warmup=protocol.warmup, metrics=protocol.task.spec.metrics
        )
        ours = _summaries(schedule, protocol.warmup, lengths)
        totals = {**every_metric.totals, **ours[ALL].totals}
        counts = {**every_metric.counts, **ours[ALL].counts}
        members.append({**ours, ALL: replace(ours[ALL], totals=totals, counts=counts)})
    for length in members[0]:
        result = Result(group.name, tuple(member[length] for member in members))
        row: dict[str, Any] = {
            **protocol.columns(),
            **spec_cells(spec, result.name),
            "length": length,
            "num_jobs": result.means["num_jobs"],
            "unfinished": result.means["unfinished"],
        }
        for name in (*OF_A_LENGTH, *(("holding",) if length == ALL else ())):
            row |= estimate_cells(name, result.estimate(name))
        row["interval_over"] = result.estimate("slowdown").over
        yield row | side_cells(protocol, result) if length == ALL else row


def _summaries(schedule: Schedule, warmup: int, lengths: Sequence[int]) -> dict[str, Summary]:
    """A summary of all jobs that count, then one for each length; their metrics are ours."""
    found = find_withheld(schedule)
    num_jobsets = int(schedule.jobset.max()) + 1
    of_job = schedule.jobset[schedule.episode]

    def total(
        which: NDArray[np.bool_], values: NDArray[Any], of: NDArray[np.int32] = of_job
    ) -> NDArray[np.float64]:
        totals = np.bincount(of[which], values[which], num_jobsets)
        return totals.astype(np.float64)

    every = np.ones(schedule.num_episodes, np.bool_)
    holding = total(every, found.holding_steps, schedule.jobset)
    steps = total(every, schedule.end, schedule.jobset)

    def summary(which: NDArray[np.bool_]) -> Summary:
        num_jobs, held = total(which, np.ones(which.size)), total(which, found.withheld)
        totals = {
            "slowdown": total(which, schedule.slowdown),
            "withheld": held,
            "waited": total(which, found.waited),
            "holding": holding,
        }
        return Summary(
            totals,
            {"slowdown": num_jobs, "withheld": num_jobs, "waited": held, "holding": steps},
            num_unfinished=total(which, ~schedule.finished).astype(np.int64),
            num_jobs=num_jobs.astype(np.int64),
            num_episodes=schedule.num_episodes,
            slowdown_p95=float("nan"),
        )

    measured = is_measured(schedule, warmup)
    by_length = {str(k): summary(measured & (schedule.duration == k)) for k in lengths}
    return {ALL: summary(measured), **by_length}
