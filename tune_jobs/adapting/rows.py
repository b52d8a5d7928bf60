"""The rows that adaptation figures are drawn from: one file for each run and family of tasks.

<folder>/<family>/
heuristics.csv     what heuristics cost on each task
<run>.csv          what a run's policy cost on each, after some steps of each adaptation

A file is written when it is complete. It holds a fingerprint of the plan, of the weights and of the
program, so that a call that is repeated measures only what is missing or has changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.worlds import WORLDS
from meta.adaptation import MetaPolicy
from meta.costs import baseline_of, heuristic_costs
from meta.fine_tuning import ReinforcePolicy
from meta.study import StudyPlan, choose_rate, measure
from meta.tasks import Task, get_distribution, objective_kind
from tune_jobs.adapting.sources import SCRATCH, Source, method_of, trained_on
from tune_jobs.measuring.fingerprints import fingerprint, task_as_data
from tune_jobs.measuring.work import Work
from tune_jobs.tables.frames import Cells, Row, Value, number, read_table, write_table
from tune_jobs.terminal.options import SPECIALISTS_TABLE

HEURISTICS_FILE = "heuristics.csv"

COLUMNS = (
    "family",
    "method",
    "name",
    "trained_on",
    "meta_seed",
    "task",
    "objective",
    "seed",
    "step",
    "episodes",
    "cost",
    "best",
    "ratio",
)


def measure_heuristics(
    family: str, plan: StudyPlan, folder: Path, work: Work | None = None
) -> Path:
    """Writes what heuristics cost on the held-out tasks of a family, if that is not there yet.

    The family is the name of a distribution over tasks, or its file. Returns the file of the rows
    in the folder of all rows.
    """
    distribution, work = get_distribution(family), work or Work()
    path = folder / distribution.name / HEURISTICS_FILE
    tasks = plan.split(distribution, Split.HELD_OUT)
    plan = plan.on(distribution)
    settings = {
        "jobsets": plan.num_evaluation_jobsets,
        "warmup": plan.warmup,
        "baselines": plan.baselines,
    }
    mark = _fingerprint(settings, tasks)
    if is_complete(path, mark):
        return path
    head: Row = {"family": distribution.name, "fingerprint": mark}
    found = work.measure(
        _costs_on,
        (head, plan),
        list(enumerate(tasks)),
        keys=[fingerprint(head, index) for index in range(len(tasks))],
        unit="task",
        name=lambda piece, rows: f"heuristics on {piece[1].name}",
    )
    write_table(path, [row for rows in found for row in rows])
    return path


def measure_source(
    source: Source, family: str, plan: StudyPlan, folder: Path, work: Work | None = None
) -> Path:
    """Writes how a policy adapts to the held-out tasks of a family, if that is not there yet.

    Args:
        source: the policy. If it has learned no inner rates and none is given, one is chosen on
            validation tasks.
        family: name of a distribution over tasks, or its file.
        plan: tasks, steps and seeds.
        folder: of all rows; the heuristics' must be there (`measure_heuristics`).
        work: what measures, a rate or a task at a time.

    Raises:
        InputError: if the policy cannot be used.
    """
    distribution, policy, work = get_distribution(family), source.load(), work or Work()
    path = folder / distribution.name / source.file
    steps = tuple(source.times * step for step in plan.steps)
    plan = replace(plan.on(distribution), steps=steps)
    tasks = plan.split(distribution, Split.HELD_OUT)
    mark = _fingerprint({**asdict(plan), "rate": source.rate}, tasks, policy)
    if is_complete(path, mark):
        return path
    scores: dict[float, float] = {}
    rate = source.rate
    if isinstance(policy, MetaPolicy) and rate is None and not policy.learned_rates:
        spread = partial(
            work.measure,
            keys=[fingerprint(mark, one) for one in plan.rates],
            unit="rate",
            name=lambda rate, ratio: f"{path.stem} with inner rate {rate:g}: {ratio:.3f}",
        )
        rate, scored = choose_rate(policy, distribution, plan, spread)
        scores = dict(scored)
        policy = policy.with_rate(rate)
        ends = {min(plan.rates): "lowest", max(plan.rates): "highest"}
        last = len(ends) > 1 and rate in ends  # others, that were not tried, may be better
        more = f" (the {ends[rate]} of those tried)" if last else ""
        work.progress.say(f"{path.stem}: inner rate {rate:g}{more}")
    method = method_of(policy.config) if source.scratch is None else f"{SCRATCH}{source.more}"
    head: dict[str, Value] = {
        "family": distribution.name,
        "method": method,
        "name": SCRATCH if source.scratch is not None else policy.config.name,
        "trained_on": "" if source.scratch is not None else trained_on(policy.config),
        "meta_seed": policy.config.seed,
        "run": source.path.resolve().name,
        "rate": float("nan") if rate is None else rate,
        "rates_tried": " ".join(f"{r:g}:{score:.4f}" for r, score in scores.items()),
        "fingerprint": mark,
    }
    heuristics = read_table(path.with_name(HEURISTICS_FILE), ("task", "best"))
    # The baseline of a task stands in the rows of each of its heuristics.
    baselines = [row for row in heuristics if row["method"] == heuristics[0]["method"]]
    found = work.measure(
        _adapted_to,
        (policy, tasks, plan, source.times, head, baselines),
        range(len(tasks)),
        keys=[fingerprint(head, index) for index in range(len(tasks))],
        unit="task",
        name=lambda index, rows: f"{path.stem} on {tasks[index].name}",
    )
    write_table(path, [row for rows in found for row in rows])
    return path


def standing(name: str, of_world: Sequence[str], of_family: Sequence[str]) -> int:
    """1 for a baseline of the world, 2 for one that the family itself names, else 0.

    Figures show each of the latter beside their best.
    """
    if name not in of_family:
        return 0
    return 1 if tuple(of_family) == tuple(of_world) else 2


def _costs_on(shared: tuple[Row, StudyPlan], piece: tuple[int, Task]) -> list[Row]:
    """The rows of heuristics on a task."""
    (head, plan), (index, task) = shared, piece
    costs = heuristic_costs(task, num_jobsets=plan.num_evaluation_jobsets, warmup=plan.warmup)
    best, axis = baseline_of(task.spec, costs, plan.baselines), task.spec.presentation.axis
    place: Row = {} if axis is None else {axis.name: task.position}
    return [
        {
            "family": head["family"],
            "method": name,
            "policy": costs[name].policy,
            "task": index,
            "objective": objective_kind(task),
            "full_objective": task.objective.name,
            **place,
            "cost": costs[name].value,
            "unfinished": costs[name].num_unfinished,
            **costs[name].side_metrics,
            "best": best.value,
            "best_heuristic": best.policy,
            "baseline": standing(name, task.spec.baselines, plan.baselines),
            "ratio": costs[name].value / best.value,
            "fingerprint": head["fingerprint"],
        }
        for name in costs
    ]


Adapting = tuple[MetaPolicy | ReinforcePolicy, Sequence[Task], StudyPlan, int, Row, Sequence[Cells]]
"""A policy, the tasks of a plan, how many steps count as one, what all rows begin with, and the
row of each task's baseline."""


