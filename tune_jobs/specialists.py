"""``metasched specialists``: what a policy reaches that was trained for a held-out task alone."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cluster_env.core.errors import InputError
from meta.maml.options import MAMLOptions
from tune_jobs.cli import CONTEXT

if TYPE_CHECKING:
    from meta.tasks import Task
    from rllib_configs.schema import ExperimentConfig
    from tune_jobs.terminal.tables import Row

ITERATIONS = 100
ENTROPY = 0.1  # a policy that nobody will adapt needs less than one that is to be
_FEW_JOBSETS = 20  # the validation at the end of each training says nothing here


@click.command(name="specialists", context_settings=CONTEXT)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--tasks", type=click.IntRange(1), default=15, help="Held-out tasks, from the first.")
@click.option("--of", "count", type=click.IntRange(1), default=40, help="--tasks of the methods.")
@click.option("--task-seed", type=click.IntRange(0), default=0, help="Seed of the tasks.")
@click.option(
    "--iterations", type=click.IntRange(1), default=ITERATIONS, help="Iterations on each task."
)
@click.option(
    "--evaluate",
    "evaluation_jobsets",
    type=click.IntRange(1),
    default=100,
    help="Held-out jobsets of a task that costs are means over.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/specialists"),
    help="Folder for the specialists' runs.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("adaptation"),
    help="Folder of the rows of metasched study, where specialists.csv is written, too.",
)
def command(
    run: Path,
    tasks: int,
    count: int,
    task_seed: int,
    iterations: int,
    evaluation_jobsets: int,
    runs: Path,
    out: Path,
) -> None:
    """Train the joint policy of RUN on, for each of some held-out tasks by itself.

    The specialists know their task's objective, weights and workload for as long as they train, on
    jobsets of the task's training split. What they cost bounds what adaptation can reach: the
    figure headroom says how much of the way from the joint policy to them it goes. Specialists
    that are there already are not trained again.

    \b
    Examples:
      metasched specialists runs/joint-0 --tasks 15
      metasched figure headroom --rows adaptation
    """
    from cluster_env.core.seeding import Split
    from meta.tasks import TaskSplit, get_distribution
    from tune_jobs.adapting.rows import SPECIALISTS_FILE
    from tune_jobs.runs.directory import open_run
    from tune_jobs.terminal.progress import Progress
    from tune_jobs.terminal.ray_session import ray_session
    from tune_jobs.terminal.tables import write_table

    joint = open_run(run)
    config = joint.config()
    if not isinstance(config.training, MAMLOptions) or config.training.inner_steps:
        raise InputError(f"{run} is no joint training: its meta.inner_steps is not 0")
    if tasks > count:
        raise InputError(f"--tasks {tasks} is more than the {count} tasks of the methods")
    distribution = get_distribution(config.training.family)
    chosen = TaskSplit(distribution, task_seed, Split.HELD_OUT).balanced(count)[:tasks]
    folder = out / distribution.name
    progress = Progress()
    rows = []
    with ray_session(config):
        progress.start(tasks, unit="specialist")
        for index, task in enumerate(chosen):
            trained = _train(
                config, joint.path, task, runs / f"{distribution.name}-{index}", iterations
            )
            rows.append(
                {
                    "family": distribution.name,
                    "task": index,
                    "iterations": iterations,
                    **_measure(trained, task, evaluation_jobsets),
                }
            )
            progress.step(index + 1, f"{task.name}: {rows[-1]['ratio']:.3f} of the best heuristic")
    progress.close()
    write_table(folder / SPECIALISTS_FILE, rows)
    click.echo(f"Wrote {folder / SPECIALISTS_FILE}")
    click.echo(f"Next: metasched figure headroom --rows {out}")


def _train(
    config: "ExperimentConfig", start: Path, task: "Task", folder: Path, iterations: int
) -> Path:
    """Trains on a task alone, unless that has been done; returns the folder of the run."""
    import yaml

    from rllib_configs.task_schema import TaskSection
    from tune_jobs.runs.training import run_training

    family = folder.with_suffix(".yaml")
    family.parent.mkdir(parents=True, exist_ok=True)
    base = TaskSection.of(task).model_dump(mode="json")
    family.write_text(yaml.safe_dump({"name": folder.name, "base": base}))
    changed = {
        "name": folder.name,
        "task": TaskSection(),
        "training": {
            "start": start,
            "iterations": iterations,
            "family": str(family.absolute()),
            "warm_up": 0.0,
            "entropy_target": ENTROPY,
        },
        "tracking": {"enabled": False},
        "evaluation": {"every": 0, "jobsets": _FEW_JOBSETS},
    }
    updates = {
        key: getattr(config, key).model_copy(update=value) if isinstance(value, dict) else value
        for key, value in changed.items()
    }
    specialist = config.model_copy(update=updates)
    if not (folder / "policy").is_dir():
        result = run_training(specialist, run_dir=folder)
        if result.exit_status:
            raise click.exceptions.Exit(result.exit_status)
    return folder


def _measure(run: Path, task: "Task", jobsets: int) -> "Row":
    from meta.adaptation import learned_policy, load_meta_policy
    from meta.scoring import costs_on
    from meta.study import baselines_of

    policy = load_meta_policy(run)
    acting = learned_policy(policy, task, policy.parameters, "specialist")
    (cost,) = costs_on([acting], task, num_jobsets=jobsets)
    (baseline,) = baselines_of([task], jobsets)
    return {
        "task_name": task.name,
        "cost": cost.value,
        "unfinished": cost.unfinished,
        "best": baseline.cost,
        "ratio": cost.value / baseline.cost,
    }


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
