"""What a sweep outlives, and how often; without Ray. In `test_sweeping` things are lost."""

import signal
import time
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import NodeDiedError, ObjectLostError

from cluster_env.core.errors import Failure
from rllib_configs.config.loading import load_config
from tests.tune_jobs.sweeps.tiny import Quiet
from tune_jobs.sweeps import tuning
from tune_jobs.sweeps.callback import SweepCallback
from tune_jobs.sweeps.folder import find_work
from tune_jobs.sweeps.tuning import MAX_LOSSES, _free_cpus, _StartedLate, loss_behind, run_trials
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


class TestWaiting:
    @pytest.fixture
    def cluster(self, monkeypatch):
        """Makes Ray say what a cluster has, at each question anew; there is none."""
        answers = iter(())

        def free() -> dict[str, float]:
            return {"CPU": cpus} if (cpus := next(answers, 0)) else {}

        def say(*free_then) -> None:
            nonlocal answers
            answers = iter(free_then)

        monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Labels": {}}])
        monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 4.0})
        monkeypatch.setattr(ray, "available_resources", free)
        monkeypatch.setattr(tuning, "GRACE_S", 0.0)
        return say

    def test_a_sweep_on_a_full_cluster_says_what_it_waits_for(self, cluster, monkeypatch):
        cluster(*[0] * 6, 3)
        said = []
        assert _free_cpus(load_config("deeprm-smoke"), 2, said.append, StopRequest(print)) == 3
        assert said == ["waits for 1 CPU; 0 of 4 are free; gives up in 1:00 h"]

    def test_the_wait_ends_by_its_limit_or_a_signal(self, cluster):
        config = load_config("deeprm-smoke", ["resources.wait_s=0.3", "resources.num_runners=1"])
        stop = StopRequest(print)
        with pytest.raises(Failure, match=r"^2 CPUs did not come free within 0 s \(0 of 4 are"):
            _free_cpus(config, 2, lambda text: None, stop)
        stop.signal = signal.SIGTERM
        assert _free_cpus(config, 2, pytest.fail, stop) == 0

    def test_a_sweep_whose_trials_get_no_process_says_so_and_ends(
        self, cluster, folder, monkeypatch
    ):
        monkeypatch.setattr(tuning, "_START_S", 0.0)
        table = Quiet()
        callback = SweepCallback(folder, NullTracker(), table)
        late = _StartedLate(load_config("deeprm-smoke", ["resources.wait_s=0.2"]), callback)
        waiting, running = SimpleNamespace(status="PENDING"), SimpleNamespace(status="RUNNING")
        late.on_step_end(0, [waiting, running])
        assert table.text.getvalue() == ""
        late.on_step_end(1, [waiting])
        assert table.text.getvalue().startswith("waits for 1 CPU; 0 of 4 are free; gives up in ")
        assert callback.failure is None
        time.sleep(0.3)
        late.on_step_end(2, [waiting])
        assert isinstance(callback.failure, Failure)
