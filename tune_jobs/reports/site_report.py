"""What ``metasched report`` does: calls the other commands about a log, and puts them on a page."""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import pandas as pd

from cluster_env.core.durations import duration
from cluster_env.core.errors import InputError
from tune_jobs.commands.flags import Argument, PythonOnly, declared
from tune_jobs.commands.logs import Replay, SiteReport, Trace, WhatIf
from tune_jobs.commands.shared import part_of, texts_of
from tune_jobs.figures.pictures import with_pictures
from tune_jobs.replaying.calibration import calibrate_log
from tune_jobs.replaying.outcomes import AS_RECORDED
from tune_jobs.replaying.playing import choose
from tune_jobs.replaying.replay_report import replay_log
from tune_jobs.replaying.start_report import foresee_starts
from tune_jobs.replaying.trace_report import describe_log
from tune_jobs.replaying.what_if import NOT_KNOWN, check_changes, compare_changes
from tune_jobs.reports.page import PAGE, Section, page
from tune_jobs.tables.columns import SECONDS, SHARE, Column, shown
from tune_jobs.tables.printing import Sheet, folded, title_case
from tune_jobs.tables.report import Report, tables_of
from tune_jobs.terminal.progress import Progress

MAX_WAIT, DEFAULT_BOUND, NO_BOUND = "max-wait", "x2", "0"
INSTANTS = 40
POLICIES = ("fcfs:easy", "sjf:easy", "saf:easy", "wspt:easy", "wspt:skip", "hpc-order")
LIKE_SITES = ("fcfs:easy", "priority:easy")
CHANGES = ("processors=+10%", "processors=-10%", "load=+10%", "max-wait=0")
_IN_SHORT = ("jobs", "time from", "utilization", "mean wait", "longest wait")

_OF_CHANGE = {
    "change": Column("change"),
    "mean_wait": Column("mean wait", SECONDS),
    "change_of_wait": Column("its change", SECONDS),
    "change_of_wait_low": Column("from", SECONDS),
    "change_of_wait_high": Column("to", SECONDS),
    "longest_wait": Column("longest wait", SECONDS),
    "bounded_slowdown": Column("slowdown"),
    "utilization": Column("utilization", SHARE),
}

SECTIONS = (
    Section(
        "log",
        "What the log is, and what is wrong with it",
        "Rows that are left out are in no other number. Estimates are what users ask for: far too "
        "long ones make backfilling and promises of starts worse.",
        ("trace",),
        ("trace/summary", "trace/dropped", "trace/noticed", "trace/times", "trace/estimates"),
    ),
    Section(
        "use",
        "How busy the machine is",
        "Load is the work that was submitted, of what the machine can do; where it is above 100% "
        "for weeks, no policy keeps queues short.",
        ("trace",),
        ("trace/by-week", "trace/by-partition", "trace/by-size"),
        {"trace/trace": "Weeks, times, sizes, estimates and hours of the log"},
    ),
    Section(
        "waits",
        "Who waits, and when",
        "Waits of single users are single stories: a few large jobs decide many of them.",
        ("trace",),
        ("trace/by-user", "trace/by-group", "trace/by-queue"),
        {
            "trace/waits": "Mean wait by size of a job and hour of its submission",
            "trace/waiting-by-user": "Waiting jobs over time, by user",
            "trace/waiting-by-queue": "Waiting jobs over time, by queue",
        },
    ),
    Section(
        "policies",
        "What other policies would have done",
        "All policies have the same bound on waits. A slowdown is a job's time until its end over "
        "its run time. Look at the longest wait and at wide jobs, too: they pay for short means.",
        ("replay",),
        ("replay/replay", "replay/against", "replay/by-partition", "replay/by-size"),
        {
            "replay/timeline": "Utilization and waiting jobs over time",
            "replay/changes": "Whose waits change, by size and requested time",
        },
    ),
    Section(
        "starts",
        "How well start times can be promised",
        "Starts are foreseen with intervals, from what was known at moments of the log. An "
        "interval of 90% should hold nine times of ten; a wide one is of little use.",
        ("starts",),
        ("starts/starts",),
    ),
    Section(
        "changes",
        "What more nodes or other limits would do",
        "Each change alone, compared with the simulation of today; a change whose interval "
        "includes 0 may be chance.",
        ("changes",),
        ("changes/changes",),
    ),
    Section(
        "trust",
        "How far all of this can be trusted",
        "The log is replayed under rules that sites have, without a bound on waits. The nearer "
        "these waits come to recorded ones, the more the sections above deserve belief.",
        ("calibration",),
        (
            *("calibration/fidelity", "calibration/fidelity-by-partition"),
            *("calibration/fidelity-by-week", "calibration/fidelity-by-class"),
        ),
        {"calibration/calibration": "Simulated waits against recorded ones"},
    ),
)


