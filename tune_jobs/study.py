"""``metasched study``: how runs adapt to unseen tasks, for the adaptation figures."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    POSITIVE,
    SEED,
    OutPath,
    count,
    decode_option,
    held_out_option,
    keep_option,
    runner_options,
    step_options,
)


@click.command(name="study", context_settings=CONTEXT)
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option(
    "--family",
    default="objectives",
    metavar="NAME|FILE",
    help="Family of tasks: objectives, priorities, workloads, mixed, sites, or a YAML file.",
)
@click.option(
    "--tasks",
    "num_tasks",
    type=count(),
    default=40,
    help="Held-out tasks, equally many of each kind of objective.",
)
@click.option("--task-seed", type=SEED, default=0, help="Seed of the tasks.")
@click.option("--seeds", "num_seeds", type=count(), default=3, help="Adaptations of each task.")
@click.option(
    "--steps", default="0,1,2,3,5,10", metavar="K,...", help="Steps after which to evaluate."
)
@step_options
@held_out_option
@decode_option(
    "argmax", help_text="How policies act: argmax takes the likeliest action, sample draws one."
)
@keep_option(
    "last",
    "Which policy is measured after some steps: last, the one after all of them, or best, the one "
    "that is best so far by validation jobsets, as metasched adapt keeps it.",
)
@click.option(
    "--rate",
    type=POSITIVE,
    help="Inner rate of all runs; by default the rates that a run learned, else the best of "
    "--rates.",
)
@click.option(
    "--rates",
    default="0.0625,0.125,0.25,0.5,1,2,4,8",
    metavar="RATE,...",
    help="Inner rates to choose from, on validation tasks.",
)
@click.option(
    "--rate-tasks",
    "num_rate_tasks",
    type=count(),
    default=15,
    help="Validation tasks to choose the inner rate on.",
)
@click.option(
    "--scratch",
    "num_scratch",
    type=count(0),
    default=0,
    help="Number of untrained policies, built like the first run, to measure as well.",
)
@click.option(
    "--scratch-times",
    type=count(),
    default=1,
    metavar="N",
    help="Steps of an untrained policy for each step of the others.",
)
@click.option(
    "--specialists",
    "num_specialists",
    type=count(0),
    default=0,
    metavar="N",
    help="Also train a policy for each of the first N tasks alone, from the one joint policy RUN.",
)
@click.option(
    "--iterations", "num_iterations", type=count(), default=100, help="Iterations of a specialist."
)
@runner_options
@click.option(
    "--out",
    type=OutPath(file_okay=False),
    default=Path("adaptation"),
    help="Folder for the rows, one file for each run and family.",
)
@click.option("--track", is_flag=True, help="Record means and rows in MLflow, beside the runs.")
def command(**options: Any) -> None:
    """Measure how runs adapt to held-out tasks of a family.

    Each run is adapted to the same tasks from the same jobsets. Its costs are divided by that of
    the world's best baseline on the task. The config of a run names its method, such as joint
    training or first-order MAML; runs that differ only in their seed are one method. A network that
    cannot be adapted trains on by REINFORCE, one update a step. Rows that the folder
    --out already holds are not measured again.

    A specialist trains on its task alone, with its objective, weights and workload, on jobsets of
    the task's training split. Its cost bounds what adaptation can reach: the figure headroom shows
    how much of the way from the joint policy to the specialist adaptation covers. Existing
    specialists are not trained again.

    \b
    Examples:
      metasched study 'runs/maml-*' 'runs/joint-*' --family objectives
      metasched study 'runs/*' --family priorities --scratch 3 --runners 2
      metasched figure adaptation --rows adaptation
      metasched study runs/joint-0 --specialists 15
    """
    from tune_jobs.adapting.many_tasks import StudyOptions, study_adaptation
    from tune_jobs.terminal.progress import Progress

    out, track = options.pop("out"), options.pop("track")
    study_adaptation(StudyOptions(**options), Progress(), out=out, track=track).show()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
