"""The last part of ``metasched demo``: a policy that adapts to a task it has never seen."""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tune_jobs.adaptation_table import TABLE, format_table, tabulate, verdict
from tune_jobs.cli import program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from meta.tasks import Task
    from rllib_configs.schema import ExperimentConfig
    from tune_jobs.progress import Progress
    from tune_jobs.runs import RunDirectory
    from tune_jobs.tables import Row
    from tune_jobs.tracking import AnyTracker

FIGURE = "adaptation.png"
STEPS = 3
SHOWN = (0, 1, STEPS)
EPISODES, TASK_JOBSETS = 20, 4
JOBSETS, QUICK_JOBSETS = 100, 20

_QUICK = ("name=demo-meta-quick", "training.iterations=6", "evaluation.jobsets=20")


def meta_config(
    overrides: "Sequence[str]", runs: Path, seed: int, *, quick: bool
) -> "ExperimentConfig":
    """What is trained; with `quick` it learns nothing."""
    from rllib_configs.loading import load_config

    config = load_config("demo-meta", [*overrides, *(_QUICK if quick else ())])
    return config.model_copy(update={"runs": runs, "seed": seed})


def unseen_task(family: str) -> "Task":
    """The first held-out task of a family whose objective is not the one of its warm-up.

    So it is chosen by what it is, before anything is known about how a policy does on it.
    """
    from cluster_env.core.seeding import Split
    from meta.tasks import TaskSplit, get_distribution, objective_name

    distribution = get_distribution(family)
    split = TaskSplit(distribution, 0, Split.HELD_OUT)
    usual = objective_name(distribution.base)
    tasks = (split.task(index) for index in count())
    return next(task for task in tasks if objective_name(task.section) != usual)


def adapt_and_draw(
    config: "ExperimentConfig", run: "RunDirectory", progress: "Progress", quick: bool
) -> list[str]:
    """Adapts the run's policy to an unseen task, and keeps table and figure with the run.

    Args:
        config: of the run.
        run: of meta-training.
        progress: is told what goes on.
        quick: whether costs are means over fewer jobsets.

    Returns:
        Lines for the user: the table, and what it says.
    """
    from meta.adaptation import adapt_parameters, load_meta_policy
    from tune_jobs.recording import draw_figure, tracked

    assert config.meta is not None
    task = unseen_task(config.meta.family)
    with tracked(config, run) as tracker:
        progress.say(f"Adapting it to {task.name}, {STEPS} steps of {EPISODES} episodes")
        policy = load_meta_policy(run.path)
        parameters = adapt_parameters(
            policy, task, STEPS, episodes=EPISODES, jobsets=TASK_JOBSETS, seed=config.seed
        )
        rows = tabulate(
            policy,
            task,
            parameters,
            jobsets=QUICK_JOBSETS if quick else JOBSETS,
            episodes=EPISODES,
            shown=SHOWN,
        )
        _keep(run, tracker, task, rows)
        draw_figure("meta-curves", run, tracker)
        tracker.finish()
    return [
        *format_table(task, rows).splitlines(),
        "",
        f"{verdict(rows)} The policy is never told the objective; it shows in the rewards alone. "
        f"This is one task and one seed: {program()} arms measures many.",
    ]


def _keep(run: "RunDirectory", tracker: "AnyTracker", task: "Task", rows: "Sequence[Row]") -> None:
    """Writes table and figure, and records both; MLflow's step is that of the adaptation."""
    from tune_jobs.figures.one_task import draw
    from tune_jobs.figures.style import save
    from tune_jobs.tables import write_table

    write_table(run.figures / TABLE, rows)
    save(draw(run.figures / TABLE), run.figures / FIGURE)
    tracker.tags({"adapted_to": task.name})
    for row in rows:
        name = "adapted" if "step" in row else str(row["policy"]).partition(":")[0]
        numbers = {f"unseen_task/{name}/{part}": row[part] for part in ("cost", "ratio")}
        tracker.metrics(numbers, int(row.get("step", 0)))
    for name in (TABLE, FIGURE):
        tracker.artifact(run.figures / name, "figures")