@dataclass(frozen=True)
class Part:
    """What one command found, and the lines that find it again."""

    report: Report
    commands: Sequence[str]


def report_site(options: SiteReport, progress: Progress) -> Report:
    """Measures all parts, and lays them out; nothing is written.

    Tables of the report are named by their part: ``replay/by-size``.

    Raises:
        InputError: if the log, the machine, a policy or a change cannot be used.
    """
    parts = dict(_parts(options, progress))
    reports = {name: with_pictures(part.report) for name, part in parts.items()}
    short = _in_short(reports)
    tables = {
        f"{name}/{table}": make
        for name, report in reports.items()
        for table, make in report.tables.items()
    }
    sentences = [("short", one) for one in short]
    sentences += [(name, one) for name, report in reports.items() for one in report.remarks]
    tables["sentences"] = lambda: pd.DataFrame(sentences, columns=["part", "sentence"])
    command = command_of("report", replace(options, out=SiteReport.out))
    commands = {name: part.commands for name, part in parts.items()}
    html = page(str(options.path), short, SECTIONS, reports, commands, command)
    head = click.style(f"{options.path}: report of a site", bold=True)
    return Report(
        text="\n\n".join([head, *("\n".join(folded([one])) for one in short)]),
        tables=tables,
        remarks=short,
        files={PAGE: html},
        written=f"Wrote {{out}}/{PAGE}, and the {len(tables)} tables that its numbers are from",
    )


def _parts(options: SiteReport, progress: Progress) -> Iterator[tuple[str, Part]]:
    """Each command with its options; all input is checked before anything is played."""
    free = {name: one for name, one in options.task_options.items() if name != MAX_WAIT}
    policies = options.policies or POLICIES
    replay = part_of(options, Replay, policies=policies, out=None, task_options=free)
    choose(replay)
    what_if = part_of(options, WhatIf, out=None, task_options=free)
    for one in options.change:
        check_changes(replace(what_if, change=(one,)))
    said = {**free, MAX_WAIT: options.task_options.get(MAX_WAIT, DEFAULT_BOUND)}
    # One bound for all that follows, also where a change would move a multiple of waits.
    world: Any = choose(replace(replay, task_options=said)).task.world
    bound = {**free, MAX_WAIT: f"{world.max_wait}s" if world.max_wait else NO_BOUND}
    trace = part_of(options, Trace, out=None, task_options=free)
    yield "trace", Part(describe_log(trace), [command_of("trace", trace)])
    bounded = replace(replay, task_options=bound)
    yield "replay", Part(replay_log(bounded, progress), [command_of("replay", bounded)])
    changes = [
        replace(what_if, change=(one,), task_options=bound) for one in options.change or CHANGES
    ]
    lines = [command_of("whatif", one) for one in changes]
    found = [_found(compare_changes, one, progress) for one in changes]
    yield "changes", Part(_changes(changes, found), lines)
    starts = replace(bounded, policies=(), starts=True, num_instants=INSTANTS)
    yield "starts", _part("replay", foresee_starts, starts, progress)
    again = replace(replay, policies=() if world.site else LIKE_SITES, calibrate=True)
    yield "calibration", _part("replay", calibrate_log, again, progress)


