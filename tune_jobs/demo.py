"""``metasched demo``: commands that train, compare and adapt, one after the other."""

import os
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from statistics import fmean

import click

from tune_jobs.cli import metasched
from tune_jobs.terminal.options import CONTEXT, SEED
from tune_jobs.terminal.running import program

QUICK = (
    *("training.iterations=20", "evaluation.jobsets=20"),
    *("evaluation.every=10", "checkpoint.every=10"),
)
QUICK_META = ("training.iterations=6", "evaluation.jobsets=20")
JOBSETS, QUICK_JOBSETS = 1000, 50
HELD_OUT, QUICK_HELD_OUT = 100, 20
MODEL = "metasched-demo"  # of the preset
TASKS = (0, 1, 3, 4, 14)
"""The first held-out task of each of the five objectives of the family, chosen by that alone."""


@click.command(name="demo", context_settings=CONTEXT)
@click.option(
    "--quick",
    is_flag=True,
    help="Check the installation in one or two minutes; nothing is learned.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    help="Folder for the runs and the MLflow store.",
)
@click.option("--seed", type=SEED, default=0, help="Seed of all random numbers.")
def command(quick: bool, runs: Path, seed: int) -> None:
    """Train, compare, adapt and draw, in about five minutes on two cores.

    The demo trains DeepRM's policy on Ray, compares it with heuristics, draws figures, and records
    all of it in MLflow. It also compares a pretrained policy on a cluster in operation. Then it
    meta-trains a policy on tasks with hidden objectives, and adapts it in three steps to an unseen
    task of each objective. Each part is an ordinary command, which is shown before it runs.

    \b
    Examples:
      metasched demo
      metasched demo --quick --runs trial
    """
    from tune_jobs.tracking.provenance import as_command

    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = f"{stamp}-s{seed}"
    lines = command_lines(runs, name, seed, quick=quick)
    done = 0
    minutes = "one or two minutes" if quick else "about five minutes"
    click.echo(f"{len(lines)} commands, {minutes} on two cores; each is shown before it runs.\n")
    try:
        for line in lines:
            click.secho(f"[{done + 1}/{len(lines)}] metasched {shlex.join(line)}", bold=True)
            with as_command(["metasched", *line]):
                status = metasched.main(line, prog_name="metasched", standalone_mode=False)
            if status:
                raise click.exceptions.Exit(status)
            done += 1
            click.echo()
        for label, text in summary(runs, name):
            click.echo(f"{click.style(f'{label:8}', bold=True)} {text}")
    finally:  # what there is by now is worth a look, also if the rest was stopped
        if done:
            click.echo(f"Figures  {runs}/demo-*{stamp}-s{seed}*/, some in figures/")
            click.echo(f"Model    models:/{MODEL}/latest in MLflow, to load or to serve")
            click.echo(f"MLflow   {program()} ui --runs {runs}")


def command_lines(runs: Path, name: str, seed: int, *, quick: bool) -> list[list[str]]:
    """What the demo runs, as words of the command line.

    Args:
        runs: folder for runs and results.
        name: end of the folders' names.
        seed: of all random numbers.
        quick: whether to learn nothing.
    """
    run, meta_run, compared = map(str, _folders(runs, name))
    num_jobsets = QUICK_JOBSETS if quick else JOBSETS
    seeded = ["--seed", str(seed)]
    shared = ["--runs", str(runs), *seeded, "--runners", str(min(2, len(os.sched_getaffinity(0))))]

    def sets(settings: tuple[str, ...]) -> list[str]:
        return [word for text in settings if quick for word in ("--set", text)]

    compare = ["compare", "--policies", f"sjf,tetris,hold,{run}", *seeded]
    operate = ["compare", "--policies", "fcfs,easy,sjf,tetris,deeprm-operation", *seeded]
    operate += ["--at", "0.7", "--window", "700", "--warmup", "100", "--rules", "released"]
    operate += ["--jobsets", str(max(1, num_jobsets // 20)), "--out", f"{compared}-operation"]
    figure_4 = ["figure", "deeprm-fig4", "--runs", run, "--out", f"{run}/figures", *seeded]
    adapt = ["adapt", meta_run, "--evaluate", str(QUICK_HELD_OUT if quick else HELD_OUT), *seeded]
    return [
        ["train", "demo", "--run", run, *shared, *sets(QUICK)],
        [*compare, "--jobsets", str(num_jobsets), "--out", compared, "--track"],
        [*figure_4, "--jobsets", str(num_jobsets // 5), "--track"],
        [*operate, "--track"],
        ["train", "demo-meta", "--run", meta_run, *shared, *sets(QUICK_META)],
        *(
            [*adapt, "--task", f"objectives:{task}", "--out", f"{meta_run}-task-{task}", "--track"]
            for task in TASKS
        ),
        ["figure", "meta-curves", "--runs", meta_run, "--out", f"{meta_run}/figures", "--track"],
    ]


def _folders(runs: Path, name: str) -> list[Path]:
    """Those of the run, of the meta-trained one, and of what was compared."""
    return [runs / f"{part}-{name}" for part in ("demo", "demo-meta", "demo-compared")]


def summary(runs: Path, name: str) -> Iterator[tuple[str, str]]:
    """What came out, as labels and lines; the arguments are those of `command_lines`.

    What was learned is shown with its price, then what adaptation gave, which figure to open first,
    and a next step for whoever has jobs, wants a paper's results, or has a cluster.
    """
    from tune_jobs.tables.frames import read_table

    run, meta_run, compared = _folders(runs, name)
    rows = read_table(compared / "comparison.csv", ("learned", "slowdown"))
    (learned,) = (row for row in rows if row["learned"] == "True")
    rule = min(
        (row for row in rows if row["learned"] != "True"), key=lambda row: float(row["slowdown"])
    )
    slowdown, of_rule = float(learned["slowdown"]), float(rule["slowdown"])
    change = f"{abs(slowdown / of_rule - 1):.0%} {'above' if slowdown > of_rule else 'below'}"
    yield "Learned", f"a mean slowdown of {slowdown:.2f}, {change} {rule['key']}'s {of_rule:.2f}"
    shown = ", ".join(
        f"{what} {float(learned[key]):{form}} ({rule['key']} {float(rule[key]):{form}})"
        for what, key, form in (
            ("utilization", "utilization", ".0%"),
            ("longest wait in steps", "longest_wait", ".0f"),
        )
    )
    yield "Price", f"{shown}; like the slowdown in windows of {learned['window']} steps"
    costs = []
    for task in TASKS:
        steps = read_table(Path(f"{meta_run}-task-{task}", "adaptation.csv"), ("step", "ratio"))
        costs.append([float(row["ratio"]) for row in steps if row["step"]])
    before, after = fmean(cost[0] for cost in costs), fmean(cost[-1] for cost in costs)
    better = sum(cost[-1] < cost[0] for cost in costs)
    yield (
        "Adapted",
        f"in three gradient steps from {before:.2f} to {after:.2f} times the cost of the best "
        f"rule, the mean of {len(costs)} unseen tasks; lower in {better}",
    )
    yield "Figure", f"first open {run / 'figures' / 'deeprm-fig4.png'}"
    yield "Next", "with jobs of your own: metasched trace jobs.csv, then metasched replay jobs.csv"
    yield "", "to repeat a paper's results: metasched results"
    yield "", "on a cluster: metasched train deeprm --address auto --runners 4"


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
