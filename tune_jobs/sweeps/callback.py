"""Takes what trials report, and writes it down: run directories, MLflow, the table on screen."""

import math
import time
from typing import Any

from ray.tune import Callback

from cluster_env.core.errors import InputError
from tune_jobs.runs.describing import TITLE
from tune_jobs.runs.directory import CONFIG
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.describing import describe_trial, first_metrics
from tune_jobs.sweeps.failures import describe
from tune_jobs.sweeps.folder import SweepFolder
from tune_jobs.sweeps.points import as_row, read_presets, trial_config
from tune_jobs.sweeps.progress_table import ProgressTable, TrialLine
from tune_jobs.sweeps.records import TrialRecord, begin_trial
from tune_jobs.sweeps.searched import Point
from tune_jobs.tracking import Tracker


class SweepCallback(Callback):
    """The one place that writes while a sweep runs; Ray Tune calls it in the sweep's own process.

    Args:
        folder: of the sweep.
        tracker: of the sweep's own run, which those of the trials are children of.
        table: shows where everything is.

    Attributes:
        busy_s: seconds that trials have spent in iterations and evaluations since the start.
        failure: what stops the whole sweep, None if nothing does.
        failures: newest failure of each trial that had one, by Ray's id of it.
    """

    def __init__(self, folder: SweepFolder, tracker: Tracker, table: ProgressTable) -> None:
        self._folder = folder
        self._sweep = folder.sweep
        self._presets = read_presets(folder.sweep)
        self._tracker = tracker
        self._table = table
        self._records: dict[int, TrialRecord] = {}
        self._trackers: dict[int, Tracker] = {}
        self._references: dict[int, dict[str, float]] = {}
        self.busy_s = 0.0
        self.ended_at = time.monotonic()
        self.failure: InputError | None = None
        self.failures: dict[str, Exception] = {}

    def take_up(self, record: TrialRecord) -> None:
        """Goes on with a trial that was begun before."""
        self._records[record.file.point.index] = record

    def on_trial_start(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        """Opens the trial's run directory."""
        self._opened(trial)

    def on_trial_result(
        self, iteration: int, trials: list, trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Writes down what a trial has done, and takes it out of what Ray keeps."""
        record = self._opened(trial)
        if "refused" in result:
            self._fail(record, result["refused"], result["everywhere"])
            return
        rows, state = result.pop("rows"), result.pop("state")
        settings = result.pop("settings")
        if settings != record.file.point.settings:
            self._take_over(record, settings, int(rows[0]["iteration"]))
        record.add(rows, state, result["busy_s"])
        self.busy_s += result["busy_s"]
        self.ended_at = time.monotonic()
        index = record.file.point.index
        tracker, references = self._trackers[index], result.pop("references")
        self._references[index] = references
        if rows[0]["iteration"] == 1:
            tracker.metrics({f"reference/{name}": v for name, v in references.items()}, 0)
        for row in rows:
            values = {name: value for name, value in row.items() if name != "iteration"}
            tracker.metrics(self._shown(record, values), int(row["iteration"]))
        over = record.done >= record.config.training.iterations
        if over or result["done"]:
            self._settle(record, "finished" if over else "stopped")
        self._table.put(line_of(self._sweep, record, result["score"]))

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        """Notes why a trial failed."""
        self._fail(self._opened(trial), describe(self.failures.get(trial.trial_id)))

    def on_trial_recover(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        """Says that a trial is tried again."""
        why = describe(self.failures.get(trial.trial_id))
        self._table.say(f"trial {trial.config['trial']['index']:03d} is tried again: {why}")

    def on_step_end(self, iteration: int, trials: list, **info: Any) -> None:
        """Shows the table again."""
        self._table.refresh()

    def close(self) -> None:
        """Lets go of all trials; those that are not over can be gone on with."""
        for index, record in self._records.items():
            if index in self._trackers:
                self._trackers.pop(index).finish("killed")
            record.run.unlock()

    def _shown(self, record: TrialRecord, row: MetricRow) -> MetricRow:
        """What MLflow shows of an iteration."""
        return {**first_metrics(record.config, row), **row}

    def _fail(self, record: TrialRecord, why: str, everywhere: bool = False) -> None:
        if everywhere:
            self.failure = self.failure or InputError(why)
        self._settle(record, "failed", why)
        self._table.say(f"trial {record.file.point.index:03d} failed: {why[:200]}")
        self._table.put(line_of(self._sweep, record, math.nan))

    def _opened(self, trial: Any) -> TrialRecord:
        told = trial.config["trial"]
        record = self.begin(Point(int(told["index"]), dict(told["settings"])))
        index = record.file.point.index
        if index not in self._trackers:
            self._trackers[index] = self._track(record)
            self._trackers[index].complete(
                (step, self._shown(record, row)) for step, row in record.run.history.by_iteration()
            )
            record.settle("running")
            self._describe(record, self._trackers[index])
            self._table.put(line_of(self._sweep, record, math.nan))
        return record

    def begin(self, point: Point) -> TrialRecord:
        """Makes the run directory of a trial, unless it has one."""
        if point.index not in self._records:
            config = trial_config(self._sweep, point, self._folder.trials, self._presets)
            self._records[point.index] = begin_trial(self._folder, point, config)
        return self._records[point.index]

    def _take_over(self, record: TrialRecord, settings: dict[str, Any], iteration: int) -> None:
        """A trial of a population has taken over from another."""
        point = Point(record.file.point.index, settings)
        record.change(point, trial_config(self._sweep, point, self._folder.trials, self._presets))
        self._table.say(
            f"trial {point.index:03d} took over from a better one before iteration {iteration}: "
            f"{point.describe()}"
        )

    def _track(self, record: TrialRecord) -> Tracker:
        point, config = record.file.point, record.config
        # A child is known by its name, which must not change with the settings of a population.
        about = "" if self._sweep.strategy.changes_settings else f" {point.describe()}"
        tracker = self._tracker.child(
            f"{point.index:03d}{about}",
            tags={"kind": "trial", "seed": config.seed, "preset": config.name},
        )
        tracker.params(config.to_dict())
        tracker.params({f"sweep.{key}": value for key, value in as_row(point.settings).items()})
        tracker.artifact(record.run.path / CONFIG)
        return tracker

    def _settle(self, record: TrialRecord, status: Any, error: str = "") -> None:
        record.settle(status, error)
        tracker = self._trackers.pop(record.file.point.index, None)
        if tracker is None:
            return
        tracker.tags({"status": status, **({"error": error} if error else {})})
        self._describe(record, tracker)
        if record.run.policy.is_dir():
            tracker.artifact(record.run.policy)
        tracker.finish("failed" if status == "failed" else "finished")

    def _describe(self, record: TrialRecord, tracker: Tracker) -> None:
        file, rows = record.file, record.run.history.rows()
        references = self._references.get(file.point.index, {})
        tracker.note(TITLE, describe_trial(self._sweep, file, record.config, rows, references))


def line_of(sweep: Sweep, record: TrialRecord, score: float) -> TrialLine:
    """What the table shows of a trial."""
    file = record.file
    return TrialLine(
        index=file.point.index,
        status=file.status,
        done=record.done,
        total=record.config.training.iterations,
        score=score,
        settings=file.point.describe(),
        task=file.point.describe(sweep.task_keys),
    )
