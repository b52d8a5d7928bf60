"""Which trials go on, and what they take over from others."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from rllib_configs.loading import parse_section
from tests.tune_jobs.sweeps.trial_records import rows
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.schedulers import Evolution, Halving


def told(scheduler, index: int, iteration: int, score: float, scored: bool = True) -> str:
    trial = SimpleNamespace(trial_id="x", config={"trial": {"index": index}})
    result = {"iteration": iteration, "score": score, "scored": scored}
    return scheduler.on_trial_result(None, trial, result)


class TestHalving:
    def scheduler(self, sweep) -> Halving:
        data = sweep.to_dict() | {"search": "asha", "asha": {"grace": 1, "reduction": 3}}
        return Halving(parse_section(Sweep, data), 27)

    def test_it_decides_at_rungs_where_the_metric_is_new(self, sweep):
        scheduler = self.scheduler(sweep)
        for index in range(4):
            trial = SimpleNamespace(trial_id="x", config={"trial": {"index": index}})
            scheduler.on_trial_add(None, trial)
        for index, score in enumerate([1.0, 1.1, 1.2]):
            told(scheduler, index, 1, score)
        assert told(scheduler, 3, 1, 9.0, scored=False) == "CONTINUE"
        assert told(scheduler, 3, 1, 9.0) == "STOP"

    def test_replayed_trials_weigh_as_they_did(self, sweep):
        scheduler = self.scheduler(sweep)
        for index, score in enumerate([1.0, 1.1, 1.2]):
            scheduler.replay(index, rows(1, 2, score), "eval/ratio", 1)
        trial = SimpleNamespace(trial_id="x", config={"trial": {"index": 3}})
        scheduler.on_trial_add(None, trial)
        assert told(scheduler, 3, 1, 9.0) == "STOP"
        scheduler.on_trial_add(None, SimpleNamespace(config={"trial": {"index": 0}}))
        assert told(scheduler, 0, 2, 1.0) == "CONTINUE"

    @pytest.mark.parametrize(("score", "decision"), [(4.9, "CONTINUE"), (5.1, "STOP")])
    def test_replayed_trials_weigh_by_the_mean_of_their_newest_values(self, sweep, score, decision):
        scheduler = self.scheduler(sweep)
        noisy = [*rows(1, 1, 1.0), *rows(2, 2, 9.0), *rows(3, 3, 1.0)]
        for index in range(3):
            scheduler.replay(index, noisy, "eval/ratio", 2)
        scheduler.on_trial_add(None, SimpleNamespace(config={"trial": {"index": 3}}))
        assert told(scheduler, 3, 1, 0.5) == "CONTINUE"
        assert told(scheduler, 3, 3, score) == decision  # the others had (9 + 1) / 2


class TestEvolution:
    def test_a_trial_keeps_its_index_and_stays_in_range(self, sweep):
        space = {
            "training.lr": {"log_uniform": [1e-3, 1e-2]},
            "training.epochs": {"integer": [1, 4]},
        }
        data = sweep.to_dict() | {"search": "pbt", "trials": 2, "space": space}
        evolution = Evolution(parse_section(Sweep, data), 2)
        settings = {"training.lr": 1e-2, "training.epochs": 4}
        donor = SimpleNamespace(config={"trial": {"index": 0, "settings": settings}})
        taker = SimpleNamespace(config={"trial": {"index": 1, "settings": {}}})
        for _ in range(20):
            config, _ = evolution._get_new_config(taker, donor)
            assert config["trial"]["index"] == 1
            new = config["trial"]["settings"]
            assert 1e-3 <= new["training.lr"] <= 1e-2
            assert new["training.epochs"] in (1, 2, 3, 4)

    def test_a_trial_that_is_tried_again_evolves_when_it_would_have(self, sweep):
        space = {"training.lr": {"log_uniform": [1e-3, 1e-2]}}
        data = sweep.to_dict() | {"search": "pbt", "trials": 2, "space": space}
        evolution = Evolution(parse_section(Sweep, data), 2)
        trial = MagicMock(config={"trial": {"index": 0, "settings": {}}})
        trial.run_metadata.checkpoint_manager.checkpoint_config.num_to_keep = None
        controller = SimpleNamespace(search_alg=None)
        evolution.on_trial_add(controller, trial)
        evolution._trial_state[trial].last_perturbation_time = 10
        evolution.on_trial_error(controller, trial)
        evolution.on_trial_add(controller, trial)
        assert evolution._trial_state[trial].last_perturbation_time == 10
