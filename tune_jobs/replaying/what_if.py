"""What ``metasched whatif`` does: a log as it is played today, and after changes, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.evaluation import evaluate
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.comparing.comparison import check_specs
from tune_jobs.comparing.policy_specs import PolicySpec, heuristic_spec, learned_spec
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import Decode, find_runs, is_heuristic, load_runs
from tune_jobs.replaying.calibration import said_by_slurm_conf
from tune_jobs.replaying.changes import Setup, changed
from tune_jobs.replaying.choices import LogOptions, task_of_log
from tune_jobs.replaying.effect_sheets import Effects, points, sheets_of
from tune_jobs.replaying.effects import Periods, Side
from tune_jobs.replaying.outcomes import bounded, overloaded
from tune_jobs.replaying.trust import Trust
from tune_jobs.tables.frames import write_table
from tune_jobs.tables.printing import as_data, folded, format_sheet, write_sheets
from tune_jobs.terminal.output import print_json, silent
from tune_jobs.terminal.progress import NoProgress, Progress

USUAL = "fcfs:easy"
"""What plays a log today, where neither a policy nor a slurm.conf is named."""

NOW, THEN = "now", "then"

FIGURE = "whatif"
"""Name of the picture and of its table."""

NOT_KNOWN = (
    "Jobs arrive as recorded. People who wait for shorter or longer would submit other jobs, at "
    "other times, and no replay of a log knows which."
)


@dataclass(frozen=True, kw_only=True)
class WhatIfOptions(LogOptions):
    """A log, today's policy, and what is changed."""

    policy: str | None = None
    slurm_conf: Path | None = None
    changes_made: Sequence[str] = ()
    each: bool = False
    seed: int = 0
    decode: Decode = "argmax"


@dataclass(frozen=True, eq=False)
class _Case:
    """One side before it is played."""

    name: str
    setup: Setup
    task: Task
    jobs: RecordedJobs
    spec: PolicySpec

    @property
    def protocol(self) -> EvaluationProtocol:
        return EvaluationProtocol(self.task, num_jobsets=1)

    @property
    def policy(self) -> Policy:
        return self.spec.make(self.protocol).members[0]


def report_what_if(
    options: WhatIfOptions, *, as_json: bool, out: Path | None, draw: Callable[[Path, Path], None]
) -> None:
    """Plays a log before and after changes, and prints what becomes better or worse, and for whom.

    Raises:
        InputError: if the log, a policy or a change cannot be used; before anything is played.
    """
    made = tuple(options.changes_made)
    if not made:
        raise InputError("nothing is changed; give --change KEY=VALUE, such as processors=+64")
    now, words = _today(options)
    cases = [now, _case(THEN, options, changed(now.setup, made, now.task))]
    if options.each and len(made) > 1:
        cases += [_case(one, options, changed(now.setup, [one], now.task)) for one in made]
    for case in cases:
        check_specs(case.protocol, [case.spec])
    lines = reduce(np.intersect1d, [case.jobs.line for case in cases])
    if not lines.size:
        raise InputError("no job fits both machines, so there is nothing to compare")
    schedules = _play(cases, lines, NoProgress() if as_json else Progress())
    jobs = now.jobs.select(np.isin(now.jobs.line, lines))
    effects = _effects(cases, schedules, jobs)
    trust = _trust(now, jobs, effects.now)
    sheets = sheets_of(effects, jobs)
    remarks = [*words, *_left_out([case.jobs for case in cases], lines)]
    for case, schedule in zip(cases[:2], schedules[:2], strict=True):
        world: Any = case.task.world
        remarks += bounded({case.name: schedule}, world.max_wait)
    remarks += overloaded(dict(zip((NOW, THEN), schedules[:2], strict=True)))
    if as_json:
        data = {"jobs": jobs.num_jobs, "changes": list(made), "policy": now.spec.key}
        data |= {"trust": trust.data, "remarks": [*remarks, NOT_KNOWN]}
        print_json(data | as_data(sheets))
    say = silent if as_json else click.echo
    head = f"{options.path}: what if {', '.join(made)}? {jobs.num_jobs:,} jobs, now {now.spec.key}"
    shown = [format_sheet(sheet) for sheet in sheets_of(effects, jobs, few=True)]
    under = ("\n".join(folded([one])) for one in (trust.sentence, NOT_KNOWN, *remarks))
    say("\n\n".join([click.style(head, bold=True), *shown, *under]))
    if out is None:
        say("\nNext     the same with --out FOLDER keeps all tables and draws them")
        return
    write_sheets(out, sheets)
    table, image = out / f"{FIGURE}.csv", out / f"{FIGURE}.png"
    write_table(table, points(effects, jobs))
    draw(table, image)
    say(f"\nWrote {image}, drawn from {table}, and the tables beside it")


