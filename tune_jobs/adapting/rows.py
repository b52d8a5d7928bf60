"""The rows that adaptation figures are drawn from: one file for each run and family of tasks.

<folder>/<family>/
heuristics.csv     what heuristics cost on each task
<run>.csv          what a run's policy cost on each, after some steps of each adaptation

A file is written when it is complete. It holds a fingerprint of the plan, of the weights and of the
commit, so that a call that is repeated measures only what is missing or has changed.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.worlds import WORLDS
from meta.adaptation import MetaPolicy
from meta.costs import Cost, baseline_of, heuristic_costs
from meta.fine_tuning import ReinforcePolicy
from meta.study import Measured, StudyPlan, choose_rate, measure
from meta.tasks import Task, get_distribution, objective_kind
from rllib_configs.task_schema import TaskSection
from tune_jobs.adapting.sources import SCRATCH, Source, method_of, trained_on
from tune_jobs.tables.frames import Row, Value, number, read_table, write_table
from tune_jobs.terminal.options import SPECIALISTS_TABLE
from tune_jobs.terminal.pieces import Spread, here
from tune_jobs.tracking.provenance import made_with

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
    family: str,
    plan: StudyPlan,
    folder: Path,
    report: Callable[[str], None] = lambda text: None,
    spread: Spread = here,
) -> Path:
    """Writes what heuristics cost on the held-out tasks of a family, if that is not there yet.

    The family is the name of a distribution over tasks, or its file. Returns the file of the rows
    in the folder of all rows; `report` hears of each task that is done.
    """
    distribution = get_distribution(family)
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
    rows: list[Row] = []
    of_tasks = spread(_costs_on, plan, tasks)
    for index, (task, costs) in enumerate(zip(tasks, of_tasks, strict=True)):
        best, axis = baseline_of(task.spec, costs, plan.baselines), task.spec.presentation.axis
        place: Row = {} if axis is None else {axis.name: task.position}
        rows += [
            {
                "family": distribution.name,
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
                "fingerprint": mark,
            }
            for name in costs
        ]
        report(f"heuristics on {task.name}")
    write_table(path, rows)
    return path


def measure_source(
    source: Source,
    family: str,
    plan: StudyPlan,
    folder: Path,
    report: Callable[[str], None] = lambda text: None,
    spread: Spread = here,
) -> Path:
    """Writes how a policy adapts to the held-out tasks of a family, if that is not there yet.

    Args:
        source: the policy. If it has learned no inner rates and none is given, one is chosen on
            validation tasks.
        family: name of a distribution over tasks, or its file.
        plan: tasks, steps and seeds.
        folder: of all rows; the heuristics' must be there (`measure_heuristics`).
        report: is told of what is done.
        spread: what measures, a rate or a task at a time.

    Raises:
        InputError: if the policy cannot be used.
    """
    distribution, policy = get_distribution(family), source.load()
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
        rate, scored = choose_rate(policy, distribution, plan, spread)
        scores = dict(scored)
        policy = policy.with_rate(rate)
        ends = {min(plan.rates): "lowest", max(plan.rates): "highest"}
        last = len(ends) > 1 and rate in ends  # others, that were not tried, may be better
        more = f" (the {ends[rate]} of those tried)" if last else ""
        report(f"{path.stem}: inner rate {rate:g}{more}")
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
    axes = {axis.name for kind in WORLDS.names() if (axis := WORLDS.get(kind).presentation.axis)}
    rows: list[Row] = []
    for on_task in spread(_measure_on, (policy, tasks, plan), range(len(tasks))):
        for one in on_task:
            baseline = baselines[one.task]
            best = number(baseline, "best")
            rows.append(
                {
                    **head,
                    "task": one.task,
                    "objective": baseline["objective"],
                    **{name: number(baseline, name) for name in sorted(axes) if name in baseline},
                    "seed": one.seed,
                    "step": one.step // source.times,
                    "episodes": one.step * plan.num_episodes,
                    "cost": one.cost,
                    "unfinished": one.num_unfinished,
                    **one.side_metrics,
                    "best": best,
                    "best_heuristic": baseline["best_heuristic"],
                    "ratio": one.cost / best,
                }
            )
        report(f"{path.stem} on {tasks[on_task[0].task].name}")
    write_table(path, rows)
    return path


def standing(name: str, of_world: Sequence[str], of_family: Sequence[str]) -> int:
    """1 for a baseline of the world, 2 for one that the family itself names, else 0.

    Figures show each of the latter beside their best.
    """
    if name not in of_family:
        return 0
    return 1 if tuple(of_family) == tuple(of_world) else 2


def _costs_on(plan: StudyPlan, task: Task) -> dict[str, Cost]:
    """What heuristics cost on a task: a piece of work, see `Spread`."""
    return heuristic_costs(task, num_jobsets=plan.num_evaluation_jobsets, warmup=plan.warmup)


def _measure_on(
    shared: tuple[MetaPolicy | ReinforcePolicy, Sequence[Task], StudyPlan], index: int
) -> list[Measured]:
    """What a policy costs on one of the tasks: a piece of work, see `Spread`."""
    policy, tasks, plan = shared
    found = measure(policy, [tasks[index]], plan)
    return [replace(one, task=index) for one in found]


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
    """A short text that differs when anything differs that the rows depend on.

    Of the program that is its commit, or its version where it is installed; nobody knows which of
    the changed files of a working tree matter.
    """
    sections = [(task.seed, TaskSection.of(task).model_dump(mode="json")) for task in tasks]
    made = {name: text for name, text in made_with().items() if name != "git.dirty"}
    digest = hashlib.sha256(json.dumps([settings, sections, made], sort_keys=True).encode())
    if policy is not None:
        for name in sorted(policy.weights):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(policy.weights[name]).tobytes())
    return digest.hexdigest()[:16]
