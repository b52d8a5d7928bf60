"""Options of adaptation, to one task and to many."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from tune_jobs.commands.flags import (
    Argument,
    Count,
    CountOrZero,
    Flag,
    Numbers,
    Seed,
    Several,
    StepsOfAdaptation,
)
from tune_jobs.commands.shared import OUT_FOLDER, ClusterRunners, Keep, Progress, Steps

if TYPE_CHECKING:
    from cluster_env.task import Task

_RATES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, kw_only=True)
class Adapt(Steps):
    """An adaptation of a trained policy to one task."""

    run: Annotated[
        str | Path,
        Argument(
            "Folder of a run that trained a set scorer, by `maml` or `ppo`, or one that `out` "
            "named before."
        ),
    ] = field(kw_only=False)
    task: Annotated[
        "Task | Sequence[str]",
        Flag(
            "FAMILY:INDEX, a YAML file, or KEY=VALUE; can be repeated to change more of the task.",
            metavar="TASK",
            several=True,
        ),
    ] = field(default=(), kw_only=False)
    num_steps: Annotated[StepsOfAdaptation, Flag("Steps of adaptation, at most 1000.")] = field(
        default=3, kw_only=False
    )
    seed: Annotated[Seed, Flag("Seed of the adaptation's jobsets and actions.", typed=False)] = 0
    out: Annotated[
        str | Path | None,
        Flag("New folder for the adapted policy and its table.", type=OUT_FOLDER),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Study(ClusterRunners, Steps):
    """Adaptations of runs to many tasks."""

    runs: Annotated[Sequence[str], Argument("Folders of runs and globs of them.", "RUN...")] = (
        field(kw_only=False, default=())
    )
    family: Annotated[
        str | Path,
        Flag(
            "Family of tasks: objectives, priorities, workloads, mixed, sites, or a YAML file.",
            metavar="NAME|FILE",
            type=click.STRING,
        ),
    ] = "objectives"
    num_tasks: Annotated[Count, Flag("Held-out tasks, equally many of each kind of objective.")] = (
        40
    )
    task_seed: Annotated[Seed, Flag("Seed of the tasks.", typed=False)] = 0
    num_episodes: Annotated[Several, Flag("Episodes of a step.", typed=False)] = 20
    num_jobsets: Annotated[Count, Flag("Jobsets of a step.", typed=False)] = 4
    num_seeds: Annotated[Count, Flag("Adaptations of each task.")] = 3
    steps: Annotated[
        Sequence[int],
        Flag("Steps after which to evaluate.", metavar="K,...", type=Numbers(int)),
    ] = (0, 1, 2, 3, 5, 10)
    num_held_out: Annotated[Count, Flag("Held-out jobsets of a task.", "evaluate", typed=False)] = (
        100
    )
    keep: Annotated[
        Keep,
        Flag(
            "Which policy is measured after some steps: last, the one after all of them, or best, "
            "the one that is best so far by validation jobsets, as metasched adapt keeps it.",
            typed=False,
        ),
    ] = "last"
    rates: Annotated[
        Sequence[float],
        Flag(
            "Inner rates to choose from, on validation tasks, where --rate is not given and a run "
            "learned none.",
            metavar="RATE,...",
            type=Numbers(),
            typed=False,
        ),
    ] = _RATES
    num_rate_tasks: Annotated[
        Count, Flag("Validation tasks to choose the inner rate on.", typed=False)
    ] = 15
    num_scratch: Annotated[
        CountOrZero,
        Flag("Number of untrained policies, built like the first run, to measure as well."),
    ] = 0
    scratch_times: Annotated[
        Count,
        Flag("Steps of an untrained policy for each step of the others.", metavar="N", typed=False),
    ] = 1
    num_specialists: Annotated[
        CountOrZero,
        Flag(
            "Also train a policy for each of the first N tasks alone, from the one joint policy "
            "RUN.",
            metavar="N",
        ),
    ] = 0
    num_iterations: Annotated[Count, Flag("Iterations of a specialist.", typed=False)] = 100
    out: Annotated[
        str | Path,
        Flag("Folder for the rows, one file for each run and family.", type=OUT_FOLDER),
    ] = Path("adaptation")
    track: Annotated[
        bool, Flag("Record means and rows in MLflow, beside the runs.", typed=False)
    ] = False
    progress: Progress = False
