"""Job logs: described, replayed, changed, generated; and the starts of jobs that wait now."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from metasched.arguments import Count, Option, Seed, new_file, shown, task_options, texts_of
from rllib_configs.changes import Changes
from rllib_configs.policy_files import Decode
from tune_jobs.figures.pictures import with_pictures
from tune_jobs.replaying.calibration import CalibrationOptions, calibrate_log
from tune_jobs.replaying.choices import LogOptions
from tune_jobs.replaying.generating import generate_log
from tune_jobs.replaying.replay_report import ReplayOptions, replay_log
from tune_jobs.replaying.start_report import foresee_starts
from tune_jobs.replaying.trace_report import describe_log
from tune_jobs.replaying.what_if import WhatIfOptions, compare_changes
from tune_jobs.site.starting import report_starts
from tune_jobs.tables.report import Report


def trace(
    path: str | Path,
    *,
    changes: Changes = (),
    hash_users: bool = False,
    calibrate: bool = False,
    policies: Sequence[str] = (),
    slurm_conf: str | Path | None = None,
    out: str | Path | None = None,
    **options: Option,
) -> Report:
    """Describes a job log, as ``metasched trace`` does.

    >>> trace("example")["by-week"]

    Args:
        path: a log, or the name of one that ships with metasched.
        changes: settings of the machine or of reading the log, by their keys.
        hash_users: whether users and groups are replaced by hashes.
        calibrate: whether to replay the log under the site's rule, and compare waits.
        policies: what the site may have, with `calibrate`.
        slurm_conf: the site's slurm.conf, with `calibrate`.
        out: folder for all tables and pictures.
        options: of the machine, as in the command's help: ``processors=256``.

    Raises:
        InputError: if the log or an option cannot be used.
    """
    log = _of_log(path, changes, hash_users, options)
    if calibrate:
        conf = None if slurm_conf is None else Path(slurm_conf)
        report = calibrate_log(CalibrationOptions(**log, names=policies, slurm_conf=conf))
    else:
        report = describe_log(LogOptions(**log))
    return _kept(report, out)


def replay(
    path: str | Path,
    policies: Sequence[str] = (),
    *,
    changes: Changes = (),
    hash_users: bool = False,
    calibrate: bool = False,
    starts: bool = False,
    num_instants: Count = 1000,
    seed: Seed = 0,
    decode: Decode = "argmax",
    since: str = "",
    until: str = "",
    out: str | Path | None = None,
    progress: bool = False,
    **options: Option,
) -> Report:
    """Plays a whole job log under policies, as ``metasched replay`` does.

    >>> report = replay("example", ["fcfs:easy", "hpc-order"], max_wait="x2")
    >>> report["by-user"], report.figure("timeline")

    Args:
        path: see `trace`.
        policies: heuristics, folders of runs and globs of them; by default the world's baselines.
        changes: see `trace`.
        hash_users: see `trace`.
        calibrate: whether to compare the waits under heuristics with the recorded ones instead.
        starts: whether to measure how far start times can be foreseen instead.
        num_instants: moments of the log at which they are, with `starts`.
        seed: of the policies' random numbers.
        decode: how learned policies choose.
        since: begin of what pictures over time show: a date such as ``2024-03-01`` (UTC), or a
            time since the first submission such as ``5d``.
        until: end of what they show, likewise.
        out: see `trace`.
        progress: whether to show on stderr where it is.
        options: see `trace`.

    Raises:
        InputError: if the log, the machine or a policy cannot be used; before anything is played.
    """
    log = _of_log(path, changes, hash_users, options)
    if calibrate:
        return _kept(calibrate_log(CalibrationOptions(**log, names=policies)), out)
    replayed = ReplayOptions(
        **log, names=policies, seed=seed, decode=decode, since=since, until=until
    )
    if starts:
        return _kept(foresee_starts(replayed, num_instants, shown(progress)), out)
    return _kept(replay_log(replayed, shown(progress)), out)


def whatif(
    path: str | Path,
    change: Sequence[str],
    *,
    policy: str | None = None,
    slurm_conf: str | Path | None = None,
    each: bool = False,
    too_long: str = "drop",
    changes: Changes = (),
    hash_users: bool = False,
    seed: Seed = 0,
    decode: Decode = "argmax",
    out: str | Path | None = None,
    progress: bool = False,
    **options: Option,
) -> Report:
    """Replays a log as today and after changes, as ``metasched whatif`` does.

    >>> whatif("example", ["policy=sjf:easy", "processors=+10%"])["now-and-then"]

    Args:
        path: see `trace`.
        change: what is changed, as texts like ``processors=+64``; together.
        policy: today's; by default fcfs:easy, or that of `slurm_conf`.
        slurm_conf: the site's slurm.conf.
        each: whether to show each of several changes alone, too.
        too_long: what becomes of jobs that ask for more time than they may have after a change:
            ``drop`` leaves them out, ``cap`` lets them run for the longest time.
        changes: see `trace`; they hold on both sides.
        hash_users: see `trace`.
        seed: see `replay`.
        decode: see `replay`.
        out: see `trace`.
        progress: see `replay`.
        options: see `trace`.

    Raises:
        InputError: if the log, a policy or a change cannot be used; before anything is played.
    """
    asked = WhatIfOptions(
        **_of_log(path, changes, hash_users, options),
        policy=policy,
        slurm_conf=None if slurm_conf is None else Path(slurm_conf),
        changes_made=change,
        each=each,
        too_long=too_long,
        seed=seed,
        decode=decode,
    )
    return _kept(compare_changes(asked, shown(progress)), out)


def generate(
    path: str | Path,
    on: str | Path = "hpc-order",
    *,
    changes: Changes = (),
    num_jobs: Count = 5000,
    seed: Seed = 0,
    force: bool = False,
    **options: Option,
) -> pd.DataFrame:
    """Writes generated jobs as a log, as ``metasched generate`` does.

    Args:
        path: the file; a log in SWF if its name ends in .swf, else CSV.
        on: preset or YAML file, for world and jobs.
        changes: to its settings.
        num_jobs: number of jobs.
        seed: of the jobs.
        force: whether a file that is there is replaced.
        options: see `trace`.

    Returns:
        The jobs, one a row.

    Raises:
        InputError: if the world has no logs in seconds, or the file cannot be written.
    """
    report = generate_log(
        path=new_file(path, force),
        source=str(on),
        overrides=texts_of(changes),
        task_options=task_options(options),
        num_jobs=num_jobs,
        seed=seed,
    )
    return report["jobs"]


def starts(
    policy: str,
    past: str | Path,
    *,
    partitions: Sequence[str] = (),
    repeat: str | Path | None = None,
    max_wait: str = "0",
    num_futures: Count = 100,
    num_instants: Count = 200,
    **options: Option,
) -> Report:
    """Tells when each job that waits at a live Slurm will start, as ``metasched starts`` does.

    Args:
        policy: that starts the jobs.
        past: log of the site.
        partitions: whose jobs and nodes count; by default all.
        repeat: a record of ``metasched shadow``, whose last state is taken instead of Slurm's.
        max_wait: bound on waits, such as ``5d``.
        num_futures: times that the queue is simulated.
        num_instants: moments of the log at which start times are checked; 0: no correction.
        options: how the log is read: ``time_zone="UTC"``.

    Raises:
        InputError: if the log, the policy or the record cannot be used.
        Failure: if the site does not answer.
    """
    return report_starts(
        policy,
        past=Path(past),
        partitions=partitions,
        repeat=None if repeat is None else Path(repeat),
        max_wait=max_wait,
        task_options=task_options(options),
        num_futures=num_futures,
        num_instants=num_instants,
    )


def _of_log(
    path: str | Path, changes: Changes, hash_users: bool, options: dict[str, Option]
) -> dict[str, Any]:
    """Fields of `LogOptions`."""
    return {
        "path": Path(path),
        "overrides": texts_of(changes),
        "task_options": task_options(options),
        "hash_users": hash_users,
    }


def _kept(report: Report, out: str | Path | None) -> Report:
    """The report with its pictures, written to a folder if one is given."""
    report = with_pictures(report)
    if out is not None:
        report.write(out)
    return report
