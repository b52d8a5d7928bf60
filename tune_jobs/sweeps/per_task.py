"""Searches over several tasks, whose trials are compared within a task only.

It imports Ray, which must have been started; see `tune_jobs.sweeps.searches`.
"""

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from tune_jobs.sweeps.searched import SCORE, SETTINGS, SearchedSweep, Settings


def task_of(settings: Settings, task_keys: Sequence[str]) -> str:
    """The part of a trial's settings that makes its task; equal texts are equal tasks."""
    return json.dumps([settings[key] for key in task_keys], sort_keys=True)


class SchedulerPerTask(FIFOScheduler):
    """Has a scheduler for each task, so that no trial is stopped for another task's score.

    Args:
        task_keys: settings that give trials different tasks.
        make: makes the scheduler of a task.
    """

    def __init__(self, task_keys: Sequence[str], make: Callable[[], TrialScheduler]) -> None:
        super().__init__()
        self._task_keys = task_keys
        self._make = make
        self._schedulers: dict[str, TrialScheduler] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Tells the scheduler of the trial's task."""
        self._scheduler_of(trial).on_trial_add(tune_controller, trial)

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """Tells the scheduler of the trial's task."""
        self._scheduler_of(trial).on_trial_error(tune_controller, trial)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """Asks the scheduler of the trial's task."""
        return self._scheduler_of(trial).on_trial_result(tune_controller, trial, result)

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """Tells the scheduler of the trial's task."""
        self._scheduler_of(trial).on_trial_complete(tune_controller, trial, result)

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        """Tells the scheduler of the trial's task."""
        self._scheduler_of(trial).on_trial_remove(tune_controller, trial)

    def _scheduler_of(self, trial: Any) -> TrialScheduler:
        task = task_of(trial.config[SETTINGS], self._task_keys)
        if task not in self._schedulers:
            self._schedulers[task] = self._make()
        return self._schedulers[task]


class SearcherPerTask(Searcher):
    """Has a searcher for each task, and gives all tasks equally many trials.

    Args:
        sweep: what is searched.
        scored: settings and scores of trials that are over.
        make: makes the searcher of a task, from the task's share of those.
    """

    def __init__(
        self,
        sweep: SearchedSweep,
        scored: Sequence[tuple[Settings, float]],
        make: Callable[[Sequence[tuple[Settings, float]]], Searcher],
    ) -> None:
        super().__init__(metric=SCORE, mode=sweep.mode)
        keys = sweep.task_keys
        self._order = list(sweep.space)
        self._tasks: dict[str, Settings] = {}
        for values in itertools.product(*(sweep.space[key].values or () for key in keys)):
            settings = dict(zip(keys, values, strict=True))
            self._tasks[task_of(settings, keys)] = settings
        shares = {
            task: [each for each in scored if task_of(each[0], keys) == task]
            for task in self._tasks
        }
        self._searchers = {task: make(share) for task, share in shares.items()}
        self._num_begun = {task: len(share) for task, share in shares.items()}
        self._task_of: dict[str, str] = {}  # by id of a trial

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Settings of a task with the fewest trials."""
        task = min(self._tasks, key=self._num_begun.__getitem__)
        suggestion = self._searchers[task].suggest(trial_id)
        if suggestion is None:
            return None
        self._num_begun[task] += 1
        self._task_of[trial_id] = task
        settings = {**self._tasks[task], **suggestion[SETTINGS]}
        return {SETTINGS: {key: settings[key] for key in self._order}}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Tells the searcher of the trial's task."""
        self._searchers[self._task_of[trial_id]].on_trial_result(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tells the searcher of the trial's task."""
        searcher = self._searchers[self._task_of[trial_id]]
        searcher.on_trial_complete(trial_id, result=result, error=error)

    def save(self, checkpoint_path: str) -> None:
        """Writes nothing: a resumed sweep begins a new search with the scores that it has."""
