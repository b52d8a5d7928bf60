"""One go of Ray Tune at a sweep: which trials it runs, how many at a time, and what ends it."""

import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import ray
from ray import tune
from ray.exceptions import NodeDiedError, ObjectLostError, WorkerCrashedError
from ray.tune import Callback
from ray.tune.experiment import Trial
from ray.tune.stopper import Stopper

from cluster_env.core.errors import Failure
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.processes.capacity import GRACE_S, CpuWait, can_grow, num_cpus_of
from tune_jobs.sweeps.callback import MAX_FAILURES, SweepCallback
from tune_jobs.sweeps.folder import SweepFolder, SweepWork, find_work, trial_name
from tune_jobs.sweeps.points import check_cpus, cpus_of, read_presets, searcher_seed
from tune_jobs.sweeps.searched import SETTINGS
from tune_jobs.sweeps.trial import SweepTrial, TrialContext
from tune_jobs.terminal.signals import StopRequest

_START_S = 30.0  # in which the process of a trial starts, so that the CPU is its own
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


class _ProcessLost(Failure):
    """The process of a trial died where Ray Tune does not try it again."""


_LOSSES = (ObjectLostError, NodeDiedError, WorkerCrashedError, _ProcessLost)
MAX_LOSSES = 3
"""Times that a sweep goes on where Ray has lost what Ray Tune itself does not outlive."""


def run_trials(
    folder: SweepFolder,
    work: SweepWork,
    config: ExperimentConfig,
    callback: SweepCallback,
    stop: StopRequest,
) -> int:
    """Runs the trials that are left; where Ray loses one, goes on as `tune --resume` would.

    All trials take the same of a cluster as the one of the config. Returns how many ran at a time.
    """
    losses = 0
    while True:
        callback.take_up(work.records)
        try:
            return _fit(folder, work, config, callback, stop)
        except Exception as error:
            lost, losses = loss_behind(error), losses + 1
            if lost is None or losses > MAX_LOSSES or stop:
                raise
            callback.say(
                f"Ray has lost what the sweep needs ({lost}): going on from what is recorded "
                f"({losses} of at most {MAX_LOSSES} times)"
            )
        callback.close()
        work = find_work(folder)


def loss_behind(error: BaseException) -> str | None:
    """What Ray has lost, where an error comes of that; None where it comes of anything else.

    Ray Tune takes a process that has died for the failure of a trial. Where a machine takes an
    answer with it that nobody has fetched yet, it gives up the whole sweep.
    """
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, _LOSSES):
            return type(behind).__name__.lstrip("_")
        behind = behind.__cause__ or behind.__context__
    return None


class _AtRequest(Stopper):
    """Ends the sweep, not a trial."""

    def __init__(self, stop: StopRequest, callback: SweepCallback) -> None:
        self._stop, self._callback = stop, callback

    def __getstate__(self) -> dict[str, Any]:
        return {}  # as that of `SweepCallback`

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return bool(self._stop) or self._callback.failure is not None


