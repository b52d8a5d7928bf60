"""What ``metasched replay`` does: plays a whole log under policies."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
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
from tune_jobs.tables.frames import write_table
from tune_jobs.tables.printing import Sheet, as_data, folded, format_sheet, write_sheets
from tune_jobs.terminal.output import print_json, silent
from tune_jobs.terminal.progress import NoProgress, Progress

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


def report_replay(
    options: ReplayOptions,
    *,
    as_json: bool,
    out: Path | None,
    draw_lines: Callable[[Path, Path], None],
    draw_gantt: Callable[[Path, Path, int, str], None],
) -> None:
    """Plays a log and prints what came of it; pictures are drawn from their tables.

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
    specs = beside_holding(specs)
    protocol = EvaluationProtocol(task, num_jobsets=1)
    check_specs(protocol, specs)
    replays = play(protocol, specs, NoProgress() if as_json else Progress())
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
    if as_json:
        played = {one.name: one.seconds for one in replays}
        dropped = [{"count": one.count, "reason": one.reason} for one in jobs.dropped]
        data = {"jobs": jobs.num_jobs, "dropped": dropped, "seconds": played, "remarks": remarks}
        data |= as_data(sheets)
        print_json(data)
    say = silent if as_json else click.echo
    say(_text(options.path, jobs, replays, sheets, remarks))
    if out is None:
        say("\nNext     the same with --out FOLDER keeps schedules and draws them")
        return
    write_sheets(out, sheets)
    write_table(out / f"{LINES}.csv", _lines_of(replays))
    draw_lines(out / f"{LINES}.csv", out / f"{LINES}.png")
    for one in replays:
        table = out / f"schedule-{_file_name(one.name)}.csv"
        write_schedule(table, one.schedule, jobs)
        image = out / f"{GANTT}-{_file_name(one.name)}.png"
        draw_gantt(table, image, int(one.schedule.capacity[0]), one.name)
    say(f"\nWrote {out}: schedules, tables, {LINES}.png, and {GANTT}-*.png of each policy")


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


def write_schedule(path: Path, schedule: Schedule, jobs: RecordedJobs) -> None:
    """Writes what became of each job, one a line, in whole seconds of the log's clock."""
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
    write_table(path, pd.DataFrame(columns))


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


def _text(
    path: Path,
    jobs: RecordedJobs,
    replays: Sequence[Replay],
    sheets: Sequence[Sheet],
    remarks: Sequence[str],
) -> str:
    num_lost = sum(one.count for one in jobs.dropped)
    reasons = "; ".join(f"{one.count:,} because the job {one.reason}" for one in jobs.dropped)
    lost = f"; left out: {reasons}" if num_lost else ""
    machine = ", ".join(
        f"{units:,} {name}"
        for name, units in zip(jobs.resources, replays[0].schedule.capacity, strict=True)
    )
    head = f"{path}: {jobs.num_jobs:,} jobs on {machine}{lost}"
    shown = [format_sheet(sheet, 40 if sheet.name == "by-partition" else 10) for sheet in sheets]
    under = ("\n".join(folded([one])) for one in remarks)
    return "\n\n".join([click.style(head, bold=True), *shown, *under])