def _part(
    name: str, find: Callable[[Any, Progress], Report], options: Any, progress: Progress
) -> Part:
    return Part(_found(find, options, progress), [command_of(name, options)])


def _found(find: Callable[[Any, Progress], Report], options: Any, progress: Progress) -> Report:
    """What a command finds; where the log does not allow it, the reason in place of tables."""
    try:
        return find(options, progress)
    except InputError as error:
        return Report(text="", tables={}, remarks=[f"Not measured: {error}."])


def _changes(changes: Sequence[WhatIf], found: Sequence[Report]) -> Report:
    """A row for today, and for each change."""
    rows, remarks = list[Mapping[str, Any]](), [NOT_KNOWN]
    for asked, report in zip(changes, found, strict=True):
        (name,) = asked.change
        if "now-and-then" not in report:
            remarks += [f"{name}: {one}" for one in report.remarks]
            continue
        sides = {str(row["side"]): row for row in report.sheets[0].rows}
        kept = ("mean_wait", "longest_wait", "bounded_slowdown", "utilization")
        if not rows:
            rows.append({"change": "today", **{one: sides["now"][one] for one in kept}})
        row = {"change": name, **{one: sides["then"][one] for one in kept}}
        for side, ending in (("change", ""), ("from", "_low"), ("to", "_high")):
            if side in sides:
                row[f"change_of_wait{ending}"] = sides[side]["mean_wait"]
        rows.append(row)
    note = next((one.sheets[0].note for one in found if one.sheets), "")
    sheet = Sheet("changes", "Each change alone", tuple(_OF_CHANGE), rows, note, _OF_CHANGE)
    return Report(text="", tables=tables_of([sheet]), sheets=[sheet], remarks=remarks)


def _in_short(reports: Mapping[str, Report]) -> list[str]:
    """The answers in a few sentences."""
    facts = "; ".join(
        f"{row['fact']}: {row['value']}"
        for row in reports["trace"].sheets[0].rows
        if str(row["fact"]).startswith(_IN_SHORT)
    )
    replayed = reports["replay"]
    sheets = {sheet.name: sheet for sheet in replayed.sheets}
    best = next(row for row in sheets["replay"].rows if row["policy"] != AS_RECORDED)
    sentences = [
        f"{title_case(facts)}.",
        f"Of the policies, {best['policy']} has the lowest mean slowdown, "
        f"{shown(best['bounded_slowdown'])}, and a mean wait of {duration(best['mean_wait'])}.",
    ]
    pairs = sheets.get("against", Sheet("", "", (), []))
    for row in (row for row in pairs.rows if row["policy"] == best["policy"]):
        sentences += _moved(f"{pairs.title}, its", row, "mean_wait")
    for sheet in reports["changes"].sheets:
        for row in sheet.rows[1:2]:
            sentences += _moved(f"With {row['change']}, the", row, "change_of_wait")
    return [*sentences, *reports["calibration"].remarks[-1:]]


def _moved(begin: str, row: Mapping[str, Any], name: str) -> list[str]:
    """A sentence on how a mean wait changes; none without an interval."""
    change, low, high = (row.get(f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    if math.isnan(low):
        return []
    chance = ", which may be chance" if low <= 0 <= high else ""
    ends = f"95%: {duration(low)} to {duration(high)}"
    return [f"{begin} mean wait changes by {duration(change)} [{ends}]{chance}."]


def command_of(name: str, options: Any) -> str:
    """The command line of some options, as a shell takes it."""
    words = ["metasched", name]
    for field in declared(type(options)):
        said, value = field.declaration, getattr(options, field.name)
        if isinstance(said, Argument):
            words.append(str(value))
        elif not isinstance(said, PythonOnly) and value != field.default:
            flag = f"--{field.option}"
            texts = [str(value)] if isinstance(value, str | int | float) else texts_of(value)
            if (said.metavar or "").endswith(",..."):
                texts = [",".join(texts)]
            words += [flag] if value is True else [word for text in texts for word in (flag, text)]
    words += [word for key, one in options.task_options.items() for word in (f"--{key}", str(one))]
    return shlex.join(words)
