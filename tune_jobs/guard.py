"""``metasched guard``: whether a learned policy may decide on a task, or the best heuristic."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    OutPath,
    count,
    decode_option,
    limit_option,
    runner_options,
    seed_option,
    set_option,
    warmup_option,
)
from tune_jobs.terminal.output import json_option
from tune_jobs.terminal.task_command import TaskCommand


@click.command(name="guard", cls=TaskCommand, context_settings=CONTEXT)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--config",
    "source",
    metavar="PRESET|FILE",
    help="World, jobs and objective; by default those that the run was trained on.",
)
@set_option("task.objective=makespan")
@click.option("--objective", help="What decides who is better; by default the config's objective.")
@click.option(
    "--jobsets", "num_jobsets", type=count(2), default=500, help="Validation jobsets to decide on."
)
@warmup_option
@limit_option
@click.option(
    "--later",
    is_flag=True,
    help="Show what was decided on held-out jobsets, too, which of a log are those of later weeks, "
    "and whether it keeps its limits there.",
)
@seed_option("the jobsets and of the policies' random numbers")
@decode_option("sample", help_text="How the learned policy chooses.")
@click.option("--wide", is_flag=True, help="Show differences to the best heuristic, too.")
@json_option("Print the decision as JSON.")
@click.option(
    "--out",
    type=OutPath(dir_okay=False),
    help="File for the decision, JSON; tune_jobs.comparing.guarding.load_decided reads it.",
)
@runner_options
def command(**options: Any) -> None:
    """Decide whether the policy of RUN or the best heuristic is to be used on a task.

    The policy is used if its mean is better than that of the best heuristic with the whole 95 %
    interval of the difference, on validation jobsets of the task, and if it leaves no more jobs
    unfinished. A policy or heuristic whose price, as utilization and waits, is too much worse than
    that of a reference, the best baseline or the rule saf of the world hpc, is never used: --limit
    says how much. Windows of a log share jobs: it must have room for five of them side by side,
    before the held-out jobs if the policy was trained on drawn jobs alone. The heuristics are all
    of the task's world; those with a number are tuned on other validation jobsets. Of jobs that
    vary in training, the point that their settings name is taken; windows of recorded jobs are
    long, unless their length is said.

    \b
    Examples:
      metasched guard runs/MY_RUN
      metasched guard runs/MY_RUN --set task.workload.load=1.5 --window 200
      metasched guard runs/MY_RUN --set task.workload.trace=jobs.csv --out decision.json
      metasched guard hpc-no-worse --set task.workload.trace=jobs.csv --processors 16 --gpus 4
    """
    from tune_jobs.comparing.guard_report import GuardOptions, report_decision

    shown = {name: options.pop(name) for name in ("as_json", "wide", "out")}
    report_decision(GuardOptions(**options), **shown)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
