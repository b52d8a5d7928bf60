"""``metasched adapt``: a trained policy, a task, a few steps, and how much better it is then."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

from tune_jobs.commands import command_line
from tune_jobs.commands.adapting import Adapt
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.shared import FILE, HeldOut, Keep


@command_line.command("adapt", Adapt)
def command(
    options: Adapt,
    *,
    trace: Annotated[
        Path | None,
        Flag(
            "A log of your own jobs: short for --task workload.trace=FILE, and the machine gets "
            "the size that the log states.",
            type=FILE,
        ),
    ] = None,
    objective: Annotated[
        str | None, Flag("Objective to adapt to; short for --task objective=NAME.")
    ] = None,
    num_held_out: HeldOut = 100,
    keep: Annotated[
        Keep,
        Flag(
            "Which policy --out writes: best is the one after the best of the steps shown, by "
            "validation jobsets (step 0 included); last is the one after all steps."
        ),
    ] = "best",
    as_json: Annotated[bool, Flag("Print the rows as JSON.", "json")] = False,
    track: Annotated[
        bool | None,
        Flag(
            "--track records the table in MLflow as a separate run below that of RUN, and needs "
            "--out. In any case the table is added to the description and files of RUN, if RUN is "
            "recorded; --no-track prevents that."
        ),
    ] = None,
) -> None:
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
    from tune_jobs.adapting.one_task import adapt_to_task

    task = [
        *cast("Sequence[str]", options.task),
        *([] if objective is None else [f"objective={objective}"]),
        *([] if trace is None else [f"workload.trace={trace.absolute()}"]),
    ]
    adapt_to_task(
        replace(options, task=task),
        num_held_out=num_held_out,
        keep=keep,
        as_json=as_json,
        track=track,
    )


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
