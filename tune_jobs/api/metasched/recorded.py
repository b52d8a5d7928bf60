"""Figures and recorded results, and what they rest on: joined tables, records, throughput."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import pandas as pd

from cluster_env.core.errors import Failure
from cluster_env.core.registry import unknown
from metasched.arguments import new_file
from metasched.functions import shown, takes, takes_with_world
from tune_jobs.benchmarks.reporting import measure_subjects
from tune_jobs.commands import results as taken
from tune_jobs.commands.comparing import Join
from tune_jobs.commands.results import SUBJECTS, Bench, Record, Results
from tune_jobs.experiments.definition import NAMED, experiment_names, load_experiment
from tune_jobs.experiments.running import calls_of, make_results
from tune_jobs.figures.drawing import check_options, given_fields
from tune_jobs.figures.registry import FIGURES, make_figure
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.replaying.consumer_records import record_consumers
from tune_jobs.tables.joining import join_tables
from tune_jobs.terminal.options import first_comment
from tune_jobs.terminal.output import silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = object  # matplotlib takes a second


@takes_with_world(taken.Figure)
def figure(options: taken.Figure) -> "Figure":
    """Draws a figure, as ``metasched figure`` does; ``metasched figure`` shows the names.

    What a figure does not use is refused. Without `out` neither image nor table is kept.

    >>> figure("deeprm-fig4", num_jobsets=20).savefig("fig4.pdf")

    Raises:
        InputError: if there is no such figure, or what it needs is missing.
    """
    name, given, table = options.name, given_fields(options), options.table
    check_options(name, given, table is not None, track=False)
    request = FigureRequest(progress=shown(options.progress), **given)
    with TemporaryDirectory() as aside:
        folder = Path(aside if options.out is None else options.out)
        _, csv = make_figure(name, request, folder, table)
        drawn: Figure = FIGURES.get(name).draw(csv)
    return drawn


@takes(Results)
def results(options: Results) -> pd.DataFrame:
    """Makes the results of an experiment, as ``metasched results`` does; without a name, lists all.

    Runs are trained one by one, unless `at_once` is given.

    Returns:
        All experiments that come with metasched, or the calls of one: a row for each, with the
        ``call``, the folder of the ``run`` that it trains, and whether it is ``done``.

    Raises:
        InputError: if the experiment cannot be used; before anything is made.
        Failure: if a call fails or is stopped.
    """
    experiment = options.experiment
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
    calls, _ = calls_of(experiment, options)
    if not options.dry_run:
        try:
            make_results(experiment, options)
        except click.exceptions.Exit as end:
            raise Failure(
                f"a call of the experiment ended with status {end.exit_code}; what it printed says "
                "why"
            ) from None
    done = not options.dry_run
    return pd.DataFrame(
        [{"call": str(one), "run": one.run, "done": one.is_done or done} for one in calls]
    )


@takes(Join)
def join(options: Join) -> pd.DataFrame:
    """Joins the CSV files of several comparisons into one, with a column that tells them apart.

    >>> join("told-{share}/comparison.csv", "share=0,0.5,off", "told.csv")

    Raises:
        InputError: if a file cannot be joined; nothing is written then.
    """
    return join_tables(replace(options, out=new_file(options.out, options.force)))["rows"]


@takes(Record)
def record(options: Record) -> pd.DataFrame:
    """Writes a record of each consumer in the world panda: what it asked for, and what it got.

    These are its specification, the weights of its actor, arrival, departure, wait, use, nodes and
    reward. A training with ``training.algorithm=offline`` learns from such records alone.

    Raises:
        InputError: if there is no such policy, or the file cannot be written.
    """
    written = new_file(options.path, options.force)
    record_consumers(options)
    return pd.read_parquet(written)


@takes(Bench)
def bench(options: Bench) -> pd.DataFrame:
    """Measures throughput beside a reference, as ``metasched bench`` does.

    Raises:
        InputError: if a subject or the preset is unknown.
    """
    for subject in options.subjects:
        if subject not in SUBJECTS:
            raise unknown("subject", subject, SUBJECTS)
    preset = None if options.preset is None else str(options.preset)
    return measure_subjects(options.subjects, options.seconds, preset, silent)["numbers"]
