"""Training runs, sweeps of them, and the best of some."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from metasched.functions import shown, takes
from rllib_configs.config.changes import Changes
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from tune_jobs.commands.comparing import Choose
from tune_jobs.commands.training import Resume, Train, Tune
from tune_jobs.figures.drawing import draw_figure
from tune_jobs.runs.choosing import choose_run
from tune_jobs.runs.launching import DEFAULT_PRESET, changes_of
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.runs.training import RunResult, run_training
from tune_jobs.sweeps.launching import launch_sweep
from tune_jobs.sweeps.results import table_of
from tune_jobs.tables.frames import frame_of

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


@takes(Train)
def train(options: Train) -> RunResult:
    """Trains a policy, as ``metasched train`` does.

    >>> result = train("deeprm-ppo", {"task.workload.load": 1.1}, run="runs/mine")
    >>> policy, config = load_policy(result.run.path)

    Ray is started for the time of the training, unless this process is connected to one. Ctrl-C
    lets the iteration finish and leaves a checkpoint.

    Returns:
        The run's folder as ``run.path``, ``num_iterations``, ``metrics`` of the last iteration, and
        ``evaluation`` on validation jobsets, such as ``evaluation["slowdown"]``.

    Raises:
        InputError: if a setting cannot be used, the folder is not empty, or there are fewer CPUs
            than ``resources.num_runners``; before anything has started.
        Failure: if something fails that can be named, such as a disk that is full.
    """
    return run_training(
        load_config(options.config or DEFAULT_PRESET, changes_of(options)),
        run_dir=None if options.run is None else Path(options.run),
        address=options.address,
        progress=shown(options.progress),
    )


@takes(Resume)
def resume(options: Resume) -> RunResult:
    """Goes on with an earlier run, to the same numbers as if it had never stopped.

    >>> result = resume("runs/mine", {"training.iterations": 800})

    Raises:
        InputError: if there is no run or no whole checkpoint, a setting must not be changed, or
            all iterations are done.
    """
    found = find_resumption(Path(options.run), options.changes)
    return run_training(
        found.config, resume=found, address=options.address, progress=shown(options.progress)
    )


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
    from rllib_configs.algorithms import config as of_rllib  # takes seconds: it imports RLlib

    prepared = prepare(load_config(config, changes))
    prepared.require_units()
    return of_rllib.algorithm_config(prepared)


@takes(Tune)
def tune(options: Tune) -> pd.DataFrame:
    """Tries many settings on Ray Tune, as ``metasched tune`` does.

    Returns:
        A row for each trial: its ``status``, ``score``, whether it is the ``best`` of its task, its
        ``run``, and its settings by their keys.

    Raises:
        InputError: if the sweep cannot run; before anything has started.
    """
    return frame_of(table_of(launch_sweep(options, draw_figure).folder)).infer_objects()


@takes(Choose)
def choose(options: Choose) -> pd.DataFrame:
    """Judges runs of an evolution strategy that differ in their seed.

    The score is that of candidates in training: the mean of ln(cost), plus a penalty for each
    violated limit, on jobsets of their family or their task that no run was trained on.

    Returns:
        A row for each run; the best is the one whose ``judged`` is lowest.

    Raises:
        InputError: if a run was not trained by a search, or they are not alike.
    """
    return choose_run(options)["runs"]
