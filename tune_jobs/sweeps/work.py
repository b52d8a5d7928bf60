"""What is left to do of a sweep."""

from dataclasses import dataclass, field

from tune_jobs.sweeps.folder import OVER, SweepFolder, TrialFile
from tune_jobs.sweeps.points import Point, list_points, num_trials
from tune_jobs.sweeps.records import TrialRecord, pack, rewind


@dataclass
class Work:
    """What there is to do.

    Attributes:
        points: trials to begin or to go on with; with optuna, only the latter.
        records: of the latter, by index.
        states: how far those are: iteration and packed state, by index.
        over: trials of an interrupted sweep that are left as they are.
        new: trials that optuna will still begin.
    """

    points: list[Point]
    records: dict[int, TrialRecord] = field(default_factory=dict)
    states: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    over: list[tuple[TrialFile, TrialRecord]] = field(default_factory=list)
    new: int = 0

    @property
    def num_trials(self) -> int:
        """How many trials will run."""
        return len(self.points) + self.new


def find_work(folder: SweepFolder) -> Work:
    """What is left to do; trials that were begun go back to their newest checkpoints."""
    sweep = folder.sweep
    work = Work([] if sweep.search == "optuna" else list_points(sweep))
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
    if sweep.search == "optuna":
        work.new = num_trials(sweep) - len(work.over) - len(work.points)
    return work
