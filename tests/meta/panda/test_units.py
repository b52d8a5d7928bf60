"""Units of an advised run give the same bits whoever plays them, which runners rely on."""

import pickle

import numpy as np
import pytest
import torch

from meta.panda.advisor import initial_advisor
from rllib_configs.algorithms.ppo_units import PPOStep, PPOWork
from rllib_configs.learning.equalizing import Equalizer
from rllib_configs.loading import load_config
from rllib_configs.runners.sampling import iteration_units

SMALL = (
    *("task.workload.window=20", "training.hidden=3", "training.units=2", "training.classes=3"),
    *("training.jobsets=2", "training.jobsets_per_unit=1", "training.episodes_per_jobset=2"),
)


class Module(torch.nn.Module):
    """What a worker needs of the module that RLlib builds."""

    def __init__(self, network, world) -> None:
        super().__init__()
        self.network, self._world = network, world

    def set_state(self, state) -> None:
        self.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})

    def forward_train(self, batch):
        return {"action_dist_inputs": self.network(self._world.features(batch["obs"].numpy()))}


def worker(config, weights) -> PPOWork:
    """One that has just begun, in a process of its own for all it knows."""
    world = config.task.build_world()
    work = PPOWork(config, Module(initial_advisor(config, world), world))
    work.set_weights(pickle.loads(pickle.dumps(weights)))
    return work


def gradient(work: PPOWork, unit):
    """Rows of a unit, and the gradient from the first minibatch of them."""
    said, rows = work.play(unit)
    (one,) = said.per_unit.values()
    minibatches = work._training.minibatches
    count = one.rows_of(0, minibatches)
    step = PPOStep(0, 0, 0, count, Equalizer.of(one.spreads, 0.0), 0.0)
    return rows, work.gradient(rows, step).gradient


@pytest.mark.parametrize("advisor", ["flat", "none"])
def test_a_unit_gives_the_same_bits_whoever_plays_it(advisor: str) -> None:
    """One worker plays both units, as without runners, and others play one each."""
    config = load_config("panda-small", [*SMALL, f"training.advisor={advisor}"])
    network = initial_advisor(config, config.task.build_world())
    weights = {f"network.{name}": value.numpy() for name, value in network.state_dict().items()}
    alone = worker(config, weights)
    for unit in iteration_units(config, 0):
        (one, slope), (other, again) = (
            gradient(alone, unit),
            gradient(worker(config, weights), unit),
        )
        assert len(one.actions) > 10
        for name in ("states", "actions", "log_probabilities", "advantages"):
            assert (getattr(one, name) == getattr(other, name)).all(), name
        assert np.isfinite(slope).all()
        assert np.abs(slope).max() > 0
        assert (slope == again).all()
