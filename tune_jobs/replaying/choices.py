"""From a log and what a user says of the machine to a task that holds all jobs of the log."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.task import Task
from cluster_env.workloads.formats import READ_OPTIONS, read_log
from cluster_env.workloads.recorded import RecordedJobs
from rllib_configs.config.loading import changed_config
from rllib_configs.config.machines import misfits, units_named, units_of_log
from tune_jobs.measuring.trained_runs import TrainedRun
from tune_jobs.replaying.site_sheets import too_full

SITE = "site"
"""Name of the option that describes a site."""

_SITE_KEY = "task.world.site."
_ZONE = "TZ="

WORLD = "hpc"
"""The world that logs in seconds are played in."""


def read_as_said(
    path: Path, overrides: Sequence[str], task_options: Mapping[str, Any]
) -> RecordedJobs:
    """A log, read with the options that were said of it, wherever they were given.

    Raises:
        InputError: if it cannot be read; what was said is checked with the other settings.
    """
    texts = (text.partition("=") for text in overrides)
    said = {name: value for name, _, value in texts}
    options: dict[str, Any] = {
        name: said.get(f"task.workload.{name}", str(task_options.get(name.replace("_", "-"), "")))
        for name in READ_OPTIONS
    }
    return read_log(path, **{name: value for name, value in options.items() if value})


def task_of_log(
    path: Path,
    overrides: Sequence[str],
    task_options: Mapping[str, Any],
    *,
    guess: bool,
    runs: Sequence[TrainedRun] = (),
    seed: int = 0,
) -> tuple[Task, RecordedJobs, list[str]]:
    """A task whose one jobset is all that fits the machine.

    Args:
        path: the log.
        overrides: texts of the form ``key=value``.
        task_options: values, or texts of them, by names of the world's options.
        guess: whether a machine of which nobody knows the size is as large as what was in use at
            once, see `units_of_log`.
        runs: the trained policies that are to act; the world is that of the first, but for what is
            said, and for its machine unless it was trained on jobs of a log.
        seed: of the policies' random numbers.

    Returns:
        The task, its jobs, and sentences about what was not said.

    Raises:
        InputError: if the log or a setting cannot be used, or nobody says how large the machine is.
    """
    read = read_as_said(path, overrides, task_options)
    trained = runs[0].config.to_dict()["task"] if runs else {}
    world = {**trained.get("world", {}), "kind": WORLD}
    if trained and trained["world"]["kind"] != WORLD:
        trained, world = {}, {"kind": WORLD}
    given = {text.partition("=")[0] for text in overrides}
    said = {
        name for name in read.resources if name in task_options or f"task.world.{name}" in given
    }
    units: dict[str, int] = {}
    words: list[str] = []
    if _names_site(overrides, task_options):
        if said:
            raise InputError(
                f"the site says how many {' and '.join(sorted(said))} there are; leave out "
                f"--{' and --'.join(sorted(said))}"
            )
    else:
        units, words = units_of_log(
            read, said, units_named(trained), asked="--{name} {units}", guess=guess
        )
    workload = {"kind": "trace", "path": str(path), "jobs": 0, "whole": True}
    data = {"name": path.name.partition(".")[0] or "log"}
    data["task"] = {"world": world, "workload": workload}  # type: ignore[assignment]
    options = _with_time_zone({**units, **task_options})
    task = changed_config(data, overrides, options).task.build(path.name, seed)
    workload_of: Any = task.workload
    recorded = getattr(workload_of, "recorded", None)
    if not isinstance(recorded, RecordedJobs):
        raise InputError(f"--set must not replace the jobs of {path}")
    capacity: tuple[int, ...] = getattr(task.world, "capacity", ())
    site: Any = getattr(task.world, "site", None)
    if site is not None:
        words += [f"not simulated: {'; '.join(site.not_simulated)}"] if site.not_simulated else []
        return task, recorded, [*words, *_other_clock(site, recorded), *too_full(recorded, site)]
    return task, recorded, [*words, *misfits(recorded, capacity)]


def _with_time_zone(task_options: dict[str, Any]) -> dict[str, Any]:
    """The same options, where the zone of the log's times is that of the site's files, too."""
    zone, files = task_options.get("time-zone"), task_options.get(SITE)
    if zone and files and _ZONE not in str(files):
        return {**task_options, SITE: f"{files},{_ZONE}{zone}"}
    return task_options


def _other_clock(site: Any, jobs: RecordedJobs) -> list[str]:
    """A sentence where the whole calendar of a site lies outside of the time of a log."""
    # A job that may run until an outage begins is one that the outage holds back.
    first = int(jobs.submit[0])
    last = int((jobs.start + np.maximum(jobs.run, jobs.estimate)).max())
    if not site.calendar or any(one.start <= last and one.end >= first for one in site.calendar):
        return []
    epoch = f"; its second 0 is the Unix time {jobs.epoch}" if jobs.epoch else ""
    return [
        f"no outage or reservation of the site lies in the log, whose clock runs from {first:,} "
        f"to {last:,} s{epoch}"
    ]


def _names_site(overrides: Sequence[str], task_options: Mapping[str, Any]) -> bool:
    """Whether the description of a site says how large the machine is."""
    keys = {text.partition("=")[0] for text in overrides}
    return SITE in task_options or any(f"{key}.".startswith(_SITE_KEY) for key in keys)
