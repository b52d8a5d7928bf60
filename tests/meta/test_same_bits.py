"""An iteration comes to the same bits with 0, 1, 2 and 3 runners, and whoever is lost in it.

These runners are true ones, without processes of their own; tests of each algorithm have those.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import ray

from meta.maml.algorithm import update_plan
from meta.maml.runner import OuterStep, iteration_tasks
from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.algorithms.ppo import steps_of
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.flat import flat_parameters
from rllib_configs.runners.dispatch import Iteration, Timeouts
from rllib_configs.runners.sampling import iteration_units
from rllib_configs.runners.unit_runner import UnitEnvRunner
from rllib_configs.runners.units import Answer, Request
from tests.meta.maml.test_algorithm import config_of as maml_config
from tests.rllib_configs.runners.test_dispatch import (
    Group,
    _no_ray,  # noqa: F401 - no call leaves this process
)

NUM_UNITS = 4
SIZES = ["training.jobsets=8", "training.jobsets_per_unit=2", "training.episodes_per_jobset=3"]
SMALL = [*SIZES, "training.epochs=2", "training.minibatches=2"]
ADVISED = ["task.workload.window=12", "training.advisor=flat", "training.units=2"]
CONFIGS = {
    "reinforce": lambda: load_config("deeprm-smoke", SIZES),
    "ppo": lambda: load_config("deeprm-ppo", SMALL),
    "ppo with critic": lambda: load_config("deeprm-ppo", [*SMALL, "training.critic=true"]),
    "advised agents": lambda: load_config("panda-small", [*SMALL, *ADVISED]),
    "maml of first order": lambda: maml_config(),
    "maml of second order": lambda: maml_config(training_order="second"),
}


class Runner:
    """A runner that keeps what it was asked for."""

    def __init__(self, config: ExperimentConfig) -> None:
        self.runner = UnitEnvRunner(config=algorithm_config(config), worker_index=0)
        self.asked: list[Request] = []

    def sample(self, *, request: Request) -> Answer:
        self.asked.append(request)
        return self.runner.answer(request)


@cache
def runners_of(name: str) -> list[Runner]:
    """Four, the first of which does what nobody else is left for."""
    config = CONFIGS[name]()
    return [Runner(config) for _ in range(4)]


@cache
def first_weights(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Those of a module that has not learned, and what is learned of them as one vector."""
    module = runners_of(name)[0].runner.module
    weights = {key: np.array(value, np.float32) for key, value in module.get_state().items()}
    return weights, flat_parameters(module).copy()


def group_of(name: str, count: int) -> Group:
    here, *others = runners_of(name)
    for each in others:
        each.asked.clear()
    runners = dict(enumerate(others[:count], 1))
    return Group(runners, here=here, timeouts=Timeouts())  # type: ignore[arg-type]


def iterate(name: str, group: Group, lost: str = "") -> list[np.ndarray]:
    """The vectors of an iteration: gradients, and the parameters after each.

    Args:
        name: of the config.
        group: who does it.
        lost: when the first runner dies: in sampling, or in the first update.
    """
    config = CONFIGS[name]()
    weights, parameters = first_weights(name)
    is_maml = config.training.algorithm == "maml"
    units = iteration_tasks(config, 3) if is_maml else iteration_units(config, 0)
    assert len(units) == NUM_UNITS
    iteration = Iteration(group, units, weights)  # type: ignore[arg-type]
    group.dying = {1: 1} if lost == "sampling" else {}
    played = iteration.play().part
    if lost == "update":
        group.dying = {1: len(group.runners[1].asked) + 1}
    found = []
    for step, indices in _steps(config, played, is_maml):
        gradient = iteration.step(step, parameters, indices).part.gradient
        parameters = parameters - np.float32(0.01) * gradient
        found += [gradient, parameters]
    assert group.lost == ([(1, False)] if lost else [])
    return found or [played.gradient]


def _steps(config: ExperimentConfig, played: Any, is_maml: bool) -> Iterator[tuple[Any, Any]]:
    if is_maml:
        for indices in update_plan(config, 3):
            yield OuterStep(len(indices)), indices
    elif played.gradient is None:
        for step in steps_of(config.training, played, 0, 1.0):
            yield step, None


@pytest.mark.parametrize("name", CONFIGS)
def test_any_number_of_runners_comes_to_the_same_bits_also_where_one_is_lost(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "put", lambda value: value)
    alone = iterate(name, group_of(name, 0))
    assert all(np.abs(vector).max() > 0 for vector in alone)
    others = [(1, ""), (2, ""), (3, ""), (1, "sampling"), (2, "sampling"), (3, "sampling")]
    if len(alone) > 1:  # there are updates after it was sampled
        others += [(2, "update"), (3, "update")]
    for count, lost in others:
        found = iterate(name, group_of(name, count), lost)
        for one, other in zip(found, alone, strict=True):
            assert np.array_equal(one, other), (count, lost)
