"""``metasched demo``: from nothing to trained policies, their figures and what they say."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tune_jobs.adapting.demo import FIGURE, adapt_and_draw, meta_config
from tune_jobs.adapting.table import TABLE as ADAPTATION_TABLE
from tune_jobs.cli import CONTEXT, program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rllib_configs.schema import ExperimentConfig
    from tune_jobs.runs.directory import RunDirectory
    from tune_jobs.terminal.progress import Progress
    from tune_jobs.terminal.tables import Row

BASELINES = ("sjf", "tetris")
RULE = "hold"
TABLE = "comparison.csv"
JOBSETS, QUICK_JOBSETS = 1000, 50

_QUICK = (
    "name=demo-quick",
    "training.iterations=20",
    "evaluation.jobsets=20",
    "evaluation.every=10",
    "checkpoint.every=10",
)


@click.command(name="demo", context_settings=CONTEXT)
@click.option(
    "--quick", is_flag=True, help="One or two minutes to see that all works; it learns nothing."
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    help="Folder for the runs and the MLflow store.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of all random numbers.")
def command(quick: bool, runs: Path, seed: int) -> None:
    """Train DeepRM's policy on Ray, compare it with heuristics, draw figures, record it in MLflow.

    Then meta-train a policy on tasks whose objective is hidden, and adapt it in a few steps to one
    of each objective that it has never seen. All takes less than eight minutes on two cores, and
    ends with what was found and where to look.

    \b
    Examples:
      metasched demo
      metasched demo --quick --runs trial
    """
    from rllib_configs.loading import load_config
    from tune_jobs.terminal.progress import Progress
    from tune_jobs.terminal.ray_session import num_local_cpus

    fitting = [f"resources.num_runners={min(2, num_local_cpus())}"]
    config = load_config("demo", [*fitting, *(_QUICK if quick else ())])
    config = config.model_copy(update={"runs": runs, "seed": seed})
    progress = Progress()
    progress.say(
        f"[1/4] Training DeepRM's policy for {config.training.iterations} iterations on Ray"
    )
    run = _train(config, progress)
    rows = compare_and_draw(config, run, progress, quick)
    found = findings(rows, run)
    try:
        found += _adapt(meta_config(fitting, runs, seed, quick=quick), progress, quick)
    finally:  # what is known by now is worth saying, also if this part was stopped
        click.echo()
        for line in [*found, f"MLflow:  {program()} ui --runs {_seen_from_here(runs)}"]:
            click.echo(line)


def _train(config: "ExperimentConfig", progress: "Progress") -> "RunDirectory":
    """Trains; ends the command if a signal has stopped it."""
    from tune_jobs.runs.training import run_training

    result = run_training(config, progress=progress)
    if result.exit_status:
        raise click.exceptions.Exit(result.exit_status)
    return result.run


def _adapt(config: "ExperimentConfig", progress: "Progress", quick: bool) -> list[str]:
    """Meta-trains and adapts; returns what was found and where to look."""
    progress.say(
        f"[4/4] Meta-training for {config.training.iterations} iterations on tasks whose objective "
        f"is hidden"
    )
    run = _train(config, progress)
    lines = adapt_and_draw(config, run, progress, quick)
    figures = f"Figures: {_seen_from_here(run.figures)}: {FIGURE} (these tasks), meta-curves.png"
    return ["", *lines, f"{figures}, {ADAPTATION_TABLE}", ""]


def compare_and_draw(
    config: "ExperimentConfig", run: "RunDirectory", progress: "Progress", quick: bool
) -> "list[Row]":
    """Compares the trained policy on unseen jobsets, draws figures into the run, records all."""
    from tune_jobs.tracking.recording import draw_figure, tracked

    with tracked(config, run) as tracker:
        progress.say("[2/4] Comparing it with the heuristics on unseen jobsets")
        rows = _compare(config, run, progress, QUICK_JOBSETS if quick else JOBSETS)
        for row in rows:
            names = ("slowdown", "slowdown_low", "slowdown_high", "unfinished")
            tracker.metrics(
                {f"held_out/{row['key']}/{name}": row[name] for name in names},
                config.training.iterations,
            )
        tracker.artifact(run.figures / TABLE, "figures")
        progress.say("[3/4] Drawing slowdown against load, with all heuristics")
        at_each_load = (QUICK_JOBSETS if quick else JOBSETS) // 5
        draw_figure("deeprm-fig4", run, tracker, num_jobsets=at_each_load, progress=progress)
        tracker.finish()
    return rows


def _compare(
    config: "ExperimentConfig", run: "RunDirectory", progress: "Progress", jobsets: int
) -> "list[Row]":
    from tune_jobs.comparing.comparison import compare
    from tune_jobs.comparing.policy_specs import heuristic_spec, learned_specs, load_runs
    from tune_jobs.comparing.protocol import EvaluationProtocol
    from tune_jobs.terminal.tables import write_table

    specs = [heuristic_spec(name) for name in (*BASELINES, RULE)]
    specs += learned_specs(load_runs([run.path], "sample"), "sample")
    task = config.task.build(config.name, config.seed)
    protocol = EvaluationProtocol(task, num_jobsets=jobsets)
    rows = compare(protocol, specs, protocol.values(), progress)
    write_table(run.figures / TABLE, rows)
    return rows


def findings(rows: "Sequence[Row]", run: "RunDirectory") -> list[str]:
    """What was found and where to look, in two lines.

    Args:
        rows: of a comparison at one load, with one learned policy; see
            `tune_jobs.comparing.comparison`.
        run: the run.
    """
    learned = next(row for row in rows if row["learned"])
    baselines = [next(row for row in rows if row["key"] == name) for name in BASELINES]
    rule = next(row for row in rows if row["key"] == RULE)
    against = " and ".join(f"{row['policy']} {_interval(row)}" for row in baselines)
    return [
        f"Mean slowdown on {learned['jobsets']:,} unseen jobsets at load "
        f"{float(learned['load']):.0%} [95 % interval]: the learned policy {_interval(learned)}, "
        f"{against}; {_verdict(learned, baselines)}. (The rule {rule['policy']}, which keeps long "
        f"jobs waiting: {_interval(rule)}.)",
        f"Figures: {_seen_from_here(run.figures)}: deeprm-fig4.png (slowdown against load), "
        f"deeprm-fig6.png (learning curves), {TABLE}",
    ]


def _interval(row: "Row") -> str:
    left = float(row["unfinished"])
    cut = f" with {left:,.0f} jobs unfinished" if left else ""
    low, high = float(row["slowdown_low"]), float(row["slowdown_high"])
    interval = "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return f"{float(row['slowdown']):.2f}{interval}{cut}"


def _verdict(learned: "Row", baselines: "Sequence[Row]") -> str:
    """How it compares with the better baseline; told apart only if their intervals do not meet."""
    baseline = min(baselines, key=lambda row: float(row["slowdown"]))
    change = float(learned["slowdown"]) / float(baseline["slowdown"]) - 1
    if float(learned["slowdown_high"]) < float(baseline["slowdown_low"]):
        return f"it is {-change:.0%} below the better of the two"
    if float(learned["slowdown_low"]) > float(baseline["slowdown_high"]):
        return f"it is {change:.0%} above the better of the two: it needs more training"
    return "it cannot be told from the better of the two"


def _seen_from_here(path: Path) -> Path:
    path = path.absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
