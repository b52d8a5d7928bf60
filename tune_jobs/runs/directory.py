"""Run directories: where everything lies that a training run leaves behind.

<runs>/<name>-<date>-<time>-s<seed>/
config.yaml     the whole config
made.json       the commit and the versions that it was trained with, from which iteration on
metrics.csv     one row an iteration
policy/         the newest policy
checkpoints/    what the run can be resumed from
figures/        images, each with the table that it was drawn from
tracking/       records on their way to MLflow
"""

import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import config_text, load_config
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.runs.checkpoints import Checkpoint, Checkpoints
from tune_jobs.runs.history import METRICS, History
from tune_jobs.terminal.files import FileLock, digest, replacing, sync_tree, write_whole

logger = logging.getLogger(__name__)

CONFIG, MADE = "config.yaml", "made.json"
_LEFT_OVER = re.compile(r"\.lock$|\.config\.yaml\.")  # of a run that was killed as it began


@dataclass(frozen=True)
class RunPart:
    """Iterations of a run that were made with the same program.

    Attributes:
        after: iterations that the run had done before.
        made: see `tune_jobs.tracking.provenance.made_with`.
    """

    after: int
    made: dict[str, str]


_PARTS = TypeAdapter(list[RunPart])


class RunDirectory:
    """One run's folder. Use `create` or `open_run`.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.history = History(self.path / METRICS)
        self._lock = FileLock(self.path / ".lock")

    @property
    def name(self) -> str:
        """Name of the folder, which is also the run's name in MLflow."""
        return self.path.name

    @property
    def figures(self) -> Path:
        """Folder of the figures, created when first asked for."""
        folder = self.path / "figures"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def policy(self) -> Path:
        """Folder of the newest policy."""
        return self.path / "policy"

    @property
    def is_unsaved(self) -> bool:
        """Whether it has neither checkpoints nor a policy: nothing is lost if it begins again."""
        return not self.checkpoints.all() and not self.policy.exists()

    def has_done(self, num_iterations: int) -> bool:
        """Whether it has a policy and its last checkpoint, after so many iterations."""
        checkpoints = self.checkpoints.all()
        done = bool(checkpoints) and checkpoints[-1].iteration == num_iterations
        return done and self.policy.is_dir()

    def policy_digest(self) -> str:
        """SHA-256 of the newest policy's files; empty if there is none."""
        files = sorted(self.policy.glob("*"))
        return sha256("".join(map(digest, files)).encode()).hexdigest() if files else ""

    def config(self) -> ExperimentConfig:
        """Reads the config.

        Raises:
            InputError: if it cannot be used.
        """
        return load_config(self.path / CONFIG)

    def write_config(self, config: ExperimentConfig) -> None:
        """Writes the config, atomically."""
        write_whole(self.path / CONFIG, config_text(config))

    def made(self) -> list[RunPart]:
        """What it was trained with, in order; empty if nobody took it down."""
        try:
            return _PARTS.validate_json((self.path / MADE).read_text())
        except (OSError, ValueError):
            return []

    def write_made(self, iteration: int, made: Mapping[str, str]) -> None:
        """Takes down what it is trained with after so many iterations; `made` says it."""
        parts = [part for part in self.made() if part.after < iteration]
        if not parts or parts[-1].made != made:
            parts.append(RunPart(iteration, dict(made)))
        with replacing(self.path / MADE) as aside:
            aside.write_bytes(_PARTS.dump_json(parts, indent=1) + b"\n")

    def write_policy(self, save: Callable[[Path], None]) -> None:
        """Replaces the newest policy file by file, so that there always is one.

        Args:
            save: writes the policy's files into the empty folder that it is given.
        """
        with tempfile.TemporaryDirectory(prefix=".policy", dir=self.path) as aside:
            save(Path(aside))
            sync_tree(Path(aside))
            self.policy.mkdir(exist_ok=True)
            for file in Path(aside).iterdir():
                file.replace(self.policy / file.name)

    def write_checkpoint(
        self, iteration: int, save: Callable[[Path], None], keep: int
    ) -> Checkpoint:
        """Writes a checkpoint, with a copy of the metrics; see `Checkpoints.write`."""

        def fill(folder: Path) -> None:
            save(folder)
            self.history.copy_to(folder / METRICS)

        return self.checkpoints.write(iteration, fill, keep)

    def go_back(self, checkpoint: Checkpoint | None) -> None:
        """Removes what came after a checkpoint, or everything; the rest is made whole."""
        iteration = checkpoint.iteration if checkpoint else 0
        self.checkpoints.remove_parts()
        self.history.go_back(iteration, checkpoint.path / METRICS if checkpoint else None)
        self.checkpoints.remove_after(iteration)

    def lock(self, wait_s: float = 0.0) -> None:
        """Makes this process the only one that writes here, until `unlock` or its end.

        Args:
            wait_s: how long another process is waited for, in seconds.

        Raises:
            InputError: if another process is at it.
        """
        deadline = time.monotonic() + wait_s
        if wait_s and not self._lock.acquire(wait=False):
            logger.warning("waiting for the process that is still at %s", self.path)
        while not self._lock.acquire(wait=False):
            if time.monotonic() >= deadline:
                raise InputError(
                    f"{self.path} is in use by another process, which is still training"
                )
            time.sleep(min(1.0, wait_s))

    def unlock(self) -> None:
        """Lets other processes write here."""
        self._lock.release()


