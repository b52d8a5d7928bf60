"""What ``metasched trace`` does: describes a log."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.evaluation import evaluate
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.site_of_log import site_text
from cluster_env.worlds import get_heuristic
from tune_jobs.replaying import description
from tune_jobs.replaying.choices import LogOptions, task_of_log
from tune_jobs.replaying.site_sheets import partitions
from tune_jobs.tables.columns import shown
from tune_jobs.tables.frames import plain, write_table
from tune_jobs.tables.printing import Sheet, aligned, as_data, format_sheet, write_sheets
from tune_jobs.terminal.output import print_json, silent

SITE_FILE = "site.yaml"
"""A first description of the site, from the log."""

TODAY = "fcfs:easy"
"""What plays a log that does not say how long its jobs waited."""


def report_trace(
    options: LogOptions, *, as_json: bool, out: Path | None, draw: Callable[[Path, Path], None]
) -> None:
    """Describes a log; the picture is drawn from its table.

    Raises:
        InputError: if the file is no log, or no job of it fits the machine.
    """
    task, jobs, remarks = task_of_log(
        options.path, options.changes, options.task_options, guess=True
    )
    capacity: tuple[int, ...] = getattr(task.world, "capacity", ())
    played = _played(task, jobs)
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
    say = silent if as_json else click.echo
    if as_json:
        known: dict[str, Any] = {name: value for name, (value, _) in facts.items()}
        print_json({"facts": plain([known])[0], "remarks": remarks, **as_data(sheets)})
    say(_text(options.path, facts, sheets, remarks))
    if out is not None:
        write_sheets(out, sheets)
        write_table(out / "trace.csv", description.points(jobs, capacity, played))
        (out / SITE_FILE).write_text(site_text(jobs))
        say(f"\nWrote {out / SITE_FILE}: partitions as the log shows them. Correct it and replay")
        say(f"         the log on it: metasched replay {options.path} --site {out / SITE_FILE}")
    draw_or_say(out, "trace", draw, say)


def draw_or_say(
    out: Path | None, name: str, draw: Callable[[Path, Path], None], say: Callable[[str], None]
) -> None:
    """Draws the picture of a table in a folder, or says how to get it."""
    if out is None:
        say("\nNext     the same with --out FOLDER keeps all tables and draws them")
        return
    table, image = out / f"{name}.csv", out / f"{name}.png"
    draw(table, image)
    say(f"\nWrote {image}, drawn from {table}, and the tables beside it")


def _played(task: Task, jobs: RecordedJobs) -> description.Played:
    """When the jobs started: as the log says it, or as today's usual rule would start them."""
    if jobs.wait is not None:
        return description.Played(jobs.submit + jobs.wait, "as recorded")
    jobset = task.jobsets(Split.HELD_OUT, [0])
    schedule = evaluate(get_heuristic(TODAY, task.world), jobset, task.world)
    start = np.empty(jobs.num_jobs, np.int64)
    start[schedule.job] = schedule.start.astype(np.int64) + int(jobs.submit[0])
    return description.Played(start, f"under {TODAY}")


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
    parts += [format_sheet(sheet, description.MOST_ROWS) for sheet in sheets if sheet.rows]
    return "\n\n".join(parts)
