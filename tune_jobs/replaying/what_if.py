"""What ``metasched whatif`` does: a log as it is played today, and after changes, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.task import Task
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.commands.logs import WhatIf
from tune_jobs.measuring.policy_specs import PolicySpec, check_specs, heuristic_spec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import find_runs, is_heuristic, load_runs
from tune_jobs.measuring.work import Work, working
from tune_jobs.replaying.changes import Setup, at_changed_site, changed
from tune_jobs.replaying.choices import task_of_log
from tune_jobs.replaying.effect_sheets import Effects, points, sheets_of
from tune_jobs.replaying.effects import Lost, Periods, Side
from tune_jobs.replaying.fidelity import Trust
from tune_jobs.replaying.outcomes import bounded, dropped, left_out, overloaded
from tune_jobs.replaying.playing import spec_of
from tune_jobs.tables.frames import frame_of
from tune_jobs.tables.printing import as_data, folded
from tune_jobs.tables.report import KEEP_HINT, Picture, Report, kept, tables_of, text_of
from tune_jobs.terminal.progress import Progress

USUAL = "fcfs:easy"
"""What plays a log today, where neither a policy nor a slurm.conf is named."""

NOW, THEN = "now", "then"

FIGURE = "whatif"
"""Name of the picture and of its table."""

NOT_KNOWN = (
    "Jobs arrive as recorded. People who wait for shorter or longer would submit other jobs, at "
    "other times, and no replay of a log knows which."
)


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


def compare_changes(options: WhatIf, progress: Progress) -> Report:
    """Plays a log before and after changes, and tells what becomes better or worse, and for whom.

    Raises:
        InputError: if the log, a policy or a change cannot be used; before anything is played.
    """
    made, (cases, words) = tuple(options.change), check_changes(options)
    now = cases[0]
    with working(options.num_runners, progress) as work:
        played = _play_all(cases, work)
    jobs, effects = _effects(now, played)
    trust = _trust(now, jobs, effects.now)
    sheets = sheets_of(effects, jobs)
    change = float(effects.then.wait.mean() - effects.now.wait.mean())
    remarks = [*trust.too_small(change), *words, *_left_out(played, jobs)]
    lost = [effects.lost.sentence] if effects.lost.sentence else []
    for case, one in zip(cases[:2], played[:2], strict=True):
        world: Any = case.task.world
        remarks += bounded({case.name: one.schedule}, world.max_wait)
    remarks += overloaded({one.name: one.schedule for one in played[:2]})
    head = f"{options.path}: what if {', '.join(made)}? {jobs.num_jobs:,} jobs, now {now.spec.key}"
    head = "\n".join([f"{head}{left_out(now.jobs)}", *folded(lost)])
    few = sheets_of(effects, jobs, few=True)
    return Report(
        text=text_of(head, few, [trust.sentence, NOT_KNOWN, *remarks]),
        sheets=sheets,
        tables=tables_of(sheets) | {FIGURE: partial(frame_of, points(effects, jobs))},
        data={
            "jobs": jobs.num_jobs,
            "changes": list(made),
            "policy": now.spec.key,
            "trust": trust.data,
            "dropped": dropped(now.jobs),
            "work_that_disappears": asdict(effects.lost),
            "remarks": [*lost, *remarks, NOT_KNOWN],
            **as_data(sheets),
        },
        remarks=[*lost, trust.sentence, NOT_KNOWN, *remarks],
        pictures={FIGURE: Picture(FIGURE, [FIGURE])},
        hint=KEEP_HINT,
        written=kept(FIGURE),
    )


def check_changes(options: WhatIf) -> tuple[list[_Case], list[str]]:
    """Today and each side that is to be played, and sentences about today; nothing is played.

    Raises:
        InputError: if the log, a policy or a change cannot be used.
    """
    made = tuple(options.change)
    if not made:
        raise InputError("nothing is changed; give --change KEY=VALUE, such as processors=+64")
    now, words = _today(options)
    sides = {THEN: made}
    if options.each and len(made) > 1:
        sides |= {one: (one,) for one in made}
    cases = [now]
    for name, changes in sides.items():
        cases.append(_case(name, options, changed(now.setup, changes, now.task)))
    for case in cases:
        check_specs(case.protocol, [case.spec])
    return cases, words


def _today(options: WhatIf) -> tuple[_Case, list[str]]:
    """The side without changes, and sentences about it."""
    words = list[str]()
    setup = Setup(
        policy=options.policy or USUAL,
        task_options=dict(options.task_options),
        overrides=options.settings,
    )
    case = _case(NOW, options, setup, words)
    rule = getattr(getattr(case.task.world, "site", None), "rule", "")
    if rule and not options.policy:
        setup = replace(setup, policy=rule)
        case = replace(case, setup=setup, spec=heuristic_spec(rule))
    return case, words


def _case(name: str, options: WhatIf, setup: Setup, words: list[str] | None = None) -> _Case:
    runs = []
    if not is_heuristic(setup.policy):
        runs = list(load_runs(find_runs([setup.policy]), options.decode))
        if len(runs) != 1:
            raise InputError(f"{setup.policy} names {len(runs):,} runs; name one policy")
    task, jobs, remarks = task_of_log(
        options.file,
        setup.overrides,
        setup.task_options,
        guess=False,
        runs=runs,
        seed=options.seed,
    )
    task = at_changed_site(task, setup)
    workload: Any = task.workload
    jobs = workload.recorded
    if words is not None:
        words += remarks
    spec = spec_of(runs[0], options.decode) if runs else heuristic_spec(setup.policy)
    return _Case(name, setup, task, jobs, spec)


@dataclass(frozen=True, eq=False)
class _Played:
    """A side after it was played.

    Attributes:
        name: of the side.
        schedule: of today's jobs, as far as they can run on this side.
        rows: of the log, for each job of the schedule's jobset, int64 ``(num_jobs,)``.
    """

    name: str
    schedule: Schedule
    rows: NDArray[np.int64]

    @property
    def ended(self) -> NDArray[np.int64]:
        """Rows of the jobs that came to their ends, int64 ``(num_ended,)``."""
        return self.rows[self.schedule.job[self.schedule.finished]]

    @property
    def work(self) -> NDArray[np.float64]:
        """Processor seconds of each job of the jobset, float64 ``(num_jobs,)``."""
        schedule, work = self.schedule, np.zeros(self.rows.size)
        work[schedule.job] = schedule.demand[:, 0].astype(np.float64) * schedule.duration
        return work

    def places(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each job stands among some rows, -1 where it does not, int64 ``(num_jobs,)``."""
        sorter = np.argsort(order)
        place = np.minimum(np.searchsorted(order[sorter], self.rows), order.size - 1)
        return np.where(order[sorter][place] == self.rows, sorter[place], -1)