def _adapted_to(shared: Adapting, index: int) -> list[Row]:
    """The rows of a policy on one of the tasks."""
    policy, tasks, plan, times, head, baselines = shared
    baseline = baselines[index]
    best = number(baseline, "best")
    axes = {axis.name for kind in WORLDS.names() if (axis := WORLDS.get(kind).presentation.axis)}
    return [
        {
            **head,
            "task": index,
            "objective": baseline["objective"],
            **{name: number(baseline, name) for name in sorted(axes) if name in baseline},
            "seed": one.seed,
            "step": one.step // times,
            "episodes": one.step * plan.num_episodes,
            "cost": one.cost,
            "unfinished": one.num_unfinished,
            **one.side_metrics,
            "best": best,
            "best_heuristic": baseline["best_heuristic"],
            "ratio": one.cost / best,
        }
        for one in measure(policy, [tasks[index]], plan)
    ]


def is_complete(path: Path, fingerprint: str) -> bool:
    """Whether a file is there, of the same plan and weights."""
    if not path.is_file():
        return False
    return read_table(path, ())[0].get("fingerprint") == fingerprint


def read_rows(folders: Iterable[str | Path]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """All rows below some folders: those of policies, and those of heuristics.

    Raises:
        InputError: if there are none, a file is broken, or two families' tasks differ.
    """
    learned: list[dict[str, str]] = []
    heuristics: list[dict[str, str]] = []
    for folder in map(Path, folders):
        for file in sorted(folder.glob("**/*.csv")):
            if file.name == SPECIALISTS_TABLE:
                continue
            if file.name == HEURISTICS_FILE:
                heuristics += read_table(file, ("family", "method", "task", "ratio"))
            else:
                learned += read_table(file, COLUMNS)
    if not learned:
        raise InputError("there are no rows to draw; metasched study RUN --out FOLDER makes them")
    return learned, heuristics


def _fingerprint(
    settings: Mapping[str, object],
    tasks: Sequence[Task],
    policy: MetaPolicy | ReinforcePolicy | None = None,
) -> str:
    """A short text that differs when anything differs that the rows depend on."""
    weights = None if policy is None else policy.weights
    return fingerprint(settings, *map(task_as_data, tasks), weights=weights)[:16]
