"""Which jobs are kept waiting though there is room for them, and how long."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import Result, Summary, summarize
from cluster_env.evaluation.summary import is_measured
from cluster_env.evaluation.withholding import find_withheld
from tune_jobs.measuring.comparison import side_cells, spec_cells
from tune_jobs.measuring.evaluating import held_out_jobsets, measure
from tune_jobs.measuring.policy_specs import PolicySpec, check_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.recipes.deeprm import WITHHOLDING
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, estimate_cells

ALL = "all"
"""What stands in the column ``length`` of the row that holds all jobs of a policy."""

OF_A_LENGTH = ("slowdown", "withheld", "waited")


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
    if not any(jobset.num_jobs for jobset in held_out_jobsets(protocol)):
        raise InputError("no job arrives in these jobsets; give more with --jobsets")
    found = measure(protocol, specs, _rows, request.work, plain=True)
    return [row for rows in found for row in rows]


def _rows(
    protocol: EvaluationProtocol, spec: PolicySpec, name: str, schedules: Sequence[Schedule]
) -> list[Row]:
    """What a spec achieved: on ``all`` jobs, then by length."""
    jobsets = held_out_jobsets(protocol)
    lengths = sorted({int(length) for jobset in jobsets for length in jobset.duration})
    members = []
    for schedule in schedules:
        every_metric = summarize(
            schedule, warmup=protocol.warmup, metrics=protocol.task.spec.metrics
        )
        ours = _summaries(schedule, protocol.warmup, lengths)
        totals = {**every_metric.totals, **ours[ALL].totals}
        counts = {**every_metric.counts, **ours[ALL].counts}
        members.append({**ours, ALL: replace(ours[ALL], totals=totals, counts=counts)})
    rows: list[Row] = []
    for length in members[0]:
        result = Result(name, tuple(member[length] for member in members))
        row: dict[str, Any] = {
            **protocol.columns(),
            **spec_cells(spec, result.name),
            "length": length,
            "num_jobs": result.means["num_jobs"],
            "unfinished": result.means["unfinished"],
        }
        for name_of in (*OF_A_LENGTH, *(("holding",) if length == ALL else ())):
            row |= estimate_cells(name_of, result.estimate(name_of))
        row["interval_over"] = result.estimate("slowdown").over
        rows.append(row | side_cells(protocol, result) if length == ALL else row)
    return rows


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
