"""What ``metasched study --specialists`` does: trains a policy for each of some tasks alone."""

from pathlib import Path

import click
import yaml

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta.costs import baselines_of, costs_on
from meta.study import StudyPlan
from meta.tasks import Task, get_distribution
from rllib_configs.config.schema import ExperimentConfig, prepare
from rllib_configs.config.task_schema import TaskSection
from tune_jobs.measuring.work import Work
from tune_jobs.processes.ray_session import ray_session
from tune_jobs.runs.directory import RunDirectory, open_run
from tune_jobs.runs.resuming import find_continuation
from tune_jobs.runs.training import run_training
from tune_jobs.tables.frames import Row, write_table
from tune_jobs.terminal.options import SPECIALISTS_TABLE
from tune_jobs.terminal.progress import Progress
from tune_jobs.tracking.provenance import made_with

ENTROPY = 0.1  # a policy that nobody will adapt needs less than one that is to be
_FEW_JOBSETS = 20  # the validation at the end of each training says nothing here


def train_specialists(
    run: Path,
    family: str,
    plan: StudyPlan,
    count: int,
    iterations: int,
    out: Path,
    progress: Progress,
) -> Path:
    """Trains specialists, and writes what they cost.

    Args:
        run: a joint training.
        family: of the tasks.
        plan: of the study, whose first tasks are taken.
        count: how many of them.
        iterations: of each training.
        out: folder of the study's rows; runs are in the folder of the family.
        progress: told of each specialist.

    Returns:
        The file with a row for each.
    """
    joint = open_run(run)
    distribution = get_distribution(family)
    folder = out / distribution.name
    shared = joint.path, joint.config(), folder, iterations, plan.num_evaluation_jobsets
    tasks = list(enumerate(plan.split(distribution, Split.HELD_OUT)[:count]))
    # Each training has runners of its own.
    work = Work(progress=progress)
    with ray_session(joint.config()):
        rows = list(work.measure(_specialist, shared, tasks, unit="specialist", name=_name))
    write_table(folder / SPECIALISTS_TABLE, rows)
    return folder / SPECIALISTS_TABLE


def _specialist(
    shared: tuple[Path, ExperimentConfig, Path, int, int], piece: tuple[int, Task]
) -> Row:
    """Trains on a task, and measures what came of it: a piece of work."""
    (start, config, folder, iterations, num_jobsets), (index, task) = shared, piece
    own = folder / "specialists" / f"{folder.name}-{index}"
    trained = _train(config, start, task, own, iterations)
    head: Row = {"family": folder.name, "task": index, "iterations": iterations}
    return {**head, **_measure(trained, task, num_jobsets)}


def _name(piece: tuple[int, Task], row: Row) -> str:
    return f"{piece[1].name}: {row['ratio']:.3f} of the best baseline"


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
            f"commit of metasched; remove it, or give another folder with --out"
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
