"""What a sweep outlives, and how often; without Ray. In `test_sweeping` things are lost."""

import pytest
from ray.exceptions import NodeDiedError, ObjectLostError

from rllib_configs.loading import load_config
from tests.tune_jobs.sweeps.tiny import Quiet
from tune_jobs.sweeps import tuning
from tune_jobs.sweeps.callback import SweepCallback
from tune_jobs.sweeps.folder import find_work
from tune_jobs.sweeps.tuning import MAX_LOSSES, loss_behind, run_trials
from tune_jobs.terminal.signals import StopRequest
from tune_jobs.tracking import NullTracker


def raised_by_tune(loss: Exception) -> Exception:
    """What Ray Tune makes of an answer that it cannot have."""
    try:
        try:
            raise loss
        except Exception as error:
            raise RuntimeError("Caught unexpected exception") from error
    except RuntimeError as error:
        return error


def test_a_loss_is_found_behind_what_tune_makes_of_it():
    assert loss_behind(raised_by_tune(ObjectLostError("00", None, ""))) == "ObjectLostError"
    assert loss_behind(NodeDiedError("gone")) == "NodeDiedError"
    assert loss_behind(raised_by_tune(KeyError("slot"))) is None


@pytest.mark.parametrize(
    ("loss", "attempts"), [(ObjectLostError("00", None, ""), 1 + MAX_LOSSES), (KeyError("slot"), 1)]
)
def test_a_sweep_goes_on_after_a_few_losses_and_after_nothing_else(
    folder, monkeypatch, loss, attempts
):
    tried = []

    def fit(folder, work, *others):
        tried.append([point.index for point in work.points])
        raise raised_by_tune(loss)

    monkeypatch.setattr(tuning, "_fit", fit)
    config, table = load_config("deeprm-smoke"), Quiet()
    callback = SweepCallback(folder, NullTracker(), table)
    with pytest.raises(RuntimeError, match="unexpected"):
        run_trials(folder, find_work(folder), config, callback, StopRequest(print))
    assert tried == [[0, 1, 2]] * attempts
    said = table.text.getvalue()
    assert said.count("going on from what is recorded") == attempts - 1
