"""A sweep on disk: its definition, an ordinary run directory for each trial, and what is left.

<runs>/<name>-<date>-<time>-s<seed>/
sweep.yaml            the whole definition
trials/trial-003/     a run directory, with trial.json beside: settings and status
trials.csv, best*.yaml, figures/   what came out
tracking/             the parent run's records on their way to MLflow
"""

import io
import json
import math
import shutil
import tarfile
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import read_json
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.runs.checkpoints import Checkpoint
from tune_jobs.runs.directory import RunDirectory, create_run, new_folder, open_run
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.definition import Sweep, load_sweep, write_sweep
from tune_jobs.sweeps.points import Point, list_points, num_trials
from tune_jobs.terminal.files import FileLock, write_whole

DEFINITION = "sweep.yaml"
_PRESET_COPY = "preset.yaml"
_TRIAL_FILE = "trial.json"
_TRIALS = "trials"

TrialStatus = Literal["waiting", "running", "finished", "stopped", "failed"]
_OVER: tuple[TrialStatus, ...] = ("finished", "stopped")  # a resumed sweep leaves these alone


@dataclass(frozen=True)
class TrialFile:
    """What ``trial.json`` holds."""

    point: Point  # with pbt, of the newest settings
    status: TrialStatus
    busy_s: float = 0.0  # in iterations and evaluations
    error: str = ""  # why it failed, in one line

    def write(self, folder: Path) -> None:
        """Writes it, atomically."""
        data = {"index": self.point.index, "settings": self.point.settings}
        data |= {"status": self.status, "busy_s": round(self.busy_s, 3), "error": self.error}
        write_whole(folder / _TRIAL_FILE, json.dumps(data, indent=1))

    @classmethod
    def read(cls, folder: Path) -> "TrialFile | None":
        """Reads it; None if a crash came before it was written."""
        try:
            data = read_json(folder / _TRIAL_FILE)
            point = Point(int(data["index"]), dict(data["settings"]))
            return cls(point, data["status"], float(data["busy_s"]), str(data["error"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder / _TRIAL_FILE} cannot be read: {error}") from None


class TrialRecord:
    """A trial that has begun; writes down what it reports, into its run directory.

    This process has locked the directory where it writes there. ``done`` iterations are recorded.
    """

    def __init__(self, run: RunDirectory, file: TrialFile, sweep: Sweep) -> None:
        self.run = run
        self.file = file
        self._sweep = sweep
        self._read()

    @cached_property
    def config(self) -> ExperimentConfig:
        """The trial's whole config."""
        return self.run.config()

    @property
    def index(self) -> int:
        """Its number."""
        return self.file.point.index

    @property
    def score(self) -> float:
        """What it is ranked by: the mean of the metric's newest values; NaN before there is one."""
        return sum(self._newest) / len(self._newest) if self._newest else math.nan

    @property
    def task(self) -> str:
        """What is special about its task; empty where all trials share one."""
        return self.file.point.describe(self._sweep.task_keys)

    def describe_end(self) -> str:
        """How far it got, where it did not run to its end; else empty."""
        if self.file.status == "finished":
            return ""
        iterations = f"{self.done} of {self.config.training.iterations} iterations"
        if self.file.status == "stopped":
            return f", stopped early after {iterations}"
        return f", {self.file.status} after {iterations}"

    def add(self, rows: list[MetricRow], state: bytes | None, busy_s: float) -> None:
        """Adds iterations; those that were recorded before are replaced.

        Rows are as in ``metrics.csv``, and the state after the last of them is packed, see `pack`.
        """
        first = int(rows[0]["iteration"])
        if first <= self.done:
            self.run.history.go_back(first - 1)
            self.run.checkpoints.remove_after(first - 1)
            self._read()
        for row in rows:
            values = {name: value for name, value in row.items() if name != "iteration"}
            self.run.history.append(int(row["iteration"]), values)
        self._note(rows)
        self.file = replace(self.file, busy_s=self.file.busy_s + busy_s)
        if state is not None:
            keep = self.config.checkpoint.keep
            checkpoint = self.run.write_checkpoint(self.done, partial(unpack, state), keep)
            policy = checkpoint.path / "policy"
            self.run.write_policy(partial(shutil.copytree, policy, dirs_exist_ok=True))
            self.file.write(self.run.path)

    def settle(self, status: TrialStatus, error: str = "") -> None:
        """Writes down what has become of the trial."""
        self.file = replace(self.file, status=status, error=error)
        self.file.write(self.run.path)

    def change(self, point: Point, config: ExperimentConfig) -> None:
        """Takes new settings, in the middle of a run."""
        self.file = replace(self.file, point=point, error="")
        self.config = config
        self.run.write_config(config)
        self.file.write(self.run.path)

    def rewind(self) -> Checkpoint | None:
        """Goes back to the newest good checkpoint, and removes what came after it.

        Returns:
            The checkpoint, None if the trial has to begin anew.
        """
        good = [each for each in self.run.checkpoints.all() if each.damage() is None]
        newest = good[-1] if good else None
        self.run.go_back(newest)
        self._read()
        return newest

    def _read(self) -> None:
        self.done = 0
        self._newest: deque[float] = deque(maxlen=self._sweep.average)
        self._note(self.run.history.rows())

    def _note(self, rows: list[MetricRow]) -> None:
        for row in rows:
            self.done = int(row["iteration"])
            if self._sweep.metric in row:
                self._newest.append(row[self._sweep.metric])


def pack(folder: Path) -> bytes:
    """The files of a folder, as they travel between machines."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(folder, arcname=".")
    return buffer.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """Writes what `pack` has packed; nothing gets out of the folder."""
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r") as tar:
        tar.extractall(folder, filter="data")


class SweepFolder:
    """The folder of a sweep. Use `create_sweep` or `open_sweep`."""

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

    def begin_trial(self, point: Point, config: ExperimentConfig) -> TrialRecord:
        """Creates the run directory of a trial, in place of what a crash has left half-made."""
        path = self.trials / trial_name(point.index)
        shutil.rmtree(path, ignore_errors=True)
        record = TrialRecord(create_run(config, path), TrialFile(point, "running"), self.sweep)
        record.settle("running")
        return record

    def started(self) -> list[TrialRecord]:
        """The trials that have begun, in order."""
        paths = sorted(self.trials.glob("trial-*"))
        files = [(TrialFile.read(path), path) for path in paths]
        trials = [TrialRecord(open_run(path), file, self.sweep) for file, path in files if file]
        return sorted(trials, key=lambda each: each.index)

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


def trial_name(index: int) -> str:
    """Name of a trial: of its folder, and what Ray Tune calls it."""
    return f"trial-{index:03d}"


def create_sweep(sweep: Sweep, runs: Path, path: Path | None = None) -> SweepFolder:
    """Creates the folder of a new sweep, locks it and writes the definition.

    The path is new or empty; by default it is below `runs`, named after the sweep, the time and the
    seed.

    Raises:
        InputError: if the folder holds something already or cannot be written.
    """
    place = (path or runs).expanduser().absolute()
    try:
        if path is None:
            place = new_folder(place, sweep.name, sweep.seed)
        elif place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise InputError(f"{place} is there already; resume it with --resume, or name another")
        place.mkdir(parents=True, exist_ok=True)
        if Path(sweep.preset).is_file():  # the user's file may change later
            shutil.copyfile(sweep.preset, place / _PRESET_COPY)
            sweep = sweep.model_copy(update={"preset": str(place / _PRESET_COPY)})
        folder = SweepFolder(place, sweep)
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


@dataclass
class SweepWork:
    """What there is to do: points to go on with or, where they were drawn beforehand, to begin.

    Of the former there are records and, by index, how far they are: iteration and packed state.
    """

    points: list[Point] = field(default_factory=list)
    records: dict[int, TrialRecord] = field(default_factory=dict)
    states: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    over: list[TrialRecord] = field(default_factory=list)  # left as they are
    new: list[int] = field(default_factory=list)  # that a searcher will begin after those

    @property
    def num_trials(self) -> int:
        """How many trials will run."""
        return len(self.points) + len(self.new)


def find_work(folder: SweepFolder) -> SweepWork:
    """What is left to do; trials that were begun go back to their newest checkpoints."""
    sweep, work = folder.sweep, SweepWork()
    drawn = list_points(sweep) if sweep.strategy.draws_beforehand else []
    points = {point.index: point for point in drawn}
    begun = set()
    for record in folder.started():
        begun.add(record.index)
        points.pop(record.index, None)
        record.run.lock()
        if record.file.status in _OVER:
            work.over.append(record)
            record.run.unlock()
            continue
        points[record.index] = record.file.point
        checkpoint = record.rewind()
        if checkpoint is not None:
            work.states[record.index] = (checkpoint.iteration, pack(checkpoint.path))
        work.records[record.index] = record
    work.points = [points[index] for index in sorted(points)]
    if not sweep.strategy.draws_beforehand:
        work.new = [index for index in range(num_trials(sweep)) if index not in begun]
    return work
