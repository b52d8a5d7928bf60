"""``metasched adapt``: a trained policy, a task, a few steps, and how much better it is then."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    ADAPTATION_TABLE,
    CONTEXT,
    POSITIVE,
    decode_option,
    held_out_option,
    out_option,
    seed_option,
    step_options,
)
from tune_jobs.terminal.output import json_option


@click.command(name="adapt", context_settings=CONTEXT)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--task",
    "texts",
    metavar="TASK",
    multiple=True,
    help="FAMILY:INDEX, a YAML file, or KEY=VALUE; can be repeated to change a task.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A log of your own jobs; short for --task workload.trace=FILE, with the size of the "
    "machine that the log says.",
)
@click.option("--objective", help="What counts; short for --task objective=NAME.")
@click.option(
    "--steps", "num_steps", type=click.IntRange(0, 1000), default=3, help="Steps of adaptation."
)
@step_options
@click.option(
    "--rate",
    type=POSITIVE,
    help="Inner rate of all parameters; by default what the run has learned, else its config's, "
    "else 1.",
)
@held_out_option
@decode_option(
    "argmax", help_text="How adapted policies act: the likeliest action, or one that is drawn."
)
@click.option(
    "--keep",
    type=click.Choice(["best", "last"]),
    default="best",
    show_default=True,
    help="Which policy --out writes: after so many of the steps shown as are best on validation "
    "jobsets (maybe none), or after all.",
)
@seed_option("the adaptation's jobsets and actions")
@out_option(f"New folder for the adapted policy and for {ADAPTATION_TABLE}.")
@json_option("Print the rows as JSON.")
@click.option(
    "--track/--no-track",
    default=None,
    help="Record the table in MLflow as a run of its own, beside RUN; needs --out. Without either, "
    "it is only added to RUN, if that is recorded: to its description and its files.",
)
def command(**options: Any) -> None:
    """Adapt the policy of RUN to a task, and compare it before and after with heuristics.

    RUN is the folder of a run that trained a scorer of slots, by meta-training (maml) or by PPO, or
    one that this command wrote. Settings that TASK does not name are those that RUN was trained
    with: a YAML file holds settings of the section task, such as objective and workload, and
    workload.trace is a CSV file of your own jobs. Steps play jobsets of the task's training split,
    and the table is about others. On a log, all of them are windows as `compare` has them: long,
    and behind a warm-up that fills the machine.

    \b
    Examples:
      metasched adapt runs/MY_RUN --task objectives:3
      metasched adapt runs/MY_RUN --task objective=makespan --task workload.load=1.1 --steps 10
      metasched adapt runs/MY_RUN --task 'objective=class_slowdown(0.1, 1, 10)' --out adapted
      metasched adapt runs/MY_RUN --task my_task.yaml --task workload.trace=jobs.csv
      metasched adapt runs/MY_RUN --trace jobs.csv --objective completion_time
      metasched compare --policies sjf,tetris,runs/MY_RUN,adapted
    """
    from tune_jobs.adapting.one_task import AdaptationOptions, adapt_to_task

    names = ("num_held_out", "keep", "out", "as_json", "track")
    shown = {name: options.pop(name) for name in names}
    texts, objective, trace = (options.pop(name) for name in ("texts", "objective", "trace"))
    changes = [
        *texts,
        *([] if objective is None else [f"objective={objective}"]),
        *([] if trace is None else [f"workload.trace={trace.absolute()}"]),
    ]
    adapt_to_task(AdaptationOptions(task=changes, **options), **shown)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
