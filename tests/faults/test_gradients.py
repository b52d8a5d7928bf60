"""A gradient that is not finite: the run stops and names it, or leaves the update out."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cluster_env.core.errors import Failure
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import prepare
from rllib_configs.learning.finite import FiniteUpdates, judge_skipped

SMALL = ["training.jobsets=2", "training.episodes_per_jobset=2"]
UNIT = "training.jobsets_per_unit=2"
MAML = [*SMALL, "training.tasks=2", "training.warm_up=0", "training.epochs=2"]
ALGORITHMS = {
    "reinforce": ("deeprm-smoke", [*SMALL, UNIT], 1),
    "ppo": ("deeprm-ppo", [*SMALL, UNIT, "training.epochs=2", "training.minibatches=2"], 4),
    "maml": ("deeprm-maml", MAML, 2),
}


class Learner(FiniteUpdates):
    """A learner without RLlib, of two parameters."""

    def __init__(self, on_nan: str) -> None:
        self.config = SimpleNamespace(
            experiment=SimpleNamespace(training=SimpleNamespace(on_nan=on_nan))
        )
        network = torch.nn.Linear(2, 1)
        wrapped = SimpleNamespace(unwrapped=lambda: network)
        self.module = {"policy": wrapped}
        self.get_param_ref = lambda parameter: parameter
        self.parameters = list(network.parameters())

    def takes(self, weight: float, bias: float) -> bool:
        first, second = self.parameters
        parts = {first: torch.tensor([[1.0, weight]]), second: torch.tensor([bias])}
        return self.accepts(bool(np.isfinite([weight, bias]).all()), lambda: parts)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_broken_gradient_is_named(broken: float) -> None:
    learner = Learner("skip")
    assert learner.takes(1.0, 1.0)
    assert not learner.takes(broken, 1.0)
    assert learner.takes(1.0, 1.0)
    assert not learner.takes(broken, broken)
    assert learner.take_skipped() == (("weight",), ("weight", "bias"))
    assert learner.take_skipped() == ()


def test_a_run_that_is_to_stop_makes_no_update_after_a_broken_one() -> None:
    learner = Learner("stop")
    assert not learner.takes(1.0, np.nan)
    assert not learner.takes(1.0, 1.0)
    with pytest.raises(Failure, match=r"iteration 7: the gradient of bias is not finite.*on_nan"):
        judge_skipped(learner.take_skipped(), "stop", 7)


def break_second_iteration(algorithm: Any) -> Callable[[], list[int]]:
    """Makes the first gradient of the next iteration NaN in one parameter."""
    learner = algorithm.learner_group._learner
    original, calls = learner.step, []

    def step(gradient: np.ndarray, lr: float) -> Any:
        calls.append(1)
        if len(calls) == 1:
            gradient = gradient.copy()
            gradient[0] = np.nan
        return original(gradient, lr)

    learner.step = step
    return lambda: calls


@pytest.mark.integration
@pytest.mark.parametrize("name", list(ALGORITHMS))
@pytest.mark.parametrize("on_nan", ["stop", "skip"])
def test_weights_stay_finite(local_ray: None, name: str, on_nan: str) -> None:
    preset, overrides, updates = ALGORITHMS[name]
    config = prepare(
        load_config(preset, [*overrides, "resources.num_runners=0", f"training.on_nan={on_nan}"])
    )
    algorithm = build_algorithm(config)
    try:
        assert iteration_metrics(algorithm.train())["train/skipped_updates"] == 0
        before = module_weights(algorithm)
        calls = break_second_iteration(algorithm)
        if on_nan == "stop":
            with pytest.raises(Failure, match="iteration 2: the gradient of "):
                algorithm.train()
        else:
            assert iteration_metrics(algorithm.train())["train/skipped_updates"] == 1
        assert len(calls()) == updates
        after = module_weights(algorithm)
        assert all(np.isfinite(value).all() for value in after.values())
        same = all(np.array_equal(after[key], before[key]) for key in before)
        assert same == (on_nan == "stop" or name == "reinforce")
    finally:
        algorithm.stop()
