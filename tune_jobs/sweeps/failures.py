"""Trials and sweeps that fail: tried again where something was lost, and said in true words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial

MAX_FAILURES = 2  # of a trial, whose machine may have gone away
MAX_LOSSES = 3  # of a sweep, that Ray Tune itself does not outlive


@contextmanager
def retried_trials(failures: dict[str, Exception]) -> Iterator[None]:
    """Ray Tune, in a ``with`` block, tries every trial again whose process was lost.

    Left alone, it does so only while the trial runs. Where a process dies between two trials, Ray
    hears of it twice as it takes the next one: from the process and from the call. At first it
    puts the trial back into the queue, and then fails it, because it is no longer running.

    Args:
        failures: gets the newest failure of each trial, by its id; Ray keeps them in a folder
            where its own `Trial.get_error` does not look.
    """
    original = TuneController._process_trial_failure

    def process(controller: TuneController, trial: Trial, exception: Exception) -> None:
        if trial.status == Trial.PENDING and failures.get(trial.trial_id) is exception:
            return
        failures[trial.trial_id] = exception
        controller._resetting_trials.discard(trial)  # else it would wait for the lost process
        original(controller, trial, exception)

    with patch.object(TuneController, "_process_trial_failure", process):
        yield


def loss_behind(error: BaseException) -> str | None:
    """What Ray has lost, where an error comes of that; None where it comes of anything else.

    Ray Tune takes a process that has died for the failure of a trial. Where a machine takes an
    answer with it that nobody has fetched yet, it gives up the whole sweep.
    """
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ObjectLostError | NodeDiedError | WorkerCrashedError):
            return type(found).__name__
        found = found.__cause__ or found.__context__
    return None


def describe(failure: Exception | None) -> str:
    """Why a trial failed, in one line."""
    if isinstance(failure, RayActorError):
        return "its process died; its machine may be out of memory, or gone"
    cause: Any = failure.cause if isinstance(failure, RayTaskError) else failure
    if cause is None:
        return "Ray Tune does not say why"
    return f"{type(cause).__name__}: {' '.join(str(cause).split())[:500]}"
