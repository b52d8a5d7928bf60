"""What it takes to go on with an earlier run."""

import logging
from dataclasses import dataclass
from pathlib import Path

from cluster_env.core.errors import InputError
from rllib_configs.config.changes import Changes, changed_keys
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.secrets import hide_secrets
from tune_jobs.runs.checkpoints import Checkpoint, as_checkpoint
from tune_jobs.runs.directory import CONFIG, RunDirectory, open_run
from tune_jobs.tracking.values import flatten

logger = logging.getLogger(__name__)

# How long a driver may take to notice that its cluster is gone: Ray waits for a minute.
WAIT_S = 120.0

# Settings that no number of a run depends on.
CHANGEABLE = (
    "training.iterations",
    "training.on_nan",
    "resources",
    "tracking",
    "evaluation.every",
    "checkpoint",
)


@dataclass(frozen=True)
class Resumption:
    """An earlier run, and where to go on.

    Attributes:
        run: its folder.
        checkpoint: what it goes on from; None if it was lost before its first, and begins again.
        config: its config, with what the user changed.
    """

    run: RunDirectory
    checkpoint: Checkpoint | None
    config: ExperimentConfig


def find_resumption(path: Path, overrides: Changes = ()) -> Resumption:
    """Finds the newest checkpoint of a run and checks it; a run that never had one begins again.

    Args:
        path: a run's folder, or one of its checkpoints.
        overrides: as for `load_config`; only `CHANGEABLE` settings may differ. They or the
            environment say where records go, and with them credentials: the run may be anybody's.

    Raises:
        InputError: if there is no run, the checkpoint is damaged, a setting must not be changed,
            or nothing is left to do.
    """
    chosen = as_checkpoint(path)
    run = open_run(chosen.path.parent.parent if chosen else path)
    before = run.config()
    config = load_config(run.path / CONFIG, overrides)
    if before.tracking.uri is not None and "tracking.uri" not in changed_keys(overrides):
        tracking = config.tracking.model_copy(update={"uri": None})
        config = config.model_copy(update={"tracking": tracking})
        logger.warning(
            "%s was recorded at %s, too; set MLFLOW_TRACKING_URI to send records there again",
            run.path,
            hide_secrets(before.tracking.uri),
        )
    _check_changes(before, config)
    if chosen is None and run.is_unsaved:
        return Resumption(run, None, config)
    checkpoint = chosen or run.checkpoints.newest()
    run.checkpoints.check(checkpoint)
    if checkpoint.iteration >= config.training.iterations:
        raise InputError(
            f"{run.path} has done all of its {config.training.iterations} iterations; to train on, "
            "set training.iterations higher"
        )
    return Resumption(run, checkpoint, config)


def find_lost_start(path: Path, config: ExperimentConfig) -> Resumption | None:
    """A run that was lost before its first checkpoint, for a command that asks for it again.

    Args:
        path: folder of the run, or where it is to be.
        config: what the command asks for.

    Returns:
        None if there is nothing, or a run that only ``--resume`` or ``--continue`` may touch.

    Raises:
        InputError: if the folder holds another run, or a process is at it.
    """
    lost = (path / CONFIG).is_file() and open_run(path).is_unsaved
    return find_continuation(path, config, wait_s=0.0) if lost else None


def find_continuation(
    path: Path, config: ExperimentConfig, wait_s: float = WAIT_S
) -> Resumption | None:
    """How a command goes on that may have been here before; None if it has not.

    A submitted job is sent again when the machine that it ran on is gone, and nobody is there to
    say whether it had begun. So no state of the folder that a lost run leaves behind is an error: a
    damaged checkpoint is passed over, a run without any begins again, one that has done all of its
    iterations is finished, and a process that has not noticed yet that its cluster is gone is
    waited for. The run is locked from here on.

    Args:
        path: folder of the run, or where it is to be.
        config: what the command asks for; results must not depend on where it differs.
        wait_s: how long another process is waited for, in seconds.

    Raises:
        InputError: if the folder holds another run, or a process stays at it.
    """
    if not (path / CONFIG).is_file():
        return None
    run = open_run(path)
    _check_changes(run.config(), config)
    run.lock(wait_s)
    whole = None
    for checkpoint in reversed(run.checkpoints.all()):
        damage = checkpoint.damage()
        if damage is None:
            whole = checkpoint
            break
        logger.warning("passing over %s, which is damaged: %s", checkpoint.path, damage)
    return Resumption(run, whole, config)


def _check_changes(before: ExperimentConfig, after: ExperimentConfig) -> None:
    old, new = (flatten(config.to_dict()) for config in (before, after))
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) == new.get(key):
            continue
        if not any(key == name or key.startswith(f"{name}.") for name in CHANGEABLE):
            raise InputError(
                f"{key} cannot change from {old.get(key)} to {new.get(key)} in a run that is "
                f"resumed, because results depend on it; start a new run, or change only "
                f"{', '.join(CHANGEABLE)}"
            )