def _play_all(cases: Sequence[_Case], work: Work) -> list[_Played]:
    """Plays each side with those of today's jobs, the first side's, that can run on it.

    Raises:
        InputError: if there is none.
    """
    shared = _rows_of(cases[0])
    return list(work.measure(_play, shared, cases, unit="side", name=lambda case, _: case.name))


def _play(today: NDArray[np.int64], case: _Case) -> _Played:
    (jobset,) = case.task.jobsets(Split.HELD_OUT, [0])
    rows, task = _rows_of(case), case.task
    kept = np.flatnonzero(np.isin(rows, today))
    if not kept.size:
        raise InputError(f"none of today's jobs can run {case.name}")
    schedule = evaluate(case.policy, [jobset.select(kept)], task.world, run_seed=task.seed)
    return _Played(case.name, schedule, rows[kept])


def _rows_of(case: _Case) -> NDArray[np.int64]:
    """Where the jobs of a side stand in the log as it was read."""
    details: Any = case.jobs.details
    if "row" in details:
        return np.asarray(details["row"])
    workload: Any = case.task.workload
    read: RecordedJobs = workload.read()
    columns = [read.resources.index(name) for name in case.jobs.resources]
    world: Any = case.task.world
    return np.flatnonzero((read.demand[:, columns] <= np.asarray(world.capacity)).all(axis=1))


def _effects(now: _Case, played: Sequence[_Played]) -> tuple[RecordedJobs, Effects]:
    """The jobs that end on all sides, and what became of them.

    Raises:
        InputError: if there is none.
    """
    every = reduce(np.intersect1d, [one.ended for one in played])
    if not every.size:
        raise InputError("no job ends on all sides, so there is nothing to compare")
    rows = _rows_of(now)
    inside = np.isin(rows, every)
    jobs, order = now.jobs.select(inside), rows[inside]
    first = played[0]
    place, arrival = first.places(order)[first.schedule.job], np.empty(order.size, np.int64)
    arrival[place[place >= 0]] = first.schedule.arrival[place >= 0]
    periods = Periods.of(arrival, int(first.schedule.window[0]))
    world: Any = now.task.world
    site = getattr(world, "site", None)
    partitions = {}
    if site is not None:
        place = now.jobs.attributes["partition"]
        partitions = {name: place == k for k, name in enumerate(site.partition_names)}
    losses = [_lost(first, one, partitions) for one in played]
    sides = []
    for one, lost in zip(played, losses, strict=True):
        edges = periods.edges_in(int(one.schedule.window[0]))
        side = Side.of(one.name, one.schedule, one.places(order), edges)
        sides.append(replace(side, of_work=1 - lost.of_work))
    partitions = {name: one[inside] for name, one in partitions.items() if one[inside].any()}
    capacity = np.asarray(world.capacity)
    return jobs, Effects(sides[0], sides[1], losses[1], sides[2:], periods, capacity, partitions)


def _lost(now: _Played, then: _Played, partitions: Mapping[str, NDArray[np.bool_]]) -> Lost:
    """Today's work that is not done on another side."""
    work = np.full(now.rows.size, np.nan)
    work[then.places(now.rows)] = then.work
    return Lost.of(now.work, work, partitions)


def _trust(now: _Case, jobs: RecordedJobs, side: Side) -> Trust:
    workload: Any = now.task.workload
    return Trust.of(
        jobs.submit,
        jobs.wait,
        {now.spec.key: side.wait.astype(np.int64)},
        as_it_was=workload.stretch == 1 and not workload.scaled_load,
    )


def _left_out(played: Sequence[_Played], jobs: RecordedJobs) -> list[str]:
    """A sentence where some of today's jobs do not end on all sides, or do not run there."""
    missing = played[0].rows.size - jobs.num_jobs
    if not missing:
        return []
    return [f"{missing:,} of today's jobs are in no table, because they do not end on all sides"]
