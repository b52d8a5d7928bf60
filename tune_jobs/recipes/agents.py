"""PANDA's agents and the central rules, in all and as time goes on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import PolicyGroup
from cluster_env.objectives import read_class_weights
from tune_jobs.measuring.comparison import compare, spec_cells
from tune_jobs.measuring.evaluating import measure
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, Value

WORLD = "panda"

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
    return compare(protocol, specs, protocol.values(request.at), request.work)


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
    for cells, parts in measure(protocol, specs, _drift_of, request.work, plain=True):
        # NaN, and no part of a mean, where nobody arrives.
        values = pd.DataFrame(np.mean(parts, axis=0))
        count, squares = values.count(), ((values - values.mean()) ** 2).sum()
        errors = 1.96 * np.sqrt(squares / (count - 1).clip(lower=1) / count)
        for place, (mean, error) in enumerate(zip(values.mean(), errors, strict=True)):
            rows.append(
                {
                    **cells,
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


def _drift_of(
    protocol: EvaluationProtocol, spec: PolicySpec, name: str, schedules: Sequence[Schedule]
) -> tuple[dict[str, Value], list[NDArray[np.float64]]]:
    return spec_cells(spec, name), [_by_arrival(schedule) for schedule in schedules]


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
