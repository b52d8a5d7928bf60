"""What ``metasched trace`` does: describes a log."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.task import Task
from cluster_env.workloads.recorded import NOTHING, RecordedJobs
from cluster_env.workloads.site_of_log import site_text
from cluster_env.worlds import get_heuristic
from tune_jobs.commands.shared import Log
from tune_jobs.replaying import description
from tune_jobs.replaying.choices import task_of_log
from tune_jobs.replaying.outcomes import AS_RECORDED
from tune_jobs.replaying.schedule_pictures import jobs_started, pictures_of
from tune_jobs.replaying.site_sheets import partitions
from tune_jobs.replaying.stretch import Stretch
from tune_jobs.tables.columns import shown
from tune_jobs.tables.frames import frame_of, plain
from tune_jobs.tables.printing import Sheet, aligned, as_data, format_sheet
from tune_jobs.tables.report import KEEP_HINT, Picture, Report, kept, tables_of

SITE_FILE = "site.yaml"
"""A first description of the site, from the log."""

FIGURE = "trace"
"""Name of the picture and of its table."""

TODAY = "fcfs:easy"
"""What plays a log that does not say how long its jobs waited."""


def describe_log(options: Log) -> Report:
    """Describes a log.

    Raises:
        InputError: if the file is no log, or no job of it fits the machine.
    """
    path = options.file
    task, jobs, remarks = task_of_log(path, options.settings, options.task_options, guess=True)
    capacity: tuple[int, ...] = getattr(task.world, "capacity", ())
    jobs, played = _played(task, jobs)
    facts = description.facts(jobs, capacity, played)
    groups = (description.by_name(jobs, name, played) for name in ("user", "group", "queue"))
    site: Any = getattr(task.world, "site", None)
    sheets = [
        description.dropped(jobs),
        description.noticed(jobs),
        *([] if site is None else [partitions(jobs, site, played)]),
        *description.spread(jobs, played),
        description.by_size(jobs, capacity),
        description.estimates(jobs),
        description.by_week(jobs, capacity, played),
        *(sheet for sheet in groups if sheet is not None and len(sheet.rows) > 1),
    ]
    known: dict[str, Any] = {name: value for name, (value, _) in facts.items()}
    sheets.insert(0, description.summary(facts))
    points = partial(frame_of, description.points(jobs, capacity, played))
    end = int((played.start + jobs.run).max() - jobs.submit[0])
    name = AS_RECORDED if jobs.wait is not None else TODAY
    schedules = {name: jobs_started(jobs, played)}
    tables, pictures = pictures_of(schedules, jobs, capacity[0], Stretch(0, end))
    return Report(
        text=_text(path, facts, sheets[1:], remarks),
        sheets=sheets,
        tables={**tables_of(sheets), FIGURE: points, **tables},
        data={"facts": plain([known])[0], "remarks": remarks, **as_data(sheets)},
        remarks=remarks,
        files={SITE_FILE: site_text(jobs)},
        pictures={FIGURE: Picture(FIGURE, [FIGURE]), **pictures},
        hint=KEEP_HINT,
        written=f"Wrote {{out}}/{SITE_FILE}: partitions as the log shows them. Correct it and "
        f"replay\n         the log on it: metasched replay {path} --site {{out}}/{SITE_FILE}\n\n"
        f"{kept(FIGURE)};\nalso {', '.join(pictures)}",
    )


def _played(task: Task, jobs: RecordedJobs) -> tuple[RecordedJobs, description.Played]:
    """When the jobs started: as the log says it, or as today's usual rule would start them.

    Jobs that this rule never starts, because their reservation is over, are left out.
    """
    if jobs.wait is not None:
        return jobs, description.Played(jobs.start, jobs.wait, AS_RECORDED)
    jobset = task.jobsets(Split.HELD_OUT, [0])
    schedule = evaluate(get_heuristic(TODAY, task.world), jobset, task.world)
    start, wait = np.full((2, jobs.num_jobs), NOTHING, np.int64)
    start[schedule.job], wait[schedule.job] = schedule.start, schedule.start - schedule.arrival
    never, begin = start == NOTHING, int(jobs.submit[0])
    if never.all():
        raise InputError(f"no job of {jobs.path} ever starts under {TODAY}")
    jobs = jobs.leaving_out(never, f"never starts under {TODAY}")
    return jobs, description.Played(begin + start[~never], wait[~never], f"under {TODAY}")


def _text(
    path: Path,
    facts: Mapping[str, tuple[object, str]],
    sheets: Sequence[Sheet],
    remarks: Sequence[str],
) -> str:
    lines = aligned([[name, shown(value, unit)] for name, (value, unit) in facts.items()], names=2)
    parts = [
        "\n".join([click.style(str(path), bold=True), *lines, *(f"  ({one})" for one in remarks)])
    ]
    if not sheets[0].rows:
        parts.append("All jobs of the file can be scheduled; none was left out.")
    parts += [format_sheet(sheet) for sheet in sheets if sheet.rows]
    return "\n\n".join(parts)
