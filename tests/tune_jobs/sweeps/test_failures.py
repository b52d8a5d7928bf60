"""What a sweep outlives, and how often; without Ray. In `test_sweeping` things are lost."""

import pytest
from ray.exceptions import NodeDiedError, ObjectLostError

from rllib_configs.loading import load_config
from tests.tune_jobs.sweeps.tiny import Quiet
from tune_jobs.sweeps import sweeping
from tune_jobs.sweeps.failures import MAX_LOSSES, loss_behind
from tune_jobs.sweeps.records import find_work
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

    def fit(session, callback, stop):
        tried.append([point.index for point in session._work.points])
        raise raised_by_tune(loss)

    monkeypatch.setattr(sweeping._Session, "_fit", fit)
    config, table = load_config("deeprm-smoke"), Quiet()
    given = (folder, find_work(folder), config, table, NullTracker(), None, 0.0)
    with pytest.raises(RuntimeError, match="unexpected"):
        sweeping._Session(*given).run()
    assert tried == [[0, 1, 2]] * attempts
    said = table.text.getvalue()
    assert said.count("going on from what is recorded") == attempts - 1
