"""What ``metasched specialists`` does: trains a policy for each of some held-out tasks alone."""

from functools import partial
from pathlib import Path

import click
import yaml

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta.costs import baselines_of, costs_on
from meta.maml.options import MAMLOptions
from meta.tasks import Task, TaskSplit, get_distribution
from rllib_configs.registries import prepare
from rllib_configs.schema import ExperimentConfig
from rllib_configs.task_schema import TaskSection
from tune_jobs.runs.directory import RunDirectory, open_run
from tune_jobs.runs.resuming import find_continuation
from tune_jobs.runs.training import run_training
from tune_jobs.tables.frames import Row, frame_of, write_table
from tune_jobs.tables.report import Report
from tune_jobs.terminal.options import SPECIALISTS_TABLE
from tune_jobs.terminal.progress import Progress
from tune_jobs.terminal.ray_session import ray_session
from tune_jobs.tracking.provenance import made_with

ENTROPY = 0.1  # a policy that nobody will adapt needs less than one that is to be
_FEW_JOBSETS = 20  # the validation at the end of each training says nothing here


def train_specialists(
    *,
    run: Path,
    num_tasks: int,
    num_study_tasks: int,
    task_seed: int,
    num_iterations: int,
    num_held_out: int,
    runs: Path,
    out: Path,
    progress: Progress,
) -> Report:
    """Trains specialists and writes what they cost; arguments are options of the command.

    Raises:
        InputError: if the run is no joint training, or there are too few tasks.
    """
    joint = open_run(run)
    config = joint.config()
    if not isinstance(config.training, MAMLOptions) or config.training.inner_steps:
        raise InputError(f"{run} was not trained jointly: its training.inner_steps is not 0")
    if num_tasks > num_study_tasks:
        raise InputError(
            f"--tasks {num_tasks} is more than the {num_study_tasks} tasks of the methods"
        )
    distribution = get_distribution(config.training.family)
    chosen = TaskSplit(distribution, task_seed, Split.HELD_OUT).balanced(num_study_tasks)[
        :num_tasks
    ]
    folder = out / distribution.name
    rows = []
    with ray_session(config):
        progress.start(num_tasks, unit="specialist")
        for index, task in enumerate(chosen):
            trained = _train(
                config, joint.path, task, runs / f"{distribution.name}-{index}", num_iterations
            )
            rows.append(
                {
                    "family": distribution.name,
                    "task": index,
                    "iterations": num_iterations,
                    **_measure(trained, task, num_held_out),
                }
            )
            progress.step(index + 1, f"{task.name}: {rows[-1]['ratio']:.3f} of the best baseline")
    progress.close()
    write_table(folder / SPECIALISTS_TABLE, rows)
    return Report(
        text=f"Wrote {folder / SPECIALISTS_TABLE}\nNext: metasched figure headroom --rows {out}",
        tables={"specialists": partial(frame_of, rows)},
    )


def _train(
    config: ExperimentConfig, start: Path, task: Task, folder: Path, num_iterations: int
) -> Path:
    """Trains on a task alone, as far as that has not been done; returns the folder of the run.

    Raises:
        InputError: if the folder holds a run on another task, or one that began otherwise.
    """
    family = folder.with_suffix(".yaml")
    family.parent.mkdir(parents=True, exist_ok=True)
    base = TaskSection.of(task).model_dump(mode="json")
    begins = f"# begins as {open_run(start).policy_digest()}, at {made_with().get('git.commit')}\n"
    text = begins + yaml.safe_dump({"name": folder.name, "base": base})
    if folder.exists() and family.is_file() and family.read_text() != text:
        raise InputError(
            f"{folder} is a specialist for another task, of another joint policy or of another "
            f"commit of metasched; remove it, or give another folder with --runs"
        )
    family.write_text(text)
    changed = {
        "name": folder.name,
        "task": TaskSection(),
        "training": {
            "start": start,
            "iterations": num_iterations,
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
    if not RunDirectory(folder).has_done(num_iterations):
        found = find_continuation(folder, prepare(specialist))
        result = run_training(specialist, run_dir=folder, resume=found)
        if result.exit_status:
            raise click.exceptions.Exit(result.exit_status)
    return folder


def _measure(run: Path, task: Task, num_jobsets: int) -> Row:
    # Here, because they import PyTorch and Ray, which takes longer than to refuse the options.
    from meta.adaptation import load_meta_policy

    policy = load_meta_policy(run)
    acting = policy.acting(task, policy.parameters, "specialist")
    (cost,) = costs_on([acting], task, num_jobsets=num_jobsets)
    (baseline,) = baselines_of([task], num_jobsets)
    return {
        "task_name": task.name,
        "cost": cost.value,
        "unfinished": cost.num_unfinished,
        **cost.side_metrics,
        "best": baseline.value,
        "ratio": cost.value / baseline.value,
    }
