"""What ``metasched study`` does: measures how runs adapt to the tasks of a family."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta.maml.options import MAMLOptions
from meta.study import StudyPlan
from meta.tasks import get_distribution
from tune_jobs.commands.adapting import Study
from tune_jobs.commands.shared import part_of
from tune_jobs.measuring.policy_specs import split_names
from tune_jobs.measuring.trained_runs import find_runs
from tune_jobs.measuring.work import Work, working
from tune_jobs.runs.directory import open_run
from tune_jobs.tables.frames import read_frame
from tune_jobs.tables.report import Report
from tune_jobs.terminal.progress import Progress
from tune_jobs.tracking.recording import record_result

if TYPE_CHECKING:
    from tune_jobs.adapting.sources import Source

KEPT = "study.jsonl"
"""Holds the tasks that a call that was stopped has measured."""


def study_adaptation(options: Study, progress: Progress) -> Report:
    """Measures runs, writes their rows, and tells where.

    Raises:
        InputError: if no run is named, one cannot be measured, or a number makes no sense.
    """
    runs = find_runs(split_names(options.runs))
    if not runs:
        raise InputError("name the runs to measure, for instance 'runs/maml-*'")
    if options.num_specialists:
        _require_joint(runs, options)
    steps, rates = tuple(options.steps), tuple(options.rates)
    held_out = options.num_held_out
    plan = part_of(options, StudyPlan, steps=steps, rates=rates, num_evaluation_jobsets=held_out)
    family, out = str(options.family), Path(options.out)
    first = plan.split(get_distribution(family), Split.HELD_OUT)[0]
    # Only now, because it imports PyTorch and Ray, which takes longer than all checks before.
    from tune_jobs.adapting.sources import sources_of

    sources = sources_of(runs, options.num_scratch, options.rate, options.scratch_times)
    for source in sources:  # so that what cannot be measured is known before anything is
        source.load().after(first, replace(plan, steps=(0,)), 0)
    with working(options.num_runners, progress, out / KEPT, options.address) as work:
        paths = _measure_all(sources, family, plan, out, work)
    if options.track:
        _track(paths, runs[0])
    figure = "adaptation"
    if options.num_specialists:
        from tune_jobs.adapting.specialists import train_specialists

        number, iterations = options.num_specialists, options.num_iterations
        paths.append(train_specialists(runs[0], family, plan, number, iterations, out, progress))
        figure = "headroom"
    return Report(
        text=f"Wrote {', '.join(str(path) for path in paths)}\n"
        f"Next: metasched figure {figure} --rows {out}",
        tables={path.stem: partial(pd.read_csv, path) for path in paths},
    )


def _require_joint(runs: Sequence[Path], options: Study) -> None:
    """Makes sure that specialists can be trained from a run.

    Raises:
        InputError: if there are several, it is no joint training, or there are too few tasks.
    """
    if len(runs) != 1:
        raise InputError(f"--specialists begin with one joint policy, but {len(runs)} runs follow")
    training = open_run(runs[0]).config().training
    if not isinstance(training, MAMLOptions) or training.inner_steps:
        raise InputError(f"{runs[0]} was not trained jointly: its training.inner_steps is not 0")
    if options.num_specialists > options.num_tasks:
        raise InputError(
            f"--specialists {options.num_specialists} is more than the {options.num_tasks} tasks"
        )


def _track(paths: Sequence[Path], run: Path) -> None:
    """Records rows as a run of the family; MLflow's step is that of the adaptation."""
    curves = []
    for path in paths:
        means = read_frame(path, numbers=["step", "ratio"]).groupby("step")["ratio"].mean()
        curves += [(int(step), {f"{path.stem}/ratio": mean}) for step, mean in means.items()]
    folder = paths[0].parent
    record_result(folder, "study", f"{folder.name} study", curves=curves, files=paths, beside=run)


def _measure_all(
    sources: "list[Source]", family: str, plan: StudyPlan, out: Path, work: Work
) -> list[Path]:
    """Measures the heuristics, then all sources; the order of the files is that of the sources."""
    from tune_jobs.adapting.rows import measure_heuristics, measure_source

    measure_heuristics(family, plan, out, work)
    return [measure_source(source, family, plan, out, work) for source in sources]
