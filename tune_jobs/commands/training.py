"""Options of training runs and of sweeps of them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from tune_jobs.commands.flags import Argument, Count, CountOrZero, Flag, PythonOnly, Seed
from tune_jobs.commands.shared import FOLDER, Progress, Training

if TYPE_CHECKING:
    from rllib_configs.config.changes import Changes
    from rllib_configs.config.schema import ExperimentConfig

_NEW_FOLDER = click.Path(path_type=Path)


@dataclass(frozen=True, kw_only=True)
class Train(Training):
    """A training run."""

    config: Annotated[
        "ExperimentConfig | str | Path | None",
        Argument(
            "Name of a preset (`preset_names`), path of a YAML file, or a config, all of whose "
            "values stay but for the changes; by default deeprm-operation.",
            "[PRESET]",
        ),
    ] = field(default=None, kw_only=False)
    changes: Annotated[
        "Changes",
        Flag(
            "Change a setting, for instance training.lr=3e-4; can be repeated.",
            "set",
            metavar="KEY=VALUE",
            several=True,
        ),
    ] = field(default=(), kw_only=False)
    run: Annotated[
        str | Path | None,
        Flag("Folder of this run, new or empty; by default one with a generated name."),
    ] = None
    seed: Annotated[Seed | None, Flag("Seed of all random numbers of the run.")] = None
    runs: Annotated[
        str | Path | None,
        Flag("Folder that holds the runs, by default runs.", type=FOLDER, typed=False),
    ] = None
    num_runners: Annotated[
        CountOrZero | None, Flag("Processes that sample; 0 samples in this process.")
    ] = None
    progress: Progress = False

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that options say, by their keys."""
        said = {
            "seed": self.seed,
            "runs": None if self.runs is None else str(self.runs),
            "resources.num_runners": self.num_runners,
            "tracking.enabled": None if self.track else False,
            "tracking.uri": self.tracking_uri,
        }
        return {key: value for key, value in said.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Resume:
    """An earlier run to go on with."""

    run: Annotated[str | Path, PythonOnly("A run's folder, or one of its checkpoints.")] = field(
        kw_only=False
    )
    changes: Annotated[
        "Changes",
        PythonOnly("Settings on which no number depends, such as `training.iterations`."),
    ] = field(default=(), kw_only=False)
    address: Annotated[
        str | None, PythonOnly("HOST:PORT of a Ray cluster, or `auto`; see `train`.")
    ] = None
    progress: Progress = False


@dataclass(frozen=True, kw_only=True)
class Tune(Training):
    """A sweep: many settings that are tried."""

    sweep: Annotated[
        str | Path | None,
        Argument("Name of a sweep, or path of a YAML file.", "[SWEEP]", click.STRING),
    ] = field(default=None, kw_only=False)
    changes: Annotated[
        "Changes",
        Flag(
            "Change a setting of all trials, for instance training.iterations=100.",
            "set",
            metavar="KEY=VALUE",
            several=True,
        ),
    ] = field(default=(), kw_only=False)
    num_trials: Annotated[Count | None, Flag("Trials for each combination of the grids.")] = None
    seed: Annotated[
        Seed | None, Flag("Seed of the search; the seeds of all trials are derived from it.")
    ] = None
    num_concurrent: Annotated[
        CountOrZero | None, Flag("Trials at a time; 0 runs as many as the CPUs allow.")
    ] = None
    runs: Annotated[str | Path, Flag("Folder that holds runs and sweeps.", type=FOLDER)] = Path(
        "runs"
    )
    out: Annotated[
        str | Path | None,
        Flag(
            "Folder of this sweep, new or empty; by default one with a generated name.",
            type=_NEW_FOLDER,
        ),
    ] = None
    resume: Annotated[
        str | Path | None,
        Flag("Resume an interrupted or killed sweep.", metavar="SWEEP_DIR"),
    ] = None