def _today(options: WhatIfOptions) -> tuple[_Case, list[str]]:
    """The side without changes, and sentences about it."""
    said, changes, words, usual = dict(options.task_options), options.changes, [], USUAL
    if options.slurm_conf is not None:
        conf = said_by_slurm_conf(options.slurm_conf, options.path, said, changes)
        said, changes, words, usual = conf.task_options, conf.overrides, conf.words, conf.policy
    setup = Setup(policy=options.policy or usual, task_options=said, overrides=tuple(changes))
    case = _case(NOW, options, setup, words)
    return case, words


def _case(name: str, options: WhatIfOptions, setup: Setup, words: list[str] | None = None) -> _Case:
    runs = []
    if not is_heuristic(setup.policy):
        runs = list(load_runs(find_runs([setup.policy]), options.decode))
        if len(runs) != 1:
            raise InputError(f"{setup.policy} names {len(runs):,} runs; name one policy")
    task, jobs, remarks = task_of_log(
        options.path,
        setup.overrides,
        setup.task_options,
        guess=False,
        runs=runs,
        seed=options.seed,
    )
    if words is not None:
        words += remarks
    spec = heuristic_spec(setup.policy)
    if runs:
        spec = replace(learned_spec("", runs, options.decode), key=runs[0].path.name)
    return _Case(name, setup, task, jobs, spec)


def _play(cases: Sequence[_Case], lines: NDArray[np.int64], progress: Progress) -> list[Schedule]:
    """The schedule of each side, of the jobs that stand in these lines of the file."""
    progress.start(len(cases), unit="side")
    schedules = []
    for count, case in enumerate(cases, start=1):
        (jobset,) = case.task.jobsets(Split.HELD_OUT, [0])
        kept = jobset.select(np.isin(case.jobs.line, lines))
        task = case.task
        schedule = evaluate(case.policy, [kept], task.world, run_seed=task.seed)
        if not schedule.finished.all():
            raise InputError(
                f"{case.name}, some jobs do not end before max_time; leave max_time unset"
            )
        schedules.append(schedule)
        progress.step(count, case.name)
    progress.close()
    return schedules


def _effects(cases: Sequence[_Case], schedules: Sequence[Schedule], jobs: RecordedJobs) -> Effects:
    first = schedules[0]
    arrival = np.empty(first.job.size, np.int64)
    arrival[first.job] = first.arrival
    periods = Periods.of(arrival, int(first.window[0]))
    sides = [
        Side.of(case.name, schedule, periods, int(schedule.window[0]))
        for case, schedule in zip(cases, schedules, strict=True)
    ]
    capacity: Any = cases[0].task.world
    return Effects(sides[0], sides[1], sides[2:], periods, np.asarray(capacity.capacity))


def _trust(now: _Case, jobs: RecordedJobs, side: Side) -> Trust:
    workload: Any = now.task.workload
    return Trust.of(
        now.spec.key,
        jobs.submit,
        jobs.wait,
        side.wait.astype(np.int64),
        as_it_was=workload.stretch == 1 and not workload.scaled_load,
    )


def _left_out(sides: Sequence[RecordedJobs], lines: NDArray[np.int64]) -> list[str]:
    """A sentence where a side has jobs that another one cannot run."""
    most = np.unique(np.concatenate([jobs.line for jobs in sides])).size - lines.size
    if not most:
        return []
    return [f"{most:,} jobs are left out on all sides, because they do not fit one of the machines"]
