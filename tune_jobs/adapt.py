"""``metasched adapt``: a trained policy, a task, a few steps, and how much better it is then."""

from typing import Annotated

from tune_jobs.commands import command_line
from tune_jobs.commands.adapting import Adapt
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.shared import HeldOut, Keep, NumRunners


@command_line.command("adapt", Adapt)
def command(
    options: Adapt,
    *,
    num_held_out: HeldOut = 100,
    keep: Annotated[
        Keep,
        Flag(
            "Which policy --out writes: best is the one after the best of the steps shown, by "
            "validation jobsets (step 0 included); last is the one after all steps."
        ),
    ] = "best",
    num_runners: NumRunners = 0,
    as_json: Annotated[bool, Flag("Print the rows as JSON.", "json")] = False,
    track: Annotated[
        bool | None,
        Flag(
            "--track records the table in MLflow as a separate run below that of RUN, and needs "
            "--out. RUN gets it, too, if it is recorded, but with --no-track."
        ),
    ] = None,
) -> None:
    """Adapt the policy of RUN to a task, and compare it before and after with heuristics.

    RUN is the folder of a run with the network set_scorer, trained by maml or ppo, or a folder that
    this command wrote. TASK changes settings of the section task, such as objective and workload;
    the others stay as in training; workload.trace names a log of your own jobs. The steps learn
    from jobsets of the task's training split, and the table shows other jobsets. Windows of a log
    are those of `compare`: long, and after a warm-up that fills the machine.

    \b
    Examples:
      metasched adapt runs/MY_RUN --task objectives:3
      metasched adapt runs/MY_RUN --task objective=makespan --task workload.load=1.1 --steps 10
      metasched adapt runs/MY_RUN --task 'objective=class_slowdown(0.1, 1, 10)' --out adapted
      metasched compare --policies sjf,tetris,runs/MY_RUN,adapted
    """
    from tune_jobs.adapting.one_task import adapt_to_task

    adapt_to_task(
        options,
        num_held_out=num_held_out,
        keep=keep,
        num_runners=num_runners,
        as_json=as_json,
        track=track,
    )


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