def _fit(
    folder: SweepFolder,
    work: SweepWork,
    config: ExperimentConfig,
    callback: SweepCallback,
    stop: StopRequest,
) -> int:
    sweep, strategy = folder.sweep, folder.sweep.strategy
    most = min(sweep.concurrent or work.num_trials, work.num_trials)
    free, cpus = _free_cpus(config, most, callback.say, stop), cpus_of(config)
    num_slots = max(1, min(most, int(free // cpus)))
    options = {"max_concurrent_trials": num_slots}
    if strategy.waits_for_all:  # with a limit to their number they would wait for ever
        options = {}
        if most < work.num_trials:  # so each takes so much that no more of them fit
            cpus = max(cpus, int(free // num_slots))
    states = {index: (done, ray.put(state)) for index, (done, state) in work.states.items()}
    context = TrialContext(sweep, folder.trials, read_presets(sweep), states)
    trainable = tune.with_resources(
        tune.with_parameters(SweepTrial, context=context),
        tune.PlacementGroupFactory([{"CPU": 1}] * cpus),
    )

    def tune_all(indices: Iterable[int], space: dict[str, Any], **options: Any) -> None:
        names = map(trial_name, indices)
        tune.Tuner(
            trainable,
            param_space=space,
            tune_config=tune.TuneConfig(
                scheduler=strategy.scheduler(sweep, config.training.iterations),
                reuse_actors=True,
                trial_name_creator=lambda trial: next(names),
                **options,
            ),
            run_config=tune.RunConfig(
                name="tune",
                storage_path=str(folder.scratch),
                callbacks=[callback, _StartedLate(config, callback)],
                verbose=0,
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                failure_config=tune.FailureConfig(max_failures=MAX_FAILURES),
                stop=_AtRequest(stop, callback),
            ),
        ).fit()

    with _quiet_tune(work.num_trials):
        if work.points:
            settings = tune.grid_search([dict(point.settings) for point in work.points])
            tune_all([point.index for point in work.points], {SETTINGS: settings}, **options)
        if work.new and not stop and callback.failure is None:
            scored = [
                (trial.file.point.settings, trial.score)
                for trial in folder.started()
                if trial.file.status != "failed" and not math.isnan(trial.score)
            ]
            searcher = strategy.searcher(sweep, searcher_seed(sweep.seed, work.new[0]), scored)
            tune_all(work.new, {}, search_alg=searcher, num_samples=len(work.new), **options)
    if callback.given_up_early and not stop:
        raise _ProcessLost(
            "the process of a trial died again and again; its machine may be out of memory"
        )
    return num_slots


def _free_cpus(
    config: ExperimentConfig, most: int, say: Callable[[str], None], stop: StopRequest
) -> float:
    """CPUs that nobody uses; waits until there are enough for a trial, unless it shall stop.

    For those of a process that is just ending it waits a moment, but not with CPUs for the most
    trials that may run at a time.

    Raises:
        InputError: if the cluster has too few for a trial, for which Ray Tune would wait for ever.
        Failure: if they have not come free in time.
    """
    needed = cpus_of(config)
    if can_grow():  # for each trial that waits, Ray Tune asks the autoscaler
        return float(most * needed)
    total = num_cpus_of(ray.cluster_resources())
    check_cpus(config, total)
    soon = time.monotonic() + GRACE_S
    wait = None
    while True:
        free = num_cpus_of(ray.available_resources())
        if free >= min(total, most * needed) or stop:
            return free
        if time.monotonic() > soon:
            if free >= needed:
                return free
            wait = wait or CpuWait(needed, config.resources.wait_s, say)
            wait.go_on()
        time.sleep(0.1)


class _StartedLate(Callback):
    """Says what a sweep waits for where no trial has had a process for a while.

    Others may take the CPUs that were free, or a machine be lost; Ray Tune waits without a word.
    """

    def __init__(self, config: ExperimentConfig, callback: SweepCallback) -> None:
        self._config, self._callback = config, callback
        self._idle_since: float | None = None
        self._wait: CpuWait | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {}  # as that of `SweepCallback`

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Looks whether trials wait, and none runs."""
        statuses = {trial.status for trial in trials}
        if Trial.RUNNING in statuses or Trial.PENDING not in statuses:
            self._idle_since = self._wait = None
            return
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since < _START_S:
            return
        needed, limit_s = cpus_of(self._config), self._config.resources.wait_s
        self._wait = self._wait or CpuWait(needed, limit_s, self._callback.say)
        try:
            self._wait.go_on()
        except Failure as failure:
            self._callback.failure = self._callback.failure or failure


@contextmanager
def _quiet_tune(num_trials: int) -> Iterator[None]:
    """Ray Tune without its own files, tables and signal handlers."""
    loggers = [logging.getLogger(name) for name in ("ray.tune", "ray.train", "ray.air")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    pending = {"TUNE_MAX_PENDING_TRIALS_PG": str(max(16, num_trials))}
    try:
        with patch.dict(os.environ, _TUNE | pending), warnings.catch_warnings():
            # Of choices that are tables or lists, which only a database could not keep.
            warnings.filterwarnings("ignore", message="Choices for a categorical distribution")
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
