"""Options of what is done with job logs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import click

from tune_jobs.commands.flags import (
    Argument,
    Flag,
    Moments,
    Seed,
    Several,
)
from tune_jobs.commands.shared import (
    DecodeLog,
    Force,
    Log,
    PoliciesSeed,
    Progress,
    Runners,
    Tables,
    World,
)
from tune_jobs.terminal.options import OutPath


@dataclass(frozen=True, kw_only=True)
class Trace(Log):
    """A log to describe."""

    out: Tables = None


@dataclass(frozen=True, kw_only=True)
class Replay(Runners, Log):
    """A log, what plays it, and what pictures over time show."""

    policies: Annotated[
        Sequence[str],
        Flag(
            "Heuristics, run directories and globs of them; can be repeated. By default the "
            "world's baselines, for --starts and --calibrate the rule of --site.",
            metavar="NAME,...",
        ),
    ] = field(default=(), kw_only=False)
    calibrate: Annotated[
        bool,
        Flag(
            "Compare the waits under the site's rule, or each of several, with the recorded ones, "
            "and judge whether the log can be replayed. --set task.world.priority.age=500 sets a "
            "weight of the site."
        ),
    ] = False
    starts: Annotated[
        bool,
        Flag(
            "Measure how far start times can be foreseen under each policy, at moments of the "
            "later half of the log: coverage and width of intervals, and errors beside those of "
            "the users' estimates, by size."
        ),
    ] = False
    num_instants: Annotated[
        Moments,
        Flag(
            "With --starts: moments of the log, at least 10; those of the earlier half correct the "
            "intervals.",
            typed=False,
        ),
    ] = 1000
    since: Annotated[
        str,
        Flag(
            "Begin of what pictures over time show: a date such as 2024-03-01 (UTC), or a time "
            "such as 5d since the first submission. By default all, of a Gantt chart the fullest "
            "week.",
            "from",
            metavar="TIME",
        ),
    ] = ""
    until: Annotated[str, Flag("End of what they show, likewise.", "to", metavar="TIME")] = ""
    seed: PoliciesSeed = 0
    decode: DecodeLog = "argmax"
    out: Tables = None
    progress: Progress = False


@dataclass(frozen=True, kw_only=True)
class WhatIf(Runners, Log):
    """A log, today's policy, and what is changed."""

    change: Annotated[
        Sequence[str],
        Flag(
            "What is changed: policy, processors, memory, gpus, load, backfilling, max-wait, "
            "run-times, kill-at-estimate, or a setting such as task.world.priority.age. With "
            "--site also partition.NAME.nodes, partition.NAME.max-time, qos.NAME.jobs-per-user and "
            "other options of partitions and limits, and outage=BEGIN+LENGTH:NODES; "
            "task.workload.too_long=cap cuts jobs that may not last as long as they ask for, which "
            "are else left out. Amounts are "
            "numbers, or changes to today's: +64, -64, +10%. Several changes are made together.",
            metavar="KEY=VALUE",
        ),
    ] = field(default=(), kw_only=False)
    policy: Annotated[
        str | None,
        Flag(
            "Today's policy: a heuristic or a run directory. By default fcfs:easy, or that of "
            "--site.",
            metavar="NAME",
        ),
    ] = None
    each: Annotated[bool, Flag("Show each of several changes alone, too.")] = False
    seed: PoliciesSeed = 0
    decode: DecodeLog = "argmax"
    out: Tables = None
    progress: Progress = False


@dataclass(frozen=True, kw_only=True)
class SiteReport(Log):
    """A log, and what its site is told about it."""

    policies: Annotated[
        Sequence[str],
        Flag(
            "Policies as for replay, with --max-wait x2 by default.",
            metavar="NAME,...",
        ),
    ] = field(default=(), kw_only=False)
    change: Annotated[
        Sequence[str],
        Flag(
            "Changes as for whatif, each alone; by default of processors, load and max-wait.",
            metavar="KEY=VALUE",
        ),
    ] = ()
    out: Annotated[
        str | Path,
        Flag("Folder for report.html and its tables (CSV).", type=OutPath(file_okay=False)),
    ] = Path("report")
    progress: Progress = False


@dataclass(frozen=True, kw_only=True)
class _NewFile:
    """The file of a log that is written."""

    path: Annotated[
        str | Path,
        Argument(
            "The file; a log in SWF if its name ends in .swf, else CSV.",
            "FILE",
            OutPath(dir_okay=False),
        ),
    ] = field(kw_only=False)


@dataclass(frozen=True, kw_only=True)
class Generate(World, _NewFile):
    """Jobs of a generator, as a log."""

    on: Annotated[
        str | Path,
        Flag(
            "World and jobs; by default Lublin's jobs on 256 processors.",
            "config",
            metavar="PRESET|FILE",
            type=click.STRING,
        ),
    ] = field(default="hpc-order", kw_only=False)
    num_jobs: Annotated[Several, Flag("Number of jobs.")] = 5000
    seed: Annotated[Seed, Flag("Seed of the jobs.")] = 0
    force: Force = False
