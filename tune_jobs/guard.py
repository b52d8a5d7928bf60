"""``metasched guard``: whether a learned policy may decide on a task, or the best heuristic."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    OutPath,
    count,
    decode_option,
    force_option,
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
@click.option(
    "--objective", help="Objective that decides which is better; by default the config's."
)
@click.option(
    "--jobsets", "num_jobsets", type=count(2), default=500, help="Validation jobsets to decide on."
)
@warmup_option
@limit_option
@click.option(
    "--later",
    is_flag=True,
    help="Also show how the decision does on held-out jobsets, and whether it keeps its limits "
    "there. Of a log, these are the later weeks.",
)
@seed_option("the jobsets and of the policies' random numbers")
@decode_option("sample", help_text="How the learned policy chooses.")
@click.option("--wide", is_flag=True, help="Also show differences to the best heuristic.")
@json_option("Print the decision as JSON.")
@click.option(
    "--out",
    type=OutPath(dir_okay=False),
    help="File for the decision, as JSON; tune_jobs.measuring.guarding.load_decided reads it.",
)
@force_option
@runner_options
def command(**options: Any) -> None:
    """Decide whether to use the policy of RUN or the best heuristic on a task.

    The guard uses the policy if it is better than the best heuristic on validation jobsets, with
    the whole 95 % interval of the difference. It must not leave more jobs unfinished, either. The
    guard never uses a policy or heuristic whose side metrics, such as utilization and waits,
    violate a limit. Limits are relative to a reference: the baseline with the best mean. In the
    world hpc, it is the best of those that backfill. --limit changes the limits. Of a log in the
    world hpc, reference and limits also count over all weeks before the held-out ones in one go,
    and all have the same bound on waits, --max-wait x2 unless you give another one; 0 is none.

    The guard considers all heuristics of the task's world, and tunes those with a number on other
    validation jobsets. If jobs varied in training, it uses the values that the settings name.
    Windows of a log are long, unless --window changes that. As they overlap, the log must have room
    for five disjoint windows. For a policy that was trained on synthetic jobs only, all jobs before
    the held-out ones count.

    \b
    Examples:
      metasched guard runs/MY_RUN
      metasched guard runs/MY_RUN --set task.workload.load=1.5 --window 200
      metasched guard runs/MY_RUN --out decision.json
      metasched guard hpc-order --set task.workload.trace=example
    """
    from tune_jobs.measuring.guard_report import GuardOptions, decide
    from tune_jobs.terminal.progress import NoProgress, Progress

    as_json, wide, out = (options.pop(name) for name in ("as_json", "wide", "out"))
    decided = decide(GuardOptions(**options), NoProgress() if as_json else Progress())
    decided.report(wide).show(as_json=as_json)
    if out is not None:
        decided.write(out)
        if not as_json:
            click.echo(f"Wrote {out}")


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
