"""What ``metasched generate`` does: draws one jobset and writes it as a log."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pandas as pd

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.workloads.swf import write_swf
from tune_jobs.commands.logs import Generate
from tune_jobs.measuring.choices import choose_config
from tune_jobs.replaying.choices import WORLD
from tune_jobs.tables.frames import write_table
from tune_jobs.tables.report import Report
from tune_jobs.terminal.running import program

_SWF_FIELDS = ("submit", "run", "processors", "requested_time")


def generate_log(options: Generate) -> Report:
    """Writes the log, and tells of its jobs.

    Raises:
        InputError: if the world has no logs in seconds, the jobs are recorded, or the file cannot
            be written.
    """
    path = Path(options.path)
    config = choose_config(options.on, options.changes, options.task_options, ())
    task = config.task.build(seed=options.seed)
    world: Any = task.world
    if world.kind != WORLD or config.task.workload.kind == "trace":
        raise InputError(
            f"generate needs a workload of the world {WORLD} that draws its jobs, but "
            f"{config.task.workload.kind} of the world {world.kind} was given"
        )
    workload: Any = replace(cast("Any", task.workload), jobs=options.num_jobs)
    (jobset,) = replace(task, workload=workload).jobsets(Split.TRAIN, [0])
    jobs = pd.DataFrame(
        {
            "arrival": jobset.arrival,
            "duration": jobset.duration,
            "processors": jobset.demand[:, 0],
            "estimate": jobset.attributes["estimate"],
        }
    )
    try:
        if ".swf" in path.suffixes:
            fields = {name: jobs[of].to_numpy() for name, of in zip(_SWF_FIELDS, jobs, strict=True)}
            fields["requested_processors"] = fields["processors"]
            write_swf(path, fields, {"MaxProcs": world.processors})
        else:
            write_table(path, jobs)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    return Report(
        text=f"Wrote {jobset.num_jobs:,} jobs to {path}\n"
        f"Next     {program()} trace {path} --processors {world.processors}",
        tables={"jobs": lambda: jobs},
    )
