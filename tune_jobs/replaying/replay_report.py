"""What ``metasched replay`` does: plays a whole log under policies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
from cluster_env.core.task import Task
from cluster_env.evaluation import evaluate
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.comparing.comparison import check_specs
from tune_jobs.comparing.policy_specs import (
    PolicySpec,
    beside_holding,
    heuristic_spec,
    learned_spec,
    split_names,
)
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import Decode, find_runs, is_heuristic, load_runs
from tune_jobs.replaying.choices import LogOptions, task_of_log
from tune_jobs.replaying.outcomes import (
    AS_RECORDED,
    as_recorded,
    beyond_simulation,
    bounded,
    by_partition,
    by_size,
    by_user,
    in_all,
    outcome,
    overloaded,
    timeline,
)
from tune_jobs.tables.printing import as_data
from tune_jobs.tables.report import Picture, Report, tables_of, text_of
from tune_jobs.terminal.progress import Progress

STRETCHES = 160
"""Points of a line in the pictures of use and queue."""

LINES, GANTT = "timeline", "gantt"


@dataclass(frozen=True, eq=False)
class Replay:
    """A whole log under one policy.

    Attributes:
        name: of the policy.
        schedule: its one episode.
        seconds: that playing took.
    """

    name: str
    schedule: Schedule
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(LogOptions):
    """A log, and what plays it: ``names``, if there are none the world's baselines."""

    names: Sequence[str] = ()
    seed: int = 0
    decode: Decode = "argmax"


def replay_log(options: ReplayOptions, progress: Progress) -> Report:
    """Plays a log under policies, and tells what came of it.

    Raises:
        InputError: if the log, the machine or a policy cannot be used; before anything is played.
    """
    chosen, decode = split_names(options.names), options.decode
    if options.names and not chosen:
        raise InputError("--policy names nothing; try --policy random")
    learned = [name for name in chosen if not is_heuristic(name)]
    runs = {name: load_runs(find_runs([name]), decode) for name in learned}
    every = [run for some in runs.values() for run in some]
    task, jobs, remarks = task_of_log(
        options.path,
        options.changes,
        options.task_options,
        guess=False,
        runs=every,
        seed=options.seed,
    )
    specs: list[PolicySpec] = []
    for name in chosen or task.spec.baselines:
        specs += [] if name in runs else [heuristic_spec(name)]
        for run in runs.get(name, ()):  # each by itself, also where seeds alone differ
            specs.append(replace(learned_spec("", [run], decode), key=run.path.name))
    protocol = EvaluationProtocol(task, num_jobsets=1)
    specs = beside_holding(specs)
    check_specs(protocol, specs)
    return _report(options.path, task, jobs, play(protocol, specs, progress), remarks)


def _report(
    path: Path,
    task: Task,
    jobs: RecordedJobs,
    replays: Sequence[Replay],
    remarks: list[str],
) -> Report:
    """The tables and pictures of replays of a log."""
    outcomes = {one.name: outcome(one.schedule, jobs.resources) for one in replays}
    schedules = {one.name: one.schedule for one in replays}
    workload: Any = task.workload
    # Recorded waits are those of the arrivals that the log has.
    as_it_was = workload.stretch == 1 and not workload.scaled_load
    recorded = as_recorded(jobs, replays[0].schedule) if as_it_was else None
    numbers = None if recorded is None else outcome(recorded, jobs.resources)
    world: Any = task.world
    remarks += bounded(schedules, world.max_wait)
    if world.site is None:
        remarks += beyond_simulation(outcomes, numbers)
    remarks += overloaded(schedules)
    shown = schedules if recorded is None else {AS_RECORDED: recorded, **schedules}
    sheets = [
        in_all(outcomes, jobs, numbers),
        *(by_partition(shown, jobs, world.site) if world.site is not None else []),
        by_size(schedules),
        *by_user(schedules, jobs),
    ]
    files = {one.name: _file_name(one.name) for one in replays}
    return Report(
        text=text_of(_head(path, jobs, replays[0].schedule), sheets, remarks),
        tables=tables_of(sheets)
        | {LINES: partial(_lines_of, replays)}
        | {f"schedule-{files[key]}": partial(_jobs_of, schedules[key], jobs) for key in schedules},
        data={
            "jobs": jobs.num_jobs,
            "dropped": [{"count": one.count, "reason": one.reason} for one in jobs.dropped],
            "seconds": {one.name: one.seconds for one in replays},
            "remarks": remarks,
            **as_data(sheets),
        },
        remarks=remarks,
        pictures={LINES: Picture(LINES, [LINES])}
        | {
            f"{GANTT}-{files[key]}": Picture(
                GANTT,
                [f"schedule-{files[key]}"],
                {"processors": int(one.capacity[0]), "policy": key},
            )
            for key, one in schedules.items()
        },
        hint="Next     the same with --out FOLDER keeps schedules and draws them",
        written=f"Wrote {{out}}: schedules, tables, {LINES}.png, and {GANTT}-*.png of each policy",
    )


