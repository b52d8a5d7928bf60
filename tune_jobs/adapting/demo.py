"""The last part of ``metasched demo``: a policy that adapts to tasks it has never seen."""

from pathlib import Path
from typing import TYPE_CHECKING

from tune_jobs.adapting.table import TABLE, tabulate, verdict
from tune_jobs.cli import program
from tune_jobs.terminal.tables import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from meta.tasks import Task
    from rllib_configs.schema import ExperimentConfig
    from tune_jobs.runs.directory import RunDirectory
    from tune_jobs.terminal.progress import Progress
    from tune_jobs.terminal.tables import Row
    from tune_jobs.tracking import AnyTracker

FIGURE = "adaptation.png"
STEPS = 3
SHOWN = (0, 1, STEPS)
EPISODES, TASK_JOBSETS = 20, 4
LOOKED_AT = 50
JOBSETS, QUICK_JOBSETS = 100, 20

_QUICK = ("name=demo-meta-quick", "training.iterations=6", "evaluation.jobsets=20")


def meta_config(
    overrides: "Sequence[str]", runs: Path, seed: int, *, quick: bool
) -> "ExperimentConfig":
    """What is trained; with `quick` it learns nothing."""
    from rllib_configs.loading import load_config

    config = load_config("demo-meta", [*overrides, *(_QUICK if quick else ())])
    return config.model_copy(update={"runs": runs, "seed": seed})


def unseen_tasks(family: str) -> "list[Task]":
    """The first held-out task of each objective of a family, among the first `LOOKED_AT`.

    So they are chosen by what they are, before anything is known about how a policy does on them.
    """
    from cluster_env.core.seeding import Split
    from meta.tasks import TaskSplit, get_distribution, objective_kind

    split = TaskSplit(get_distribution(family), 0, Split.HELD_OUT)
    found: dict[str, Task] = {}
    for index in range(LOOKED_AT):
        task = split.task(index)
        found.setdefault(objective_kind(task.section), task)
    return list(found.values())


def adapt_and_draw(
    config: "ExperimentConfig", run: "RunDirectory", progress: "Progress", quick: bool
) -> list[str]:
    """Adapts the run's policy to unseen tasks, and keeps table and figure with the run.

    Args:
        config: of the run.
        run: of meta-training.
        progress: is told what goes on.
        quick: whether costs are means over fewer jobsets.

    Returns:
        Lines for the user: the table, and what it says.
    """
    from meta.adaptation import adapt_parameters, load_meta_policy
    from tune_jobs.tracking.recording import draw_figure, tracked

    jobsets = QUICK_JOBSETS if quick else JOBSETS
    tasks = unseen_tasks(config.training.family)
    tables: list[list[Row]] = []
    with tracked(config, run) as tracker:
        policy = load_meta_policy(run.path)
        for task in tasks:
            progress.say(f"Adapting it to {task.name}, {STEPS} steps of {EPISODES} episodes")
            parameters = adapt_parameters(
                policy,
                task,
                STEPS,
                num_episodes=EPISODES,
                num_jobsets=TASK_JOBSETS,
                seed=config.seed,
            )
            tables.append(
                tabulate(policy, task, parameters, jobsets=jobsets, episodes=EPISODES, shown=SHOWN)
            )
        means = _means(tables)
        _keep(run, tracker, tables, means)
        draw_figure("meta-curves", run, tracker)
        tracker.finish()
    return [
        "Cost over that of the best of tetris, sjf and packer on the same task, of which the "
        "policy has seen nothing",
        f"({jobsets} held-out jobsets a task; a step is a gradient step on {EPISODES} episodes; "
        "lower is better)",
        "",
        *_lines(tasks, tables, means),
        "",
        f"Mean of these tasks: {verdict(means)}",
        "The policy is never told the objective; it shows in the rewards alone. "
        f"This is one task of each objective, and one seed: {program()} methods measures many.",
    ]


def _means(tables: "Sequence[Sequence[Row]]") -> "list[Row]":
    """Rows like those of each task with the mean ratio, and the name without what was tuned."""
    return [
        {
            **({"step": rows[0]["step"]} if "step" in rows[0] else {}),
            "policy": str(rows[0]["policy"]).partition(":")[0],
            "ratio": sum(float(row["ratio"]) for row in rows) / len(rows),
        }
        for rows in zip(*tables, strict=True)
    ]


def _lines(
    tasks: "Sequence[Task]", tables: "Sequence[Sequence[Row]]", means: "Sequence[Row]"
) -> list[str]:
    """The ratios as a table for people: a line for each task."""
    from meta.tasks import objective_name

    columns = [str(row["policy"]).removesuffix(" adaptation") for row in means]
    cells = [["task", "objective", "load", *columns]]
    for task, rows in zip(tasks, tables, strict=True):
        what = [task.name, objective_name(task.section), f"{task.section.workload.load:.0%}"]
        cells.append([*what, *(f"{row['ratio']:.3f}" for row in rows)])
    cells.append(["mean", "", "", *(f"{row['ratio']:.3f}" for row in means)])
    return aligned(cells, names=2)


def _keep(
    run: "RunDirectory",
    tracker: "AnyTracker",
    tables: "Sequence[Sequence[Row]]",
    means: "Sequence[Row]",
) -> None:
    """Writes table and figure, and records both; MLflow's step is that of the adaptation."""
    from tune_jobs.figures.adapted_tasks import draw
    from tune_jobs.figures.style import save
    from tune_jobs.terminal.tables import write_table

    write_table(run.figures / TABLE, [row for rows in tables for row in rows])
    save(draw(run.figures / TABLE), run.figures / FIGURE)
    for row in means:
        name = "adapted" if "step" in row else row["policy"]
        tracker.metrics({f"unseen_task/{name}/ratio": row["ratio"]}, int(row.get("step", 0)))
    for name in (TABLE, FIGURE):
        tracker.artifact(run.figures / name, "figures")
