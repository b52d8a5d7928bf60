"""What trials report, in their run directories; their states; and what is left to do."""

import io
import shutil
import tarfile
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rllib_configs.schema import ExperimentConfig
from tune_jobs.runs.checkpoints import Checkpoint
from tune_jobs.runs.directory import RunDirectory, create_run
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.folder import OVER, SweepFolder, TrialFile, TrialStatus
from tune_jobs.sweeps.points import list_points, num_trials
from tune_jobs.sweeps.searched import Point


class TrialRecord:
    """Writes down what a trial reports, into its run directory.

    Args:
        run: the directory, locked by this process.
        file: what is known of the trial.
    """

    def __init__(self, run: RunDirectory, file: TrialFile) -> None:
        self.run = run
        self.file = file
        self.config = run.config()
        rows = run.history.rows()
        self.last: MetricRow = rows[-1] if rows else {}
        self._state_at = 0

    @property
    def done(self) -> int:
        """Iterations that have been recorded."""
        return int(self.last.get("iteration", 0))

    def add(self, rows: list[MetricRow], state: bytes | None, busy_s: float) -> None:
        """Adds iterations; those that were recorded before are replaced.

        Args:
            rows: as in ``metrics.csv``, with the iteration.
            state: what `pack` made of the state after the last of them.
            busy_s: seconds that they took.
        """
        first = int(rows[0]["iteration"])
        if first <= self.done:
            self.run.history.go_back(first - 1)
            self.run.checkpoints.remove_after(first - 1)
        for row in rows:
            values = {name: value for name, value in row.items() if name != "iteration"}
            self.run.history.append(int(row["iteration"]), values)
        self.last = rows[-1]
        self.file = replace(self.file, busy_s=self.file.busy_s + busy_s)
        if state is not None:
            self._keep_state(state)

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

    def _keep_state(self, state: bytes) -> None:
        keep = self.config.checkpoint.keep
        checkpoint = self.run.write_checkpoint(self.done, partial(unpack, state), keep)
        policy = checkpoint.path / "policy"
        self.run.write_policy(partial(shutil.copytree, policy, dirs_exist_ok=True))
        self.file.write(self.run.path)


def begin_trial(folder: SweepFolder, point: Point, config: ExperimentConfig) -> TrialRecord:
    """Creates the run directory of a trial, in place of what a crash has left half-made."""
    path = folder.trial_path(point.index)
    shutil.rmtree(path, ignore_errors=True)
    record = TrialRecord(create_run(config, path), TrialFile(point, "running"))
    record.settle("running")
    return record


def rewind(run: RunDirectory) -> Checkpoint | None:
    """Goes back to the newest good checkpoint of a trial, and removes what came after it.

    Returns:
        The checkpoint, None if the trial has to begin anew.
    """
    good = [each for each in run.checkpoints.all() if each.damage() is None]
    newest = good[-1] if good else None
    run.go_back(newest)
    return newest


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


@dataclass
class SweepWork:
    """What there is to do.

    Attributes:
        points: trials to begin or to go on with; only the latter where a searcher draws.
        records: of the latter, by index.
        states: how far those are: iteration and packed state, by index.
        over: trials of an interrupted sweep that are left as they are.
        num_new: trials that a searcher will still begin.
    """

    points: list[Point]
    records: dict[int, TrialRecord] = field(default_factory=dict)
    states: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    over: list[tuple[TrialFile, TrialRecord]] = field(default_factory=list)
    num_new: int = 0

    @property
    def num_trials(self) -> int:
        """How many trials will run."""
        return len(self.points) + self.num_new


def find_work(folder: SweepFolder) -> SweepWork:
    """What is left to do; trials that were begun go back to their newest checkpoints."""
    sweep = folder.sweep
    drawn = sweep.strategy.draws_beforehand
    work = SweepWork(list_points(sweep) if drawn else [])
    for file, run in folder.started():
        index = file.point.index
        work.points = [point for point in work.points if point.index != index]
        run.lock()
        if file.status in OVER:
            work.over.append((file, TrialRecord(run, file)))
            run.unlock()
            continue
        checkpoint = rewind(run)
        if checkpoint is not None:
            work.states[index] = (checkpoint.iteration, pack(checkpoint.path))
        work.records[index] = TrialRecord(run, file)
        work.points.append(file.point)
    work.points.sort(key=lambda point: point.index)
    if not drawn:
        work.num_new = num_trials(sweep) - len(work.over) - len(work.points)
    return work
