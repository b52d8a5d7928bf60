"""Training runs, sweeps of them, and the best of some."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from metasched.arguments import Count, CountOrZero, Seed, Several, shown, texts_of
from rllib_configs.changes import Changes, change
from rllib_configs.loading import load_config, make_config
from rllib_configs.registries import prepare
from rllib_configs.schema import ExperimentConfig
from tune_jobs.figures.drawing import draw_figure
from tune_jobs.runs.choosing import choose_run
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.runs.training import RunResult, run_training
from tune_jobs.sweeps.launching import SweepOptions, launch_sweep
from tune_jobs.sweeps.results import table_of
from tune_jobs.tables.frames import frame_of

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def train(
    config: ExperimentConfig | str | Path,
    changes: Changes = (),
    *,
    run: str | Path | None = None,
    address: str | None = None,
    progress: bool = False,
) -> RunResult:
    """Trains a policy, as ``metasched train`` does.

    >>> result = train("deeprm-ppo", {"task.workload.load": 1.1}, run="runs/mine")
    >>> policy, config = load_policy(result.run.path)

    Ray is started for the time of the training, unless this process is connected to one. Ctrl-C
    lets the iteration finish and leaves a checkpoint.

    Args:
        config: name of a preset (`preset_names`), path of a YAML file, or a config, all of whose
            values stay but for the changes.
        changes: settings by their keys, or texts as ``--set`` takes them: ``training.lr=3e-4``.
        run: folder of the run, new or empty; by default a new one below ``config.runs``.
        address: HOST:PORT of a Ray cluster, or ``auto``; by default Ray is started here.
        progress: whether to show on stderr where it is.

    Returns:
        The run's folder as ``run.path``, ``num_iterations``, ``metrics`` of the last iteration, and
        ``evaluation`` on validation jobsets, such as ``evaluation["slowdown"]``.

    Raises:
        InputError: if a setting cannot be used, the folder is not empty, or there are fewer CPUs
            than ``resources.num_runners``; before anything has started.
        Failure: if something fails that can be named, such as a disk that is full.
    """
    return run_training(
        _config_of(config, changes),
        run_dir=None if run is None else Path(run),
        address=address,
        progress=shown(progress),
    )


def resume(
    run: str | Path, changes: Changes = (), *, address: str | None = None, progress: bool = False
) -> RunResult:
    """Goes on with an earlier run, to the same numbers as if it had never stopped.

    >>> result = resume("runs/mine", {"training.iterations": 800})

    Args:
        run: a run's folder, or one of its checkpoints.
        changes: settings on which no number depends, such as ``training.iterations``.
        address: see `train`.
        progress: see `train`.

    Raises:
        InputError: if there is no run or no whole checkpoint, a setting must not be changed, or
            all iterations are done.
    """
    found = find_resumption(Path(run), changes)
    return run_training(found.config, resume=found, address=address, progress=shown(progress))


def algorithm_config(
    config: ExperimentConfig | str | Path, changes: Changes = ()
) -> "AlgorithmConfig":
    """RLlib's config of a training, for scripts of your own, such as with Ray Tune.

    >>> algorithm = algorithm_config("deeprm", {"training.lr": 1e-3}).build_algo()
    >>> algorithm.train()["metasched"]["train/return_mean"]

    The algorithm trains alone: evaluations, checkpoints and MLflow are what `train` adds.

    Args:
        config: see `train`.
        changes: see `train`.

    Raises:
        InputError: if a setting cannot be used, or there are more runners than units of work.
    """
    from rllib_configs import builders  # takes seconds, because it imports RLlib

    prepared = prepare(_config_of(config, changes))
    prepared.require_units()
    return builders.algorithm_config(prepared)


def tune(
    sweep: str | Path | None = None,
    changes: Changes = (),
    *,
    num_trials: Count | None = None,
    seed: Seed | None = None,
    num_concurrent: CountOrZero | None = None,
    runs: str | Path = "runs",
    out: str | Path | None = None,
    resume: str | Path | None = None,
    address: str | None = None,
    track: bool = True,
    tracking_uri: str | None = None,
) -> pd.DataFrame:
    """Tries many settings on Ray Tune, as ``metasched tune`` does.

    Args:
        sweep: name of a sweep, or path of a YAML file.
        changes: to the settings of all trials.
        num_trials: trials for each combination of the grids.
        seed: of the search.
        num_concurrent: trials at a time; 0 runs as many as the CPUs allow.
        runs: folder that holds runs and sweeps.
        out: folder of this sweep, new or empty.
        resume: folder of a sweep to go on with, instead of `sweep`.
        address: see `train`.
        track: whether MLflow records the sweep.
        tracking_uri: MLflow server that gets a copy.

    Returns:
        A row for each trial: its ``status``, ``score``, whether it is the ``best`` of its task, its
        ``run``, and its settings by their keys.

    Raises:
        InputError: if the sweep cannot run; before anything has started.
    """
    options = SweepOptions(
        sweep=None if sweep is None else str(sweep),
        settings=texts_of(changes),
        num_trials=num_trials,
        seed=seed,
        num_concurrent=num_concurrent,
        runs=Path(runs),
        out=None if out is None else Path(out),
        resume=None if resume is None else Path(resume),
        address=address,
        no_track=not track,
        tracking_uri=tracking_uri,
    )
    return frame_of(table_of(launch_sweep(options, draw_figure).folder)).infer_objects()


def choose(
    runs: Sequence[str],
    *,
    num_jobsets: Several = 200,
    seed: Seed = 1000,
    out: str | Path | None = None,
) -> pd.DataFrame:
    """Judges runs of an evolution strategy that differ in their seed, as ``metasched choose`` does.

    Args:
        runs: their folders, globs of them, or names of pretrained policies.
        num_jobsets: jobsets to judge them on.
        seed: of these jobsets, with which no run was trained.
        out: folder for the best policy.

    Returns:
        A row for each run; the best is the one whose ``judged`` is lowest.

    Raises:
        InputError: if a run was not trained by a search, or they are not alike.
    """
    folder = None if out is None else Path(out)
    return choose_run(names=runs, num_jobsets=num_jobsets, seed=seed, out=folder)["runs"]


def _config_of(config: ExperimentConfig | str | Path, changes: Changes) -> ExperimentConfig:
    if not isinstance(config, ExperimentConfig):
        return load_config(config, changes)
    data = config.to_dict()
    change(data, changes)
    return make_config(data)
