"""Runs a sweep: checks, starts, stops and resumes it."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rllib_configs.schema import ExperimentConfig
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import SweepFolder, create_sweep
from tune_jobs.sweeps.points import check_sweep, num_trials, read_presets
from tune_jobs.sweeps.progress_table import ProgressTable
from tune_jobs.sweeps.records import SweepWork, find_work
from tune_jobs.sweeps.resources import check_cpus, cpus_of, free_cpus, num_slots
from tune_jobs.sweeps.results import resume_command, score_of, write_results
from tune_jobs.terminal.capacity import can_grow
from tune_jobs.terminal.ray_session import (
    check_placement,
    num_local_cpus,
    ray_session,
    resolve_address,
)
from tune_jobs.terminal.stopping import StopRequest
from tune_jobs.tracking import Tracker
from tune_jobs.tracking.recording import DrawFigure, tracked

_TUNE = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_FORCE_TRIAL_CLEANUP_S": "30",
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # what a sweep is resumed from is our own
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


@dataclass(frozen=True)
class SweepResult:
    """What became of a sweep.

    Attributes:
        folder: where everything is.
        counts: trials by what became of them: finished, stopped, failed, or left to do.
        share: of the time that the slots for trials had since the start of the command, the part
            that was spent in iterations and evaluations.
        wall_s: seconds from the start to the last result.
        num_slots: trials at a time.
        exit_status: 0; 1 if a trial failed; 130 or 143 if a signal stopped the sweep.
    """

    folder: SweepFolder
    counts: dict[str, int]
    share: float
    wall_s: float
    num_slots: int
    exit_status: int = 0


def run_sweep(
    sweep: Sweep | SweepFolder,
    *,
    runs: Path = Path("runs"),
    path: Path | None = None,
    address: str | None = None,
    table: ProgressTable | None = None,
    draw: DrawFigure | None = None,
) -> SweepResult:
    """Runs all trials, or those that are left of a sweep that was interrupted.

    Args:
        sweep: a new one, or the folder of an interrupted one.
        runs: folder of runs and sweeps, for a new one.
        path: folder of a new one, instead of one with a made-up name.
        address: Ray cluster; see `tune_jobs.terminal.ray_session.ray_session`.
        table: shows where everything is; by default on the standard error.
        draw: draws the figure of a sweep that has ended; by default nobody does.

    Raises:
        InputError: before anything has started, if the sweep cannot run.
    """
    started = time.monotonic()
    definition = sweep if isinstance(sweep, Sweep) else sweep.sweep
    config = check_sweep(definition)[0]  # all trials take the same of a cluster
    definition.strategy.check_installed()
    if resolve_address(address) is None:
        check_cpus(config, num_local_cpus(), num_local_cpus())
    else:
        check_placement(config, address)
    total = num_trials(definition)
    table = table or ProgressTable(total, definition.metric, definition.mode)
    with ExitStack() as stack:
        if isinstance(sweep, Sweep):
            folder = create_sweep(sweep, runs, path)
            stack.callback(folder.discard_if_unused)
        else:
            folder = sweep
            folder.lock()
        stack.callback(folder.unlock)
        stack.callback(table.close)
        work = find_work(folder)
        verb = "Starting" if isinstance(sweep, Sweep) else "Resuming"
        table.say(f"{verb} {folder.path}: {work.num_trials} of {total} trials to do")
        if work.num_trials:
            stack.enter_context(ray_session(config, address))
        about = {"kind": "sweep", "seed": definition.seed, "search": definition.search}
        tracker = stack.enter_context(tracked(config, folder.path, about))
        tracker.params({"sweep": definition.to_dict()})
        tracker.artifact(folder.path / "sweep.yaml")
        return _Session(folder, work, config, table, tracker, draw, started).run()


class _Session:
    """One go at a sweep, from Ray's start to its end."""

    def __init__(
        self,
        folder: SweepFolder,
        work: SweepWork,
        config: ExperimentConfig,
        table: ProgressTable,
        tracker: Tracker,
        draw: DrawFigure | None,
        started: float,
    ) -> None:
        self._folder = folder
        self._sweep = folder.sweep
        self._work = work
        self._config = config
        self._table = table
        self._tracker = tracker
        self._draw = draw
        self._started = started
        self._num_slots = 1

    def run(self) -> SweepResult:
        """All of it; at the end table, figure and best config are written."""
        from tune_jobs.sweeps.callback import SweepCallback, line_of  # imports Ray

        callback = SweepCallback(self._folder, self._tracker, self._table)
        for _, record in self._work.over:
            score = score_of(self._sweep, record.run.history.rows())
            self._table.put(line_of(self._sweep, record, score))
        say = self._table.say
        with StopRequest(
            lambda name: say(f"{name}: stopping all trials (once more stops at once)")
        ) as stop:
            try:
                self._fit_again_where_lost(callback, stop)
            except KeyboardInterrupt:
                say(f"Stopped at once. Resume with: {resume_command(self._folder)}")
                raise
            finally:
                callback.close()
        if callback.failure is not None:
            raise callback.failure
        wall_s = callback.ended_at - self._started
        share = callback.busy_s / (self._num_slots * wall_s) if callback.busy_s else 0.0
        return self._finish(share, wall_s, stop)

    def _fit_again_where_lost(self, callback: Any, stop: StopRequest) -> None:
        """Does what `tune --resume` would, where Ray has lost what Ray Tune cannot do without."""
        from tune_jobs.sweeps.failures import MAX_LOSSES, loss_behind

        losses = 0
        while self._work.num_trials:
            for record in self._work.records.values():
                callback.take_up(record)
            try:
                self._fit(callback, stop)
                return
            except Exception as error:
                lost, losses = loss_behind(error), losses + 1
                if lost is None or losses > MAX_LOSSES or stop:
                    raise
            self._table.say(
                f"Ray has lost what the sweep needs ({lost}): going on from what is recorded "
                f"({losses} of at most {MAX_LOSSES} times)"
            )
            callback.close()
            self._work = find_work(self._folder)

    def _fit(self, callback: Any, stop: StopRequest) -> None:
        import ray
        from ray import tune

        from tune_jobs.sweeps.failures import MAX_FAILURES, retried_trials
        from tune_jobs.sweeps.trial import SweepTrial, TrialContext

        total, needed = ray.cluster_resources().get("CPU", 0.0), cpus_of(self._config)
        trials = self._work.num_trials
        most = needed * (self._sweep.concurrent or trials)
        if can_grow():  # for each trial that waits, Ray Tune asks the autoscaler
            total = free = float(most)
        else:
            free = free_cpus(min(total, most), needed)
        check_cpus(self._config, total, free)
        self._num_slots = num_slots(self._sweep.concurrent, trials, free, needed)
        states = {
            index: (iteration, ray.put(state))
            for index, (iteration, state) in self._work.states.items()
        }
        context = TrialContext(self._sweep, self._folder.trials, read_presets(self._sweep), states)
        trainable = tune.with_resources(
            tune.with_parameters(SweepTrial, context=context),
            tune.PlacementGroupFactory([{"CPU": 1}] * needed),
        )
        points = [point.as_trial() for point in self._work.points]
        drawn = self._sweep.strategy.draws_beforehand
        with _quiet_tune(len(points)), retried_trials(callback.failures):
            tuner = tune.Tuner(
                trainable,
                param_space={"trial": tune.grid_search(points)} if drawn else {},
                tune_config=self._tune_config(callback),
                run_config=tune.RunConfig(
                    name="tune",
                    storage_path=str(self._folder.scratch),
                    callbacks=[callback],
                    verbose=0,
                    checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                    failure_config=tune.FailureConfig(max_failures=MAX_FAILURES),
                    stop=_stopper(stop, callback),
                ),
            )
            tuner.fit()

    def _tune_config(self, callback: Any) -> Any:
        from ray import tune

        sweep, work = self._sweep, self._work
        begun = [*work.records.values(), *(record for _, record in work.over)]
        scheduler = sweep.strategy.scheduler(
            sweep,
            self._config.training.iterations,
            self._num_slots,
            [(record.file.point.index, record.run.history.rows()) for record in begun],
        )
        options: dict[str, Any] = {"scheduler": scheduler, "reuse_actors": True}
        scored = [
            (file.point, score_of(sweep, record.run.history.rows())) for file, record in work.over
        ]
        searcher = sweep.strategy.searcher(sweep, scored, work.points, callback.begin)
        if searcher is not None:
            options |= {"search_alg": searcher, "num_samples": work.num_trials}
        if not sweep.strategy.waits_for_all:
            options["max_concurrent_trials"] = self._num_slots
        return tune.TuneConfig(**options)

    def _finish(self, share: float, wall_s: float, stop: StopRequest) -> SweepResult:
        written = write_results(self._folder)
        statuses = [file.status for file, _ in self._folder.started()]
        counts = {name: statuses.count(name) for name in ("finished", "stopped", "failed")}
        counts["left"] = num_trials(self._sweep) - counts["finished"] - counts["stopped"]
        status = stop.exit_status or int(counts["failed"] > 0)
        for path in written:
            self._tracker.artifact(path)
        if len(written) > 1 and self._draw is not None:
            self._draw("sweep", self._folder, self._tracker)
        self._tracker.metrics({**counts, "training_share": share}, 0)
        self._tracker.finish("killed" if stop else "failed" if status else "finished")
        return SweepResult(self._folder, counts, share, wall_s, self._num_slots, status)


def _stopper(stop: StopRequest, callback: Any) -> Any:
    from ray.tune.stopper import Stopper

    class AtRequest(Stopper):
        """Ends the sweep, not a trial."""

        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            return bool(stop) or callback.failure is not None

    return AtRequest()


@contextmanager
def _quiet_tune(num_points: int) -> Iterator[None]:
    """Ray Tune without its own files, tables and signal handlers."""
    loggers = [logging.getLogger(name) for name in ("ray.tune", "ray.train", "ray.air")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    pending = {"TUNE_MAX_PENDING_TRIALS_PG": str(max(16, num_points))}
    try:
        with patch.dict(os.environ, _TUNE | pending):
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
