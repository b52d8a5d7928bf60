"""Population based training that also goes on where a sweep is resumed, or a trial fails.

It imports Ray, which must have been started; see `tune_jobs.sweeps.searches`.
"""

from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import PopulationBasedTraining


class Population(PopulationBasedTraining):
    """Has a moment for which all trials wait, and puts it off where none could come to it.

    Ray Tune counts such moments from the beginning of a session. Trials that go on from an earlier
    one may all have passed the next; trials may also wait for one that has failed meanwhile.
    """

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """The trial that has come least far; None where those that run decide what is next."""
        chosen = super().choose_trial_to_run(tune_controller)
        live = tune_controller.get_live_trials()
        if chosen is None and live and all(trial.status == Trial.PAUSED for trial in live):
            reached = min(self._trial_state[trial].last_train_time for trial in live)
            self._next_perturbation_sync = reached + self._perturbation_interval
            chosen = super().choose_trial_to_run(tune_controller)
        return chosen