def create_run(
    config: ExperimentConfig, path: Path | None = None, now: datetime | None = None
) -> RunDirectory:
    """Creates the folder of a new run, locks it and writes the config.

    Args:
        config: of the run.
        path: the folder, new or empty; by default one below ``config.runs``, named after the
            config's name, the time and the seed.
        now: the time of the name.

    Raises:
        InputError: if the folder holds something already or cannot be written.
    """
    try:
        if path is None:
            if not re.fullmatch(r"\w[\w.+-]*", config.name):
                raise InputError(
                    f"name: a run's name is part of its folder's name, so it may hold letters, "
                    f"digits and '._+-', but '{config.name}' was given"
                )
            folder = new_folder(config.runs, config.name, config.seed, now)
        else:
            folder = _empty_folder(path)
        run = RunDirectory(folder)
        run.lock()
        run.write_config(config)
    except OSError as error:
        where = path or config.runs
        raise InputError(f"cannot write to {where}: {error.strerror or error}") from None
    return run


def open_run(path: Path) -> RunDirectory:
    """Opens the folder of an earlier run, for reading; see `RunDirectory.lock` for writing.

    Raises:
        InputError: if there is no run.
    """
    if not path.is_dir():
        raise InputError(f"there is no run {path}")
    if not (path / CONFIG).is_file():
        raise InputError(f"{path} is no run directory: it has no {CONFIG}")
    return RunDirectory(path)


def discard_run(run: RunDirectory) -> None:
    """Removes a run that never trained: it has neither metrics nor checkpoints."""
    if not run.history.path.exists() and not run.checkpoints.all():
        shutil.rmtree(run.path, ignore_errors=True)


def new_folder(runs: Path, name: str, seed: int, now: datetime | None = None) -> Path:
    """Creates a folder for a run or a sweep: its name, the time and the seed, and if need be more.

    Raises:
        InputError: if there are too many of the name.
        OSError: if none can be created.
    """
    stamp = (now or datetime.now()).strftime("%Y%m%d-%H%M%S")
    base = runs.expanduser() / f"{name}-{stamp}-s{seed}"
    base.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, 1000):
        path = base if attempt == 1 else base.with_name(f"{base.name}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise InputError(f"there are too many runs of the name {base}")


def _empty_folder(path: Path) -> Path:
    path = path.expanduser()
    if path.exists() and not path.is_dir():
        raise InputError(f"--run takes a folder, but {path} is a file")
    if (path / CONFIG).exists():
        raise InputError(
            f"{path} holds a run already; resume it with --resume, or name another one"
        )
    if path.is_dir() and not all(_LEFT_OVER.match(entry.name) for entry in os.scandir(path)):
        raise InputError(f"{path} is not empty; take a new folder for the run")
    path.mkdir(parents=True, exist_ok=True)
    return path
