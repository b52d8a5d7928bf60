"""What ``metasched replay`` does: plays a whole log under policies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cluster_env.core.schedule import Schedule
from cluster_env.evaluation.intervals import difference_interval
from cluster_env.task import Task
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.commands import logs
from tune_jobs.measuring.policy_specs import heuristic_spec
from tune_jobs.measuring.work import working
from tune_jobs.replaying.effects import Periods, Side, mean_change
from tune_jobs.replaying.fidelity import Trust
from tune_jobs.replaying.outcomes import (
    AS_RECORDED,
    as_recorded,
    beyond_simulation,
    bounded,
    by_partition,
    by_size,
    by_user,
    dropped,
    in_all,
    left_out,
    outcome,
    overlapping_runs,
    overloaded,
    timeline,
)
from tune_jobs.replaying.playing import Replay, choose, play
from tune_jobs.replaying.schedule_pictures import Edges, edges_of, jobs_of, origin_of, pictures_of
from tune_jobs.replaying.stretch import Stretch, stretch_of
from tune_jobs.replaying.trace_report import TODAY
from tune_jobs.tables.columns import SECONDS, SHARE, Column
from tune_jobs.tables.frames import estimate_cells
from tune_jobs.tables.printing import Sheet, as_data
from tune_jobs.tables.report import Picture, Report, tables_of, text_of
from tune_jobs.terminal.progress import Progress

_LIKE_SITES = ("fcfs", "priority")
LINES = "timeline"
"""Name of the picture of use and queue, and of its table."""

_AGAINST = {
    "policy": Column("policy"),
    "mean_wait": Column("change of the mean wait", SECONDS, "wait"),
    "mean_wait_low": Column("from", SECONDS),
    "mean_wait_high": Column("to", SECONDS),
    "bounded_slowdown": Column("change of the bounded slowdown", short="slowdown"),
    "bounded_slowdown_low": Column("from"),
    "bounded_slowdown_high": Column("to"),
    "utilization": Column("change of utilization", SHARE, "util"),
}


def replay_log(options: logs.Replay, progress: Progress) -> Report:
    """Plays a log under policies, and tells what came of it.

    Raises:
        InputError: if the log, the machine or a policy cannot be used; before anything is played.
    """
    chosen = choose(options)
    stretch = stretch_of(chosen.jobs, options.since, options.until)
    heuristics = [spec.key for spec in chosen.specs if not spec.learned]
    # As sites have it: a rule in order of arrival or priority is compared with the record.
    lacks_one = not any(name.startswith(_LIKE_SITES) for name in heuristics)
    beside = [heuristic_spec(TODAY)] if lacks_one and chosen.jobs.wait is not None else []
    with working(options.num_runners, progress) as work:
        replays = play(chosen, work, beside)
    known = {*heuristics, *(spec.key for spec in beside)}
    by_rule = {one.name: one.schedule for one in replays if one.name in known}
    shown = replays[: len(chosen.specs)]
    return _report(chosen.task, chosen.jobs, shown, by_rule, stretch, chosen.remarks)


def _report(
    task: Task,
    jobs: RecordedJobs,
    replays: Sequence[Replay],
    by_rule: Mapping[str, Schedule],
    stretch: Stretch,
    remarks: list[str],
) -> Report:
    """The tables and pictures of replays of a log."""
    first = replays[0].name
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
        remarks += overlapping_runs(schedules, jobs)
    remarks += overloaded(schedules)
    shown = schedules if recorded is None else {AS_RECORDED: recorded, **schedules}
    last = max(int(one.end.max()) for one in shown.values())
    stretch = replace(stretch, end=min(stretch.end, max(last, 1)))
    trust = None if recorded is None else _trust(jobs, by_rule)
    if trust is not None:
        best = min(outcomes, key=lambda name: outcomes[name]["mean_wait"])
        remarks += [trust.sentence, *trust.gained(best, outcomes[best]["mean_wait"])]
    nearest = trust.policy if trust is not None and trust.policy in schedules else first
    sheets = [
        in_all(outcomes, jobs, numbers),
        *_against(schedules, nearest, jobs.num_jobs),
        *(by_partition(shown, jobs, world.site) if world.site is not None else []),
        by_size(schedules),
        *by_user(schedules, jobs),
    ]
    played = {key: jobs_of(one, jobs) for key, one in shown.items()}
    tables, pictures = pictures_of(played, jobs, int(world.capacity[0]), stretch)
    return Report(
        text=text_of(_head(jobs, replays[0].schedule), sheets, remarks),
        sheets=sheets,
        tables={**tables_of(sheets), LINES: partial(_lines_of, shown, edges_of(stretch)), **tables},
        data={
            "jobs": jobs.num_jobs,
            "dropped": dropped(jobs),
            "seconds": {one.name: one.seconds for one in replays},
            "remarks": remarks,
            **({} if trust is None else {"trust": trust.data}),
            **as_data(sheets),
        },
        remarks=remarks,
        pictures={LINES: Picture(LINES, [LINES], {"origin": origin_of(jobs)}), **pictures},
        hint="Next     the same with --out FOLDER keeps schedules and draws them",
        written=f"Wrote {{out}}: schedules, tables, and pictures: {', '.join([LINES, *pictures])}",
    )


def _against(schedules: Mapping[str, Schedule], reference: str, num_jobs: int) -> list[Sheet]:
    """What schedules have more or less than one of them, with 95% intervals over weeks.

    The same jobs are compared, in pairs; schedules that lack jobs of the log are left out.
    """
    whole = {key: one for key, one in schedules.items() if one.job.size == num_jobs}
    if reference not in whole or len(whole) < 2:
        return []
    first = whole[reference]
    arrival = np.empty(num_jobs, np.int64)
    arrival[first.job] = first.arrival
    periods, place = Periods.of(arrival, int(first.window[0])), np.arange(num_jobs)
    sides = {
        key: Side.of(key, one, place, periods.edges_in(int(one.window[0])))
        for key, one in whole.items()
    }
    before, rows = sides.pop(reference), list[dict[str, Any]]()
    for key, side in sides.items():
        waits = mean_change(before.wait, side.wait, periods)
        slowdowns = mean_change(before.slowdown, side.slowdown, periods)
        row = {"policy": key, **estimate_cells("mean_wait", waits)}
        row |= estimate_cells("bounded_slowdown", slowdowns)
        row["utilization"] = side.use.mean - before.use.mean
        if periods.enough:
            found = difference_interval(side.use, before.use)
            row |= {"utilization_low": found.low, "utilization_high": found.high}
        rows.append(row)
    shown = tuple(one for one in _AGAINST if periods.enough or not one.endswith(("_low", "_high")))
    note = "policy minus reference, of the same jobs"
    if periods.enough:
        note += f", with 95% intervals over {periods.num} {periods.unit}"
    return [Sheet("against", f"Against {reference}", shown, rows, note, _AGAINST)]


def _trust(jobs: RecordedJobs, by_rule: Mapping[str, Schedule]) -> Trust | None:
    """How near heuristics come to the record; None where jobs do not start under one of them."""
    waits = {}
    for name, schedule in by_rule.items():
        if schedule.job.size < jobs.num_jobs or (schedule.start < 0).any():
            return None
        waits[name] = np.empty(jobs.num_jobs, np.int64)
        waits[name][schedule.job] = schedule.start - schedule.arrival
    return Trust.of(jobs.submit, jobs.wait, waits, as_it_was=True)


def _lines_of(schedules: Mapping[str, Schedule], edges: Edges) -> pd.DataFrame:
    """Use and queue over time, the same stretches for all policies."""
    frames = []
    for policy, schedule in schedules.items():
        times = {"begin_s": edges[:-1], "end_s": edges[1:], "window_s": int(schedule.window[0])}
        frames.append(pd.DataFrame({"policy": policy, **times, **timeline(schedule, edges)}))
    return pd.concat(frames)


def _head(jobs: RecordedJobs, schedule: Schedule) -> str:
    machine = ", ".join(
        f"{units:,} {name}" for name, units in zip(jobs.resources, schedule.capacity, strict=True)
    )
    return f"{jobs.path}: {jobs.num_jobs:,} jobs on {machine}{left_out(jobs)}"
