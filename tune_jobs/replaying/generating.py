"""What ``metasched generate`` does: draws one jobset and writes it as a log."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import click

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads.swf import write_swf
from tune_jobs.comparing.choices import choose_config
from tune_jobs.replaying.choices import WORLD
from tune_jobs.tables.frames import write_table
from tune_jobs.terminal.running import program


def generate_log(
    *,
    path: Path,
    source: str,
    overrides: Sequence[str],
    task_options: Mapping[str, Any],
    num_jobs: int,
    seed: int,
) -> None:
    """Writes the log; the arguments are the options of the command.

    Raises:
        InputError: if the world has no logs in seconds, the jobs are recorded, or the file cannot
            be written.
    """
    config = choose_config(source, overrides, task_options, ())
    task = config.task.build(seed=seed)
    world: Any = task.world
    if world.kind != WORLD or config.task.workload.kind == "trace":
        raise InputError(
            f"generate writes the jobs of a generator of the world {WORLD}, but "
            f"{config.task.workload.kind} of the world {world.kind} was given"
        )
    workload: Any = replace(cast("Any", task.workload), jobs=num_jobs)
    (jobset,) = replace(task, workload=workload).jobsets(Split.TRAIN, [0])
    try:
        _write(path, jobset, world.processors)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    click.echo(f"Wrote {jobset.num_jobs:,} jobs to {path}")
    click.echo(f"Next     {program()} trace {path} --processors {world.processors}")


def _write(path: Path, jobset: JobSet, processors: int) -> None:
    estimate = jobset.attributes["estimate"]
    if ".swf" in path.suffixes:
        named = {
            "submit": jobset.arrival,
            "run": jobset.duration,
            "processors": jobset.demand[:, 0],
            "requested_processors": jobset.demand[:, 0],
            "requested_time": estimate,
        }
        write_swf(path, named, {"MaxProcs": processors})
        return
    names = ("arrival", "duration", "processors", "estimate")
    columns = (jobset.arrival, jobset.duration, jobset.demand[:, 0], estimate)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    write_table(path, [dict(zip(names, row, strict=True)) for row in rows])
