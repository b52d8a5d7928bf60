"""Takes what trials report, and writes it down: run directories, MLflow, the table on screen."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cloudpickle
from ray.exceptions import RayActorError, RayTaskError
from ray.tune import Callback

from cluster_env.core.errors import Failure, InputError
from cluster_env.worlds import get_spec
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.runs.describing import TITLE, headline
from tune_jobs.runs.directory import CONFIG
from tune_jobs.runs.history import MetricRow
from tune_jobs.runs.hooks import Hooks
from tune_jobs.sweeps.folder import SweepFolder, TrialRecord, TrialStatus
from tune_jobs.sweeps.points import Point, as_row, read_presets, trial_config
from tune_jobs.sweeps.progress_table import ProgressTable
from tune_jobs.sweeps.searched import SETTINGS
from tune_jobs.tables.printing import markdown
from tune_jobs.tracking import Tracker

MAX_FAILURES = 2
"""Times that a trial is tried again; its machine may have gone away."""


class SweepCallback(Callback):
    """The one place that writes while a sweep runs; Ray Tune calls it in the sweep's own process.

    Runs of the trials are children of the tracker's.

    Attributes:
        busy_s: seconds that trials have spent in iterations and evaluations since the start.
        failure: what stops the whole sweep, None if nothing does.
        given_up_early: whether Ray Tune has given up a trial before `MAX_FAILURES`.
    """

    def __init__(self, folder: SweepFolder, tracker: Tracker, table: ProgressTable) -> None:
        self._folder = folder
        self._sweep = folder.sweep
        self._presets = read_presets(folder.sweep)
        self._tracker = tracker
        self._table = table
        self._hooks = Hooks()
        self._records: dict[int, TrialRecord] = {}
        self._trackers: dict[int, Tracker] = {}
        self._references: dict[int, dict[str, float]] = {}
        self.busy_s = 0.0
        self.ended_at = time.monotonic()
        self.failure: InputError | Failure | None = None
        self.given_up_early = False

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Ray Tune pickles its callbacks for `Tuner.restore`, which no sweep asks for."""
        return {}

    def take_up(self, records: Mapping[int, TrialRecord]) -> None:
        """Goes on with trials that were begun before."""
        self._records = dict(records)
        self.given_up_early = False

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Opens the trial's run directory."""
        record = self._opened(trial)
        if record.file.status == "waiting":  # it is tried again
            record.settle("running")
            self._table.put(record)

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Writes down what a trial has done, and takes it out of what Ray keeps."""
        record = self._opened(trial)
        index = record.index
        if "refused" in result:
            if result["everywhere"]:
                self.failure = self.failure or InputError(result["refused"])
            self._fail(record, result["refused"])
            return
        rows, state = result.pop("rows"), result.pop("state")
        settings = result.pop("settings")
        if settings != record.file.point.settings:  # it has taken over from another
            point = Point(index, settings)
            record.change(point, self._config_of(point))
            self._table.say(
                f"trial {index:03d} took over from a better one before iteration "
                f"{rows[0]['iteration']:.0f}: {point.describe()}"
            )
        missing = range(record.done + 1, int(rows[0]["iteration"]))
        if missing:  # it took over from a trial that was further
            span = "iteration" if len(missing) == 1 else f"iterations {missing[0]} to"
            self._table.say(
                f"trial {index:03d} has no {span} {missing[-1]} of its own: it went on from "
                f"another trial's state"
            )
        record.add(rows, state, result["busy_s"])
        self.busy_s += result["busy_s"]
        self.ended_at = time.monotonic()
        tracker, references = self._trackers[index], result.pop("references")
        if index not in self._references:  # a killed sweep may not have them
            self._references[index] = references
            tracker.metrics({f"reference/{name}": v for name, v in references.items()}, 0)
        for row in rows:
            values = {name: value for name, value in row.items() if name != "iteration"}
            tracker.metrics(_with_headline(record.config, values), int(row["iteration"]))
            self._hooks.on_iteration(row, record.run.path)
        over = record.done >= record.config.training.iterations
        if over or result["done"]:
            self._settle(record, "finished" if over else "stopped")
        self._table.put(record)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Notes why a trial failed."""
        error = _error_of(trial)
        # A process that dies between two trials fails the next one twice at a time: Ray Tune puts
        # that back into the queue, and then finds that it is not running.
        if isinstance(error, RayActorError) and trial.num_failures <= MAX_FAILURES:
            self.given_up_early = True
        else:
            self._fail(self._opened(trial), describe_error(error))

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Says that a trial is tried again."""
        record, error = self._opened(trial), _error_of(trial)
        record.settle("waiting")
        self._table.put(record)
        self._table.say(f"trial {record.index:03d} is tried again: {describe_error(error)}")

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Shows the table again."""
        self._table.refresh()

    def say(self, text: str) -> None:
        """Writes a line that stays."""
        self._table.say(text)

    def close(self) -> None:
        """Lets go of all trials; those that are not over can be gone on with."""
        for index, record in self._records.items():
            if index in self._trackers:
                self._trackers.pop(index).finish("killed")
            record.run.unlock()

    def _fail(self, record: TrialRecord, why: str) -> None:
        self._settle(record, "failed", why)
        self._table.say(f"trial {record.index:03d} failed: {why[:200]}")
        self._table.put(record)

    def _opened(self, trial: Any) -> TrialRecord:
        """The record of a trial, which may begin with it."""
        index = int(str(trial).rpartition("-")[2])
        record = self._records.get(index)
        if record is None:
            point = Point(index, dict(trial.config[SETTINGS]))
            record = self._folder.begin_trial(point, self._config_of(point))
            self._records[index] = record
        if index not in self._trackers:
            self._trackers[index] = self._track(record)
            self._trackers[index].complete(
                (step, _with_headline(record.config, row))
                for step, row in record.run.history.by_iteration()
            )
            record.settle("running")
            self._describe(record, self._trackers[index])
            self._table.put(record)
        return record

    def _config_of(self, point: Point) -> ExperimentConfig:
        return trial_config(self._sweep, point, self._folder.trials, self._presets)

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

    def _settle(self, record: TrialRecord, status: TrialStatus, error: str = "") -> None:
        record.settle(status, error)
        tracker = self._trackers.pop(record.index, None)
        if tracker is None:
            return
        tracker.tags({"status": status, **({"error": error} if error else {})})
        self._describe(record, tracker)
        if record.run.policy.is_dir():
            tracker.artifact(record.run.policy)
        tracker.finish("failed" if status == "failed" else "finished")

    def _describe(self, record: TrialRecord, tracker: Tracker) -> None:
        """What MLflow shows of a trial first: how it came out, in words and beside heuristics."""
        sweep, file, config = self._sweep, record.file, record.config
        of = f", the mean of its newest {sweep.average} values" if sweep.average > 1 else ""
        result = f"**{sweep.metric} {record.score:.4g}**{of}. "
        if math.isnan(record.score):
            result = f"There is no {sweep.metric} yet. "
        settings = file.point.describe() or "no setting of its own"
        error = f": {file.error}" if file.error else ""
        text = (
            f"{result}Trial {record.index:03d} of the sweep {sweep.name}, {settings}: "
            f"{record.done} of {config.training.iterations} iterations, {file.status}{error}."
        )
        if references := self._references.get(record.index):
            metric = _metric_of(config)
            rows = record.run.history.rows()
            reached = [row[f"eval/{metric}"] for row in rows if f"eval/{metric}" in row][-1:]
            lines = [["policy", metric]]
            lines += [["this trial", f"{value:.4g}"] for value in reached]
            lines += [[name, f"{value:.4g}"] for name, value in references.items()]
            text += f"\n\n{markdown(lines)}"
        tracker.note(TITLE, text)


def _with_headline(config: ExperimentConfig, row: MetricRow) -> MetricRow:
    """Metrics of an iteration; of an evaluation, those that come first stand first."""
    if not any(name.startswith("eval/") for name in row):
        return row
    side_metrics = get_spec(config.task.world.kind).side_metrics
    return {**headline(row, _metric_of(config), side_metrics), **row}


def _metric_of(config: ExperimentConfig) -> str:
    return config.task.build_objective().metric.name


def _error_of(trial: Any) -> Exception | None:
    """The newest error of a trial; Ray's own `get_error` looks in another folder."""
    path = trial.pickled_error_file
    if path is None or not Path(path).exists():
        return None
    error: Exception = cloudpickle.loads(Path(path).read_bytes())
    return error


def describe_error(error: Exception | None) -> str:
    """Why a trial failed, in one line."""
    if isinstance(error, RayActorError):
        return "its process died; its machine may be out of memory, or gone"
    cause: Any = error.cause if isinstance(error, RayTaskError) else error
    if cause is None:
        return "Ray Tune does not say why"
    return f"{type(cause).__name__}: {' '.join(str(cause).split())[:500]}"
