"""What ``metasched replay --calibrate`` does: replays a log as the site says it schedules."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation.metrics import size_class
from cluster_env.task import Task
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds import get_heuristic
from tune_jobs.commands.logs import Replay
from tune_jobs.measuring.work import Work, working
from tune_jobs.replaying import fidelity as near
from tune_jobs.replaying.description import WEEK_S, week_names
from tune_jobs.replaying.playing import Chosen, choose, play, play_jobs
from tune_jobs.tables.frames import frame_of
from tune_jobs.tables.printing import as_data, title_case
from tune_jobs.tables.report import KEEP_HINT, Picture, Report, kept, tables_of, text_of
from tune_jobs.terminal.progress import Progress

FIGURE = "calibration"
"""Name of the picture and of its table."""

USUAL = "priority:conservative"
"""What Slurm does with multifactor priorities and backfilling: nobody delays who is before him."""

AT_SITE = (
    "Jobs run on the nodes of the site's description, in its partitions, under its limits and "
    "calendar. Where recorded waits differ, the description lacks something."
)

UNKNOWN = (
    "The simulator counts processors, memory and GPUs, not nodes. It does not simulate "
    "limits of users and accounts, QOS, reservations or nodes that were down; where these "
    "delayed jobs, recorded waits are longer than simulated ones."
)


def calibrate_log(options: Replay, progress: Progress) -> Report:
    """Plays the log under the rules of a site, and tells how near the waits come.

    Raises:
        InputError: if the log cannot be used or records no waits, or a policy is unknown; before
            anything is played.
    """
    chosen = choose(options, USUAL)
    task, jobs, path = chosen.task, chosen.jobs, options.file
    described: Any = getattr(task.world, "site", None)
    for spec in (spec for spec in chosen.specs if spec.learned):
        raise InputError(f"--calibrate compares heuristics with a site, and {spec.key} is none")
    if jobs.wait is None:
        raise InputError(
            f"{path} does not record the wait of every job, so there is nothing to compare "
            "simulated waits with"
        )
    with working(options.num_runners, progress) as work:
        schedules = {one.name: one.schedule for one in play(chosen, work)}
        ended = _ended(jobs, schedules, described)
        pool = None if described is None else _waits_of_pool(chosen, jobs.select(ended), work)
    words = list[str]()
    waits = _waits_of(jobs, schedules, ended, described)
    sheets = [near.in_all(waits)]
    best = str(sheets[0].rows[0]["policy"])
    answer, why = near.verdict(sheets[0].rows[0], len(waits.simulated))
    sheets += [near.by_week(waits, best), near.by_class(waits, best)]
    if pool is not None:
        gains = near.gains_over(pool, waits)
        words.append(near.gain_sentence(gains))
        if not ended.all():
            words.append(
                f"{(~ended).sum():,} jobs never start at this site under one of the policies, for "
                "instance after their reservation; they are not compared."
            )
        sheets.insert(1, near.by_partition(waits, best))
    more = {} if described is None else {"gain_over_pool": gains}
    sentence = f"Can this log be replayed? {title_case(answer)}: {why}."
    known = UNKNOWN if described is None else AT_SITE
    remarks = [known, *words, *chosen.remarks, sentence]
    return Report(
        text=text_of(_head(path, task, jobs), sheets, remarks),
        sheets=sheets,
        tables=tables_of(sheets) | {FIGURE: partial(frame_of, near.points(waits, best))},
        data={**as_data(sheets), "verdict": answer, "why": why, **more},
        remarks=remarks,
        pictures={FIGURE: Picture(FIGURE, [FIGURE])},
        hint=KEEP_HINT,
        written=kept(FIGURE),
    )


def _waits_of_pool(chosen: Chosen, jobs: RecordedJobs, work: Work) -> near.RecordedWaits:
    """The same jobs on one pool of the site's processors, as they arrive where no site is known."""
    world: Any = chosen.task.world
    workload: Any = chosen.task.workload
    read: RecordedJobs = workload.read()
    counted = dict(zip(world.resources, world.capacity, strict=True))
    units = {name: counted.get(name, 0) for name in ("memory", "gpus") if name in read.resources}
    pool: Any = replace(world, site=None, **{"memory": 0, "gpus": 0, **units})
    same = read.select(np.sort(jobs.details["row"]))
    same = same.that_fit(pool.capacity, "the pool", pool.resources)
    policies = [(spec.key, get_heuristic(spec.key, pool)) for spec in chosen.specs]
    found = play_jobs(policies, pool, same.jobset(), chosen.task.seed, work)
    schedules = {one.name: one.schedule for one in found}
    return _waits_of(same, schedules, _ended(same, schedules, None))


def _ended(jobs: RecordedJobs, schedules: Mapping[str, Schedule], site: Any) -> NDArray[np.bool_]:
    """Which jobs end under all policies, bool ``(num_jobs,)``.

    Raises:
        InputError: if one does not, and no site could be why; or if none does.
    """
    ended = np.ones(jobs.num_jobs, np.bool_)
    for name, schedule in schedules.items():
        ended[schedule.job] &= schedule.finished
        if not ended.any() or (site is None and not ended.all()):
            raise InputError(
                f"under {name} some jobs do not end before max_time; leave max_time unset"
            )
    return ended


def _waits_of(
    jobs: RecordedJobs,
    schedules: Mapping[str, Schedule],
    ended: NDArray[np.bool_],
    site: Any = None,
) -> near.RecordedWaits:
    """The waits of the jobs that end."""
    simulated = {}
    for name, schedule in schedules.items():
        waits = np.empty(jobs.num_jobs, np.int64)
        waits[schedule.job] = schedule.start - schedule.arrival
        simulated[name] = waits[ended]
    first = next(iter(schedules.values()))
    size = np.empty(jobs.num_jobs, np.int64)
    size[first.job] = size_class(first)
    size, jobs = size[ended], jobs.select(ended)
    assert jobs.wait is not None
    queue = jobs.names["queue"][jobs.ids["queue"]].astype(str) if "queue" in jobs.ids else None
    partitions = {}
    if site is not None:
        place = jobs.attributes["partition"]
        partitions = {name: place == k for k, name in enumerate(site.partition_names)}
    num_weeks = int((jobs.submit[-1] - jobs.submit[0]) // WEEK_S) + 1
    begin = jobs.submit[0] + WEEK_S * np.arange(num_weeks)
    return near.RecordedWaits(
        arrival=jobs.submit,
        recorded=jobs.wait,
        simulated=simulated,
        classes=near.classes_of(size, jobs.estimate, None if queue is None else queue.tolist()),
        weeks=week_names(jobs, begin),
        partitions=partitions,
    )


def _head(path: Path, task: Task, jobs: RecordedJobs) -> str:
    world: Any = task.world
    machine = ", ".join(
        f"{units:,} {name}" for name, units in zip(jobs.resources, world.capacity, strict=True)
    )
    lost = sum(one.count for one in jobs.dropped)
    return f"{path}: {jobs.num_jobs:,} jobs on {machine}; {lost:,} rows left out"
