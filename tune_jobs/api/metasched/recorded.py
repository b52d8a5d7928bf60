"""Figures and recorded results, and what they rest on: joined tables, records, throughput."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import pandas as pd

from cluster_env.core.errors import Failure
from cluster_env.core.registry import unknown
from metasched.arguments import (
    Count,
    CountOrZero,
    Option,
    Positive,
    Seed,
    ZeroOrMore,
    new_file,
    shown,
    task_options,
    texts_of,
)
from rllib_configs.changes import Changes
from rllib_configs.policy_files import Decode
from tune_jobs.bench import SUBJECTS
from tune_jobs.benchmarks.reporting import measure_subjects
from tune_jobs.experiments.definition import NAMED, experiment_names, load_experiment
from tune_jobs.experiments.listing import list_calls
from tune_jobs.experiments.running import make_results
from tune_jobs.figures.drawing import check_options
from tune_jobs.figures.registry import FIGURES, make_figure
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.replaying.consumer_records import record_consumers
from tune_jobs.tables.joining import join_tables
from tune_jobs.terminal.options import first_comment
from tune_jobs.terminal.output import silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(
    name: str,
    runs: Sequence[str] = (),
    *,
    rows: Sequence[str | Path] = (),
    traces: Sequence[str | Path] = (),
    at: Sequence[float] = (),
    on: str | Path | None = None,
    changes: Changes = (),
    warmup: CountOrZero | None = None,
    num_jobsets: Count | None = None,
    num_episodes: Count | None = None,
    seed: Seed | None = None,
    decode: Decode | None = None,
    limits: Sequence[str] = (),
    time_limit_s: Positive | None = None,
    num_runners: CountOrZero | None = None,
    out: str | Path | None = None,
    table: str | Path | None = None,
    progress: bool = False,
    **options: Option,
) -> "Figure":
    """Draws a figure, as ``metasched figure`` does; ``metasched figure --list`` shows the names.

    What a figure does not use is refused. Where nothing is given, the command's defaults hold.

    >>> figure("deeprm-fig4", num_jobsets=20).savefig("fig4.pdf")

    Args:
        name: of the figure.
        runs: folders of runs and globs of them.
        rows: folders that `study` wrote.
        traces: job logs.
        at: values of the setting that the world's comparisons vary.
        on: preset or YAML file, for the task.
        changes: to its settings.
        warmup: steps at both ends of the arrival window whose jobs do not count.
        num_jobsets: unseen jobsets.
        num_episodes: episodes of each jobset.
        seed: of the jobsets and of the policies' random numbers.
        decode: how the policies of runs choose.
        limits: of the guard, as texts like ``wait=0.5``.
        time_limit_s: of the search for the best schedule of a jobset.
        num_runners: processes that evaluate policies.
        out: folder for the image and its CSV file; by default none is kept.
        table: CSV file of an earlier call, which is drawn again.
        progress: whether to show on stderr where it is.
        options: of the world, as in the command's help: ``window=500``.

    Raises:
        InputError: if there is no such figure, or what it needs is missing.
    """
    fields = {
        "runs": list(runs),
        "rows": list(map(Path, rows)),
        "traces": list(map(Path, traces)),
        "at": list(at),
        "source": None if on is None else str(on),
        "overrides": texts_of(changes),
        "task_options": task_options(options),
        "warmup": warmup,
        "num_jobsets": num_jobsets,
        "num_episodes": num_episodes,
        "seed": seed,
        "decode": decode,
        "limits": list(limits),
        "time_limit_s": time_limit_s,
        "num_runners": num_runners,
    }
    given = {name: value for name, value in fields.items() if value not in (None, [], {})}
    check_options(name, given, table is not None, track=False)
    request = FigureRequest(**given, progress=shown(progress))  # type: ignore[arg-type]
    with TemporaryDirectory() as aside:
        folder = Path(aside if out is None else out)
        _, csv = make_figure(name, request, folder, None if table is None else Path(table))
        drawn: Figure = FIGURES.get(name).draw(csv)
    return drawn


def results(
    experiment: str | None = None,
    *,
    seeds: Sequence[Seed] | None = None,
    out: str | Path | None = None,
    at_once: Count = 1,
    force: bool = False,
    dry_run: bool = False,
    logs: str | Path | None = None,
    max_wait: str | None = None,
    policies: Sequence[str] = (),
    processors: Sequence[str] = (),
) -> pd.DataFrame:
    """Makes the results of an experiment, as ``metasched results`` does; without a name, lists all.

    Args:
        experiment: name of an experiment, or path of a YAML file.
        seeds: training seeds of all runs; by default those of the experiment.
        out: folder for runs and figures; by default runs/results/NAME.
        at_once: runs to train in parallel.
        force: whether to continue if files differ from the commit that the record names.
        dry_run: whether to make nothing.
        logs: folder of job logs, for experiments on logs.
        max_wait: bound on waits, for sites.
        policies: folders of runs beside heuristics, for sites.
        processors: of the machine of a log, as texts ``NAME=N``, for sites.

    Returns:
        A row for each experiment: ``name``, ``about``, ``minutes``. Of one experiment, a row for
        each of its calls: ``call``, the folder of the ``run`` that it trains, and ``done``.

    Raises:
        InputError: if the experiment cannot be used; before anything is made.
        Failure: if a call fails or is stopped.
    """
    if experiment is None:
        listed = [(name, load_experiment(name)) for name in experiment_names()]
        return pd.DataFrame(
            [
                {
                    "name": name,
                    "about": first_comment(NAMED / f"{name}.yaml"),
                    "minutes": one.minutes,
                }
                for name, one in listed
            ]
        )
    said = {"logs": logs and str(logs), "max-wait": max_wait}
    said |= {"policy": ",".join(policies), "processors": ",".join(processors)}
    given = {name: text for name, text in said.items() if text}
    folder = Path("runs/results") / Path(experiment).stem if out is None else Path(out)
    calls = list_calls(load_experiment(experiment), folder, seeds, given)
    if not dry_run:
        try:
            make_results(experiment, folder, seeds, False, force, at_once, given)
        except click.exceptions.Exit as end:
            raise Failure(
                f"a call of the experiment ended with status {end.exit_code}; what it printed says "
                "why"
            ) from None
    return pd.DataFrame(
        [{"call": str(one), "run": one.run, "done": one.is_done or not dry_run} for one in calls]
    )


def join(tables: str, by: str, out: str | Path, *, force: bool = False) -> pd.DataFrame:
    """Joins the CSV files of several commands into one, as ``metasched join`` does.

    >>> join("told-{share}/comparison.csv", "share=0,0.5,off", "told.csv")

    Args:
        tables: their common path, with the name in braces where the paths differ.
        by: name of the new first column, and its value for each table.
        out: CSV file for the rows of all tables.
        force: whether a file that is there is replaced.

    Raises:
        InputError: if a file cannot be joined; nothing is written then.
    """
    return join_tables(tables, by, new_file(out, force))["rows"]


def record(
    policy: str | Path,
    path: str | Path,
    *,
    changes: Changes = (),
    num_jobsets: Count = 16,
    num_episodes: Count = 8,
    noise: ZeroOrMore = 0.5,
    seed: Seed = 0,
    force: bool = False,
) -> pd.DataFrame:
    """Writes a record of each consumer in the world panda: what it asked for, and what it got.

    These are its specification, the weights of its actor, arrival, departure, wait, use, nodes and
    reward. A training with ``training.algorithm=offline`` learns from such records alone.

    Args:
        policy: a run, or a preset or YAML file.
        path: the file, in Parquet.
        force: whether a file that is there is replaced.
        changes: to the preset.
        num_jobsets: training jobsets.
        num_episodes: episodes of each jobset.
        noise: standard deviation of what is added to the actors' weights in each episode.
        seed: of the noise.

    Raises:
        InputError: if there is no such policy, or the file cannot be written.
    """
    record_consumers(
        source=str(policy),
        path=(written := new_file(path, force)),
        overrides=texts_of(changes),
        num_jobsets=num_jobsets,
        episodes=num_episodes,
        noise=noise,
        seed=seed,
    )
    return pd.read_parquet(written)


def bench(
    subjects: Sequence[str] = (), *, seconds: Positive = 4.0, preset: str | Path | None = None
) -> pd.DataFrame:
    """Measures throughput beside a reference, as ``metasched bench`` does.

    Args:
        subjects: what to measure; by default simulator, replay, sampling and training.
        seconds: time to measure each number.
        preset: of the subjects training and runners.

    Raises:
        InputError: if a subject or the preset is unknown.
    """
    for subject in subjects:
        if subject not in SUBJECTS:
            raise unknown("subject", subject, SUBJECTS)
    named = None if preset is None else str(preset)
    return measure_subjects(subjects, seconds, named, silent)["numbers"]
