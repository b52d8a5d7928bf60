"""Options of figures, recorded results, records and benchmarks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from tune_jobs.commands.flags import (
    Argument,
    Count,
    CountOrZero,
    Flag,
    Numbers,
    Positive,
    PythonOnly,
    Seed,
    Time,
    ZeroOrMore,
)
from tune_jobs.commands.shared import OUT_FOLDER, At, Force, Progress, Warmup, World

if TYPE_CHECKING:
    from rllib_configs.config.changes import Changes

SUBJECTS = ("simulator", "replay", "sampling", "training", "runners")


@dataclass(frozen=True, kw_only=True)
class _Figure:
    """A figure, by its name."""

    name: Annotated[str, Argument("Name of the figure.", "[NAME]")] = field(
        default="", kw_only=False
    )
    runs: Annotated[
        Sequence[str],
        Flag(
            "Run directories and globs of run directories; can be repeated.",
            metavar="RUN,...",
        ),
    ] = field(default=(), kw_only=False)


@dataclass(frozen=True, kw_only=True)
class Figure(World, _Figure):
    """What a figure shows; what it does not use must not be given."""

    rows: Annotated[
        Sequence[str | Path],
        Flag(
            "Draw this CSV file of an earlier call, instead of measuring again; for figures of "
            "adaptation, a folder that metasched study wrote. Can be repeated.",
            metavar="PATH",
        ),
    ] = ()
    traces: Annotated[
        Sequence[str | Path],
        Flag(
            "Job log, for figures of job logs; can be repeated. The figure sites takes folders, "
            "too.",
            "trace",
            metavar="FILE",
        ),
    ] = ()
    at: At = ()
    warmup: Warmup = None
    num_jobsets: Annotated[Count | None, Flag("Unseen jobsets at each value, by default 1000.")] = (
        None
    )
    num_episodes: Annotated[
        Count | None, Flag("Episodes of each jobset, by default 1.", typed=False)
    ] = None
    seed: Annotated[
        Seed | None,
        Flag("Seed of the jobsets and of the policies' random numbers, by default 0."),
    ] = None
    decode: Annotated[
        Literal["sample", "argmax", "tuned"] | None,
        Flag("How learned policies choose, as in compare; by default sample."),
    ] = None
    time_limit_s: Annotated[
        Positive | None,
        Flag(
            "Time to search for the best schedule of a jobset, for figures that need it; by "
            "default 12s.",
            type=Time(0.001),
            typed=False,
        ),
    ] = None
    num_runners: Annotated[
        CountOrZero | None, Flag("Processes that evaluate policies in parallel, by default none.")
    ] = None
    out: Annotated[
        str | Path | None,
        Flag("Folder for the image and the CSV file that it is drawn from.", type=OUT_FOLDER),
    ] = None
    progress: Progress = False

    @property
    def table(self) -> Path | None:
        """The CSV file of an earlier call that is drawn again, if it is one."""
        paths = list(map(Path, self.rows))
        return paths[0] if len(paths) == 1 and paths[0].suffix == ".csv" else None


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of an experiment."""

    experiment: Annotated[
        str | None, Argument("Name of an experiment, or path of a YAML file.", "[NAME]")
    ] = field(default=None, kw_only=False)
    seeds: Annotated[
        Sequence[Seed] | None,
        Flag(
            "Training seeds of all runs; by default those of the experiment.",
            metavar="SEED,...",
            type=Numbers(int),
        ),
    ] = None
    out: Annotated[
        str | Path | None,
        Flag(
            "Folder for runs and figures; by default runs/results/NAME. With all, each experiment "
            "has its own folder below runs/results.",
            type=OUT_FOLDER,
        ),
    ] = None
    at_once: Annotated[
        Count | None,
        Flag(
            "Runs to train in parallel, each in one process of about 1.5 GB; by default one per "
            "core, at most 8. 1 trains them one by one, each with the runners of its settings."
        ),
    ] = None
    force: Annotated[
        bool, Flag("Continue even if files differ from the commit that the record names.")
    ] = False
    dry_run: Annotated[bool, Flag("Show the commands and run none.")] = False
    logs: Annotated[
        str | Path | None,
        Flag(
            "Folder of job logs, for sites, site-adaptation and cunha.",
            metavar="FOLDER",
            type=click.Path(exists=True, file_okay=False),
        ),
    ] = None
    max_wait: Annotated[
        str | None,
        Flag(
            "Bound on waits, for sites: a time such as 5d, 0 for none, or, by default, x2, twice "
            "the longest wait of fcfs:easy in the earlier half of each log.",
            metavar="TIME|xN",
        ),
    ] = None
    policies: Annotated[
        Sequence[str],
        Flag(
            "Run directories beside heuristics and shipped policies, for sites; can be repeated.",
            metavar="RUN,...",
        ),
    ] = ()
    processors: Annotated[
        Sequence[str],
        Flag(
            "Processors of the machine of a log, for sites; by default those of its header, else "
            "as many as were in use at once. Can be repeated.",
            metavar="NAME=N,...",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Record:
    """Records of the consumers in the world panda."""

    policy: Annotated[str | Path, PythonOnly("A run, or a preset or YAML file.")] = field(
        kw_only=False
    )
    path: Annotated[str | Path, PythonOnly("The file, in Parquet.")] = field(kw_only=False)
    changes: Annotated["Changes", PythonOnly("Changes to the preset.")] = ()
    num_jobsets: Annotated[Count, PythonOnly("Training jobsets.")] = 16
    num_episodes: Annotated[Count, PythonOnly("Episodes of each jobset.")] = 8
    noise: Annotated[
        ZeroOrMore,
        PythonOnly("Standard deviation of what is added to the actors' weights in each episode."),
    ] = 0.5
    seed: Annotated[Seed, PythonOnly("Seed of the noise.")] = 0
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What is measured beside a reference."""

    subjects: Annotated[
        Sequence[str],
        Argument(
            "What to measure; by default simulator, replay, sampling and training.",
            "[SUBJECT]...",
            click.Choice(SUBJECTS),
        ),
    ] = field(default=(), kw_only=False)
    seconds: Annotated[Positive, Flag("Time to measure each number, without the warm-up.")] = 4.0
    preset: Annotated[
        str | Path | None,
        Flag(
            "Preset of the subjects training and runners. By default training measures deeprm and "
            "deeprm-maml, and runners measures deeprm-maml.",
            metavar="PRESET|FILE",
            type=click.STRING,
        ),
    ] = None
