"""Training runs."""

from pathlib import Path
from typing import TYPE_CHECKING

from rllib_configs.changes import Changes
from rllib_configs.loading import change, load_config, make_config
from rllib_configs.registries import prepare
from rllib_configs.schema import ExperimentConfig
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.runs.training import RunResult, run_training
from tune_jobs.terminal.progress import NoProgress, Progress

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
        progress=_shown(progress),
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
    return run_training(found.config, resume=found, address=address, progress=_shown(progress))


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


def _config_of(config: ExperimentConfig | str | Path, changes: Changes) -> ExperimentConfig:
    if not isinstance(config, ExperimentConfig):
        return load_config(config, changes)
    data = config.to_dict()
    change(data, changes)
    return make_config(data)


def _shown(progress: bool) -> Progress:
    return Progress() if progress else NoProgress()
