"""``metasched compare``: learned policies and heuristics on the same unseen jobsets."""

from pathlib import Path
from typing import Annotated

import click

from tune_jobs.commands import command_line
from tune_jobs.commands.comparing import LATER, Compare
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.shared import OUT_FOLDER
from tune_jobs.commands.task_command import TaskCommand
from tune_jobs.terminal.options import COMPARISON_FIGURE, COMPARISON_TABLE, DECISION


@command_line.command("compare", Compare, TaskCommand)
def command(
    options: Compare,
    *,
    decide: Annotated[
        bool,
        Flag(
            "Decide between one learned policy and the best heuristic, on validation jobsets, and "
            f"show why; --out keeps the decision as {DECISION}."
        ),
    ] = False,
    later: Annotated[bool, Flag(f"With --decide: {LATER}")] = False,
    as_json: Annotated[bool, Flag("Print the rows as JSON.", "json")] = False,
    out: Annotated[
        Path | None,
        Flag(f"Folder for {COMPARISON_TABLE} and {COMPARISON_FIGURE}.", type=OUT_FOLDER),
    ] = None,
    track: Annotated[
        bool | None,
        Flag(
            "--track records the comparison in MLflow as a separate run, and needs --out. Compared "
            "runs that are recorded get it, too, but with --no-track."
        ),
    ] = None,
) -> None:
    """Compare policies on the same unseen jobsets.

    Heuristics are those of the task's world. Some take a number, for instance tetris:0.002; without
    it, the number is tuned on validation jobsets. Runs that differ only in their seed share one
    line.

    With --guard, a learned policy decides where the whole 95 % interval of the difference says that
    it is better than the best heuristic on validation jobsets. It must not leave more jobs
    unfinished, nor violate a limit of side metrics such as utilization and waits, relative to the
    heuristic with the best mean. In the world hpc, that is the best of those that backfill; of a
    log, all weeks before the held-out ones count in one go, too, and all have the same bound on
    waits, --max-wait x2 unless you give another one; 0 is none.

    \b
    Examples:
      metasched compare --loads 0.7,1.1,1.3
      metasched compare --policies 'sjf,tetris,runs/deeprm-*' --loads 0.7 --jobsets 200
      metasched compare --policies sjf,hold,runs/MY_RUN --loads 0.3,1.5 --guard
      metasched compare --policies hpc-order --set task.workload.trace=example --decide
    """
    from tune_jobs.figures import draw_comparison
    from tune_jobs.measuring.guard_report import report_decision
    from tune_jobs.measuring.reporting import report_comparison

    if decide:
        if track:
            raise click.UsageError("a decision is not recorded in MLflow; leave out --track")
        report_decision(options, out, later=later, as_json=as_json)
    elif later:
        raise click.UsageError("--later is about a decision, so it needs --decide")
    else:
        report_comparison(options, as_json=as_json, out=out, track=track, draw=draw_comparison)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
