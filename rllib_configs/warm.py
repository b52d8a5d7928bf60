"""Compiles what samples and learns, once; `cluster_env.warm` does so for the worlds alone.

Beside DeepRM's network and the scorer of slots, that is what decides for agents by the plans of
their supervisor.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Split
from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.algorithms.ppo import steps_of
from rllib_configs.config.loading import load_config
from rllib_configs.config.registries import NETWORKS
from rllib_configs.learning.flat import flat_parameters
from rllib_configs.networks.linear import products
from rllib_configs.networks.registry import make_sampler, network_of
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyLoss
from rllib_configs.runners.sampling import iteration_units
from rllib_configs.runners.sums import total
from rllib_configs.runners.unit_runner import UnitEnvRunner
from rllib_configs.runners.units import Request, Round

PRESETS = ("deeprm-smoke", "deeprm-ppo")
ACTING = ("deeprm-operation", "hpc-smoke", "panda-populations")


def warm() -> None:
    """Runs everything once, the networks' gradients included; Ray is not started."""
    for preset in PRESETS:
        small = ["training.jobsets=2", "training.jobsets_per_unit=1"]
        _iterate(load_config(preset, [*small, "resources.num_runners=0"]))
    for preset in ACTING:
        _act(load_config(preset))


def _runner(config: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """A runner in this process, and the weights that its network begins with."""
    runner = UnitEnvRunner(config=algorithm_config(config), worker_index=0)
    return runner, {name: np.array(value) for name, value in runner.module.get_state().items()}


def _act(config: Any) -> None:
    """Decides for a jobset that has just begun, with the weights that training begins with."""
    _, weights = _runner(config)
    task = config.task.build()
    simulator = task.world.simulator()
    simulator.load(task.jobsets(Split.TRAIN, range(1)), task.objective)
    states = simulator.states[simulator.active]
    make_sampler(config, weights, task.world).sample(states, np.full(len(states), 0.5))
    if NETWORKS.get(config.training.network).has_score_gradient:
        network = network_of(config).scorer(config.training, task.world.feature_names, seed=0)
        _differentiate(network, task.world, states)


def _differentiate(network: Any, world: Any, states: NDArray[Any]) -> None:
    """Computes a gradient as meta-learning does, of a network that scores items in its own way."""
    flat, count = network.flat_form(world), len(states)
    void = np.full(count, world.num_actions - 1, np.int32)
    ones = np.ones(count, np.float32)
    choices = Choices(flat.show(states), void, -ones, ones, np.array([0, count]))
    flat.gradient(flat.flatten(dict(network.named_parameters())), choices, PolicyLoss())
    products(ones[:, None], ones[:, None])  # what values are fitted with


def _iterate(config: Any) -> None:
    """Samples, and computes a gradient of each unit, as a runner does."""
    runner, weights = _runner(config)
    units = dict(enumerate(iteration_units(config, 0)))
    played = runner.answer(Request(units, Round(0, weights, len(units))))
    if played.error:
        raise RuntimeError(played.error)
    part = total(played.parts, len(units))
    if part.gradient is not None:
        return
    step = next(steps_of(config.training, part, 0, 1.0))
    at = flat_parameters(runner.module)
    learned = runner.answer(Request(units, Round(0, weights, len(units), step, at)))
    if learned.error:
        raise RuntimeError(learned.error)
