"""A sweep on disk: its definition, and an ordinary run directory for each trial.

<runs>/<name>-<date>-<time>-s<seed>/
sweep.yaml            the whole definition
trials/trial-003/     a run directory, with trial.json beside: settings and status
trials.csv, best*.yaml, figures/   what came out
tracking/             the parent run's records on their way to MLflow
"""

import json
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from cluster_env.core.errors import InputError
from tune_jobs.runs.directory import RunDirectory, open_run
from tune_jobs.sweeps.definition import Sweep, load_sweep, write_sweep
from tune_jobs.sweeps.searched import Point
from tune_jobs.terminal.files import FileLock, replacing

DEFINITION = "sweep.yaml"
_PRESET_COPY = "preset.yaml"
_TRIAL_FILE = "trial.json"
_TRIALS = "trials"

TrialStatus = Literal["waiting", "running", "finished", "stopped", "failed"]
OVER: tuple[TrialStatus, ...] = ("finished", "stopped")
"""Statuses of trials that a resumed sweep leaves as they are."""


@dataclass(frozen=True)
class TrialFile:
    """What ``trial.json`` holds.

    Attributes:
        point: index and settings; with pbt, the newest settings.
        status: what became of it.
        busy_s: seconds that it has spent in iterations and evaluations.
        error: why it failed, in one line.
    """

    point: Point
    status: TrialStatus
    busy_s: float = 0.0
    error: str = ""

    def write(self, folder: Path) -> None:
        """Writes it, atomically."""
        data = {"index": self.point.index, "settings": self.point.settings}
        data |= {"status": self.status, "busy_s": round(self.busy_s, 3), "error": self.error}
        with replacing(folder / _TRIAL_FILE) as aside:
            aside.write_text(json.dumps(data, indent=1))

    @classmethod
    def read(cls, folder: Path) -> "TrialFile | None":
        """Reads it; None if a crash came before it was written."""
        try:
            data = json.loads((folder / _TRIAL_FILE).read_text())
            point = Point(int(data["index"]), dict(data["settings"]))
            return cls(point, data["status"], float(data["busy_s"]), str(data["error"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder / _TRIAL_FILE} cannot be read: {error}") from None


class SweepFolder:
    """The folder of a sweep. Use `create_sweep` or `open_sweep`.

    Args:
        path: the folder.
        sweep: its definition.
    """

    def __init__(self, path: Path, sweep: Sweep) -> None:
        self.path = path.absolute()
        self.sweep = sweep
        self._lock = FileLock(self.path / ".lock")

    @property
    def trials(self) -> Path:
        """Folder of the trials."""
        return self.path / _TRIALS

    @property
    def figures(self) -> Path:
        """Folder of the figures, created when first asked for."""
        folder = self.path / "figures"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def scratch(self) -> Path:
        """Folder for Ray Tune's own files, which nothing needs afterwards."""
        return self.path / ".tune"

    def trial_path(self, index: int) -> Path:
        """Folder of a trial."""
        return self.trials / f"trial-{index:03d}"

    def started(self) -> list[tuple[TrialFile, RunDirectory]]:
        """The trials that have begun, in order."""
        found = []
        for path in sorted(self.trials.glob("trial-*")):
            file = TrialFile.read(path)
            if file is not None:
                found.append((file, open_run(path)))
        return sorted(found, key=lambda each: each[0].point.index)

    def lock(self) -> None:
        """Makes this process the only one that writes here, until `unlock` or its end.

        Raises:
            InputError: if another process is at it.
        """
        if not self._lock.acquire(wait=False):
            raise InputError(f"{self.path} is in use by another process, which is still sweeping")

    def unlock(self) -> None:
        """Lets other processes write here, and removes what nobody needs any more."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self._lock.release()

    def discard_if_unused(self) -> None:
        """Removes a sweep in which no trial has begun."""
        if not any(self.trials.glob("trial-*")):
            shutil.rmtree(self.path, ignore_errors=True)


def create_sweep(
    sweep: Sweep, runs: Path, path: Path | None = None, now: datetime | None = None
) -> SweepFolder:
    """Creates the folder of a new sweep, locks it and writes the definition.

    Args:
        sweep: what it is.
        runs: folder that holds runs and sweeps.
        path: the folder, new or empty; by default one below `runs`, named after the sweep, the
            time and the seed.
        now: the time of the name.

    Raises:
        InputError: if the folder holds something already or cannot be written.
    """
    stamp = (now or datetime.now()).strftime("%Y%m%d-%H%M%S")
    base = (path or runs / f"{sweep.name}-{stamp}-s{sweep.seed}").expanduser().absolute()
    place = base
    try:
        for attempt in range(2, 1000):
            if path is not None or not place.exists():
                break
            place = base.with_name(f"{base.name}-{attempt}")
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise InputError(f"{place} is there already; resume it with --resume, or name another")
        place.mkdir(parents=True, exist_ok=True)
        folder = SweepFolder(place, _keep_preset(sweep, place))
        folder.lock()
        folder.trials.mkdir()
        write_sweep(folder.sweep, place / DEFINITION)
    except OSError as error:
        raise InputError(f"cannot write to {place}: {error.strerror or error}") from None
    return folder


def open_sweep(path: Path) -> SweepFolder:
    """Opens the folder of an earlier sweep, for reading; see `SweepFolder.lock` for writing.

    Raises:
        InputError: if there is no sweep.
    """
    if not (path / DEFINITION).is_file():
        what = f"{path} is no sweep: it has no {DEFINITION}"
        raise InputError(what if path.is_dir() else f"there is no sweep {path}")
    return SweepFolder(path, load_sweep(path / DEFINITION))


def _keep_preset(sweep: Sweep, place: Path) -> Sweep:
    """Keeps a preset of the user's beside the sweep, because the file may change later."""
    if not Path(sweep.preset).is_file():
        return sweep
    copy = place / _PRESET_COPY
    shutil.copyfile(sweep.preset, copy)
    return sweep.model_copy(update={"preset": str(copy)})
