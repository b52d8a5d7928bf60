"""What ``metasched study`` does: measures how runs adapt to the tasks of a family."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pandas as pd

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta.costs import Keep
from meta.maml.options import MAMLOptions
from meta.study import StudyPlan
from meta.tasks import get_distribution
from rllib_configs.policy_files import Decode
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

N = TypeVar("N", int, float)

KEPT = "study.jsonl"
"""Holds the tasks that a call that was stopped has measured."""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What a study measures: options of ``metasched study``, whose help says what each means."""

    runs: Sequence[str]
    family: str
    num_tasks: int
    task_seed: int
    num_seeds: int
    steps: str
    num_episodes: int
    num_jobsets: int
    num_held_out: int
    decode: Decode
    keep: Keep
    rate: float | None
    rates: str
    num_rate_tasks: int
    num_scratch: int
    scratch_times: int
    num_specialists: int = 0
    num_iterations: int = 100
    num_runners: int = 0
    address: str | None = None

    def plan(self) -> StudyPlan:
        """Tasks, steps and seeds; raises `InputError` if a number makes no sense."""
        return StudyPlan(
            num_tasks=self.num_tasks,
            task_seed=self.task_seed,
            num_seeds=self.num_seeds,
            steps=_numbers("--steps", self.steps, int),
            num_episodes=self.num_episodes,
            num_jobsets=self.num_jobsets,
            num_evaluation_jobsets=self.num_held_out,
            rates=_numbers("--rates", self.rates, float),
            num_rate_tasks=self.num_rate_tasks,
            decode=self.decode,
            keep=self.keep,
        )


def study_adaptation(
    options: StudyOptions, progress: Progress, *, out: Path, track: bool = False
) -> Report:
    """Measures runs, writes their rows, and tells where; keywords are options of the command.

    Raises:
        InputError: if no run is named, or one cannot be measured.
    """
    runs = find_runs(split_names(options.runs))
    if not runs:
        raise InputError("name the runs to measure, for instance 'runs/maml-*'")
    if options.num_specialists:
        _require_joint(runs, options)
    plan = options.plan()
    first = plan.split(get_distribution(options.family), Split.HELD_OUT)[0]
    # Only now, because it imports PyTorch and Ray, which takes longer than all checks before.
    from tune_jobs.adapting.sources import sources_of

    sources = sources_of(runs, options.num_scratch, options.rate, options.scratch_times)
    for source in sources:  # so that what cannot be measured is known before anything is
        source.load().after(first, replace(plan, steps=(0,)), 0)
    with working(options.num_runners, progress, out / KEPT, options.address) as work:
        paths = _measure_all(sources, options.family, plan, out, work)
    if track:
        _track(paths, runs[0])
    figure = "adaptation"
    if options.num_specialists:
        from tune_jobs.adapting.specialists import train_specialists

        number, iterations = options.num_specialists, options.num_iterations
        paths.append(
            train_specialists(runs[0], options.family, plan, number, iterations, out, progress)
        )
        figure = "headroom"
    return Report(
        text=f"Wrote {', '.join(str(path) for path in paths)}\n"
        f"Next: metasched figure {figure} --rows {out}",
        tables={path.stem: partial(pd.read_csv, path) for path in paths},
    )


def _require_joint(runs: Sequence[Path], options: StudyOptions) -> None:
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


def _numbers(option: str, text: str, kind: type[N]) -> tuple[N, ...]:
    """Reads ``1,2,3``.

    Raises:
        InputError: if a part is no number.
    """
    try:
        return tuple(kind(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"{option} takes numbers separated by commas, not '{text}'") from None