def play(
    protocol: EvaluationProtocol, specs: Sequence[PolicySpec], progress: Progress
) -> list[Replay]:
    """Plays the one jobset of a protocol under each policy."""
    jobsets = protocol.held_out()
    progress.start(len(specs), unit="policy")
    replays = []
    for count, spec in enumerate(specs, start=1):
        policy = spec.make(protocol).members[0]
        begin = perf_counter()
        schedule = evaluate(policy, jobsets, protocol.task.world, run_seed=protocol.task.seed)
        replays.append(Replay(spec.key, schedule, perf_counter() - begin))
        progress.step(count, spec.key)
    progress.close()
    return replays


def _jobs_of(schedule: Schedule, jobs: RecordedJobs) -> pd.DataFrame:
    """What became of each job, in whole seconds of the log's clock."""
    started = schedule.start >= 0
    submit = jobs.submit[schedule.job]
    wait = np.where(started, schedule.start - schedule.arrival, -1)
    finished = schedule.finish >= 0
    columns: dict[str, NDArray[Any]] = {
        "line": jobs.line[schedule.job],
        "submit": submit,
        "start": np.where(started, submit + wait, -1),
        "finish": np.where(finished, submit + schedule.finish - schedule.arrival, -1),
        "wait": wait,
        "duration": schedule.duration,
        "estimate": jobs.estimate[schedule.job],
        **{name: schedule.demand[:, k] for k, name in enumerate(jobs.resources)},
    }
    for name in jobs.ids:
        columns[name] = jobs.names[name][jobs.ids[name][schedule.job]]
    return pd.DataFrame(columns)


def _lines_of(replays: Sequence[Replay]) -> pd.DataFrame:
    """Use and queue over time, the same stretches for all policies."""
    last = max(int(one.schedule.end.max()) for one in replays)
    edges = np.unique(np.linspace(0, max(last, 1), STRETCHES + 1).astype(np.int64))
    frames = []
    for one in replays:
        columns = {
            "policy": one.name,
            "begin_s": edges[:-1],
            "end_s": edges[1:],
            "window_s": int(one.schedule.window[0]),
        }
        frames.append(pd.DataFrame({**columns, **timeline(one.schedule, edges)}))
    return pd.concat(frames)


def _file_name(policy: str) -> str:
    return re.sub(r"[^\w.-]+", "-", policy).strip("-")


def _head(path: Path, jobs: RecordedJobs, schedule: Schedule) -> str:
    num_lost = sum(one.count for one in jobs.dropped)
    reasons = "; ".join(f"{one.count:,} because the job {one.reason}" for one in jobs.dropped)
    lost = f"; left out: {reasons}" if num_lost else ""
    machine = ", ".join(
        f"{units:,} {name}" for name, units in zip(jobs.resources, schedule.capacity, strict=True)
    )
    return f"{path}: {jobs.num_jobs:,} jobs on {machine}{lost}"
