"""The same jobs under the best rule and under a learned policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import Summary, get_metric, summarize
from tune_jobs.measuring.comparison import spec_cells
from tune_jobs.measuring.evaluating import measure
from tune_jobs.measuring.policy_specs import PolicySpec, check_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.wording import best_of
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, Value


@dataclass(frozen=True)
class _Played:
    """What a policy did on all jobsets."""

    cells: dict[str, Value]
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
    played = measure(protocol, specs, _first, request.work)
    metric, policy = get_metric(protocol.metric), played[-1].summary
    rule = min(played[:-1], key=lambda one: metric.rank(one.summary.mean(metric.name)))
    differences = policy.rows(metric.name) - rule.summary.rows(metric.name)
    mean = policy.mean(metric.name) - rule.summary.mean(metric.name)
    shown = int(np.nanargmin(np.abs(differences - mean)))
    gains = differences if metric.higher_is_better else -differences
    better = int((gains > 0).sum())
    head = {**protocol.columns(), "of_rules": best_of(rules), "place": shown + 1, "better": better}
    return [{**head, **row} for one in (rule, played[-1]) for row in _rows(one, protocol, shown)]


def _first(
    protocol: EvaluationProtocol, spec: PolicySpec, name: str, schedules: Sequence[Schedule]
) -> _Played:
    metrics = protocol.task.spec.metrics
    summary = summarize(schedules[0], warmup=protocol.warmup, metrics=metrics)
    return _Played(spec_cells(spec, name), schedules[0], summary)


def _rows(played: _Played, protocol: EvaluationProtocol, shown: int) -> list[Row]:
    schedule, side_metrics = played.schedule, protocol.task.spec.side_metrics
    jobs = np.flatnonzero(schedule.jobset[schedule.episode] == shown)
    head = {
        **played.cells,
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
