"""Job logs: described, replayed, changed, generated; and the starts of jobs that wait now."""

from pathlib import Path

import pandas as pd

from metasched.arguments import new_file
from metasched.functions import shown, takes_with_world
from tune_jobs.commands.logs import Generate, Replay, SiteReport, Trace, WhatIf
from tune_jobs.commands.site import Starts
from tune_jobs.figures.pictures import with_pictures
from tune_jobs.replaying.calibration import calibrate_log
from tune_jobs.replaying.generating import generate_log
from tune_jobs.replaying.replay_report import replay_log
from tune_jobs.replaying.start_report import foresee_starts
from tune_jobs.replaying.trace_report import describe_log
from tune_jobs.replaying.what_if import compare_changes
from tune_jobs.reports.site_report import report_site
from tune_jobs.site.starting import report_starts
from tune_jobs.tables.report import Report


@takes_with_world(Trace)
def trace(options: Trace) -> Report:
    """Describes a job log, as ``metasched trace`` does.

    >>> trace("example")["by-week"]

    Raises:
        InputError: if the log or an option cannot be used.
    """
    return _kept(describe_log(options), options.out)


@takes_with_world(Replay)
def replay(options: Replay) -> Report:
    """Plays a whole job log under policies, as ``metasched replay`` does.

    >>> report = replay("example", ["fcfs:easy", "hpc-order"], max_wait="x2")
    >>> report["by-user"], report.figure("timeline")

    Raises:
        InputError: if the log, the machine or a policy cannot be used; before anything is played.
    """
    if options.calibrate:
        found = calibrate_log(options, shown(options.progress))
    elif options.starts:
        found = foresee_starts(options, shown(options.progress))
    else:
        found = replay_log(options, shown(options.progress))
    return _kept(found, options.out)


@takes_with_world(WhatIf)
def whatif(options: WhatIf) -> Report:
    """Replays a log as today and after changes, as ``metasched whatif`` does.

    >>> whatif("example", ["policy=sjf:easy", "processors=+10%"])["now-and-then"]

    Other `changes` hold on both sides.

    Raises:
        InputError: if the log, a policy or a change cannot be used; before anything is played.
    """
    return _kept(compare_changes(options, shown(options.progress)), options.out)


@takes_with_world(SiteReport)
def report(options: SiteReport) -> Report:
    """Writes a page about a job log, as ``metasched report`` does.

    >>> report("example", out="site")["replay/against"]

    Tables are named by the function that found them: ``trace/by-week``.

    Raises:
        InputError: if the log, the machine, a policy or a change cannot be used.
    """
    found = report_site(options, shown(options.progress))
    found.write(options.out)
    return found


@takes_with_world(Generate)
def generate(options: Generate) -> pd.DataFrame:
    """Writes generated jobs as a log, as ``metasched generate`` does.

    Returns:
        The jobs, one a row.

    Raises:
        InputError: if the world has no logs in seconds, or the file cannot be written.
    """
    new_file(options.path, options.force)
    return generate_log(options)["jobs"]


@takes_with_world(Starts)
def starts(options: Starts) -> Report:
    """Tells when each job that waits at a live Slurm will start, as ``shadow --starts`` does.

    Raises:
        InputError: if the log, the policy or the record cannot be used.
        Failure: if the site does not answer.
    """
    return report_starts(options)


def _kept(found: Report, out: str | Path | None) -> Report:
    """The report with its pictures, written to a folder if one is given."""
    found = with_pictures(found)
    if out is not None:
        found.write(out)
    return found
