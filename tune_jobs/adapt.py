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
    keep_option,
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
    help="FAMILY:INDEX, a YAML file, or KEY=VALUE; can be repeated to change more of the task.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A log of your own jobs: short for --task workload.trace=FILE, and the machine gets the "
    "size that the log states.",
)
@click.option("--objective", help="Objective to adapt to; short for --task objective=NAME.")
@click.option(
    "--steps", "num_steps", type=click.IntRange(0, 1000), default=3, help="Steps of adaptation."
)
@step_options
@click.option(
    "--rate",
    type=POSITIVE,
    help="Inner rate of all parameters. By default the rates that the run learned, else that of "
    "its config, else 1.",
)
@held_out_option
@decode_option(
    "argmax",
    help_text="How adapted policies act: argmax takes the likeliest action, sample draws one.",
)
@keep_option(
    "best",
    "Which policy --out writes: best is the one after the best of the steps shown, by validation "
    "jobsets (step 0 included); last is the one after all steps.",
)
@seed_option("the adaptation's jobsets and actions")
@out_option(f"New folder for the adapted policy and for {ADAPTATION_TABLE}.")
@json_option("Print the rows as JSON.")
@click.option(
    "--track/--no-track",
    default=None,
    help="--track records the table in MLflow as a separate run below that of RUN, and needs "
    "--out. In any case the table is added to the description and files of RUN, if RUN is "
    "recorded; --no-track prevents that.",
)
def command(**options: Any) -> None:
    """Adapt the policy of RUN to a task, and compare it before and after with heuristics.

    RUN is the folder of a run with the network set_scorer, trained by maml or ppo, or a folder that
    this command wrote. TASK changes settings of the section task, such as objective and workload;
    the others stay as in training. workload.trace names a log of your own jobs. The steps learn
    from jobsets of the task's training split, and the table shows other jobsets. Windows of a log
    are those of `compare`: long, and after a warm-up that fills the machine.

    \b
    Examples:
      metasched adapt runs/MY_RUN --task objectives:3
      metasched adapt runs/MY_RUN --task objective=makespan --task workload.load=1.1 --steps 10
      metasched adapt runs/MY_RUN --task 'objective=class_slowdown(0.1, 1, 10)' --out adapted
      metasched adapt runs/MY_RUN --task my_task.yaml
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
