"""A population whose trials wait for each other does not wait for ever; without Ray running."""

from types import SimpleNamespace
from typing import Any

from ray.tune.experiment import Trial

from tests.tune_jobs.sweeps.tiny import sweep
from tune_jobs.sweeps.searched import SCORE, SCORED_AT


class OneTrial:
    """What a scheduler sees of a trial."""

    experiment_tag, status = "", Trial.PENDING

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.evaluated_params: dict[str, Any] = {}
        keep_all = SimpleNamespace(num_to_keep=None)
        manager = SimpleNamespace(checkpoint_config=keep_all)
        self.run_metadata = SimpleNamespace(checkpoint_manager=manager)

    def is_finished(self) -> bool:
        return self.status in (Trial.ERROR, Trial.TERMINATED)


class Session:
    """Runs one trial at a time, as Ray Tune does, and notes what each has reported."""

    search_alg = None

    def __init__(self, num_trials: int) -> None:
        space = {"training.lr": {"log_uniform": [1e-4, 1e-2]}}
        population = sweep(space=space, search="pbt", pbt={"interval": 5}, trials=num_trials)
        self.scheduler: Any = population.strategy.scheduler(population, 60)
        self.scheduler._checkpoint_or_exploit = lambda *_: None
        self.trials = [OneTrial() for _ in range(num_trials)]
        for trial in self.trials:
            self.scheduler.on_trial_add(self, trial)

    def get_trials(self) -> list[OneTrial]:
        return self.trials

    def get_live_trials(self) -> set[OneTrial]:
        return {trial for trial in self.trials if not trial.is_finished()}

    def report(self, reached: int) -> int:
        """The next trial has come so far; returns which it was."""
        trial = self.scheduler.choose_trial_to_run(self)
        assert trial is not None, "all wait for ever"
        trial.status = Trial.RUNNING
        result = {SCORE: 1.0, SCORED_AT: reached}
        assert self.scheduler.on_trial_result(self, trial, result) == "PAUSE"
        trial.status = Trial.PAUSED
        return self.trials.index(trial)


def test_trials_wait_for_each_other() -> None:
    session = Session(2)
    assert [session.report(reached) for reached in (5, 5, 10, 10)] == [0, 1, 0, 1]


def test_trials_that_begin_behind_the_first_moments_go_on() -> None:
    session = Session(2)
    for reached in (15, 20, 25):
        assert {session.report(reached), session.report(reached)} == {0, 1}


def test_who_waits_for_a_trial_that_fails_goes_on() -> None:
    session = Session(2)
    assert session.report(5) == 0
    session.trials[1].status = Trial.ERROR
    assert session.report(10) == 0
