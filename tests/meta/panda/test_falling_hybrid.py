"""The static scheduler of a hybrid decides less and less in the course of a training."""

import numpy as np
import pytest

from cluster_env.core.seeding import Split
from meta.panda.advisor import initial_advisor
from rllib_configs.config.loading import load_config
from rllib_configs.networks.registry import make_sampler
from rllib_configs.runners.candidates import CANDIDATES, CandidateWork, units_of
from rllib_configs.runners.sampling import UnitSampler, iteration_units
from rllib_configs.search_problem import joined, searched_shapes
from tests.meta.panda import slopes

FALLING = ("task.workload.window=20", "training.hybrid=0.8", "task.world.hybrid=0.2")
LAST = 6


def config_of(preset: str, *changes: str):
    sizes = ("training.jobsets=2", "training.jobsets_per_unit=1", "training.iterations=7")
    return load_config(preset, [*FALLING, *sizes, *changes])


def weights_of(config) -> dict[str, np.ndarray]:
    return slopes.weights_of(initial_advisor(config, config.task.world))


def test_its_share_falls_evenly_to_that_of_the_task() -> None:
    config = config_of("panda-elastic")
    world = config.task.world
    shares = [config.training.world_at(world, k).hybrid for k in range(LAST + 2)]
    assert shares == pytest.approx([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.2])
    assert config.training.world_at(world, None) is world
    constant = config_of("panda-elastic", "training.hybrid=0")
    assert constant.training.world_at(world, 0) is world


def test_candidates_are_played_with_the_share_of_their_iteration_by_whoever_plays_them() -> None:
    """So the share is the same after a resume, and with any number of runners."""
    config = config_of("panda-elastic")
    shapes = searched_shapes(config)
    mean = joined(weights_of(config), shapes)

    def costs(iteration: int | None, seed: int = 0) -> list[np.ndarray]:
        """Of each unit, by a worker of its own that has played other iterations before."""
        found = []
        for unit in units_of(Split.TRAIN, 0, 2, 1, 1, iteration):
            work = CandidateWork(config)
            work.set_weights({CANDIDATES: mean[None]})
            work.play(units_of(Split.TRAIN, 5, 1, 1, 1, 3)[0])
            found.append(work.play(unit)[0].per_unit[unit.index])
        return found

    early, again, late, task = (np.concatenate(costs(k), axis=1) for k in (0, 0, LAST, None))
    assert (early == again).all()
    assert (early != late).any()
    assert (late == task).all()
    one = CandidateWork(config)
    one.set_weights({CANDIDATES: mean[None]})
    (both,) = units_of(Split.TRAIN, 0, 2, 2, 1, 0)
    assert (one.play(both)[0].per_unit[0] == early).all()


def test_nothing_is_learned_from_what_the_static_scheduler_decided() -> None:
    config = config_of("panda-small", "training.episodes_per_jobset=2")
    sampler = UnitSampler(config)
    policy = make_sampler(config, weights_of(config), sampler.task.world)
    learned = []
    for iteration in (0, LAST):
        unit = iteration_units(config, iteration)[0]
        found = sampler(unit, policy)
        overruled = config.training.world_at(sampler.task.world, iteration).overruled(found.time)
        assert (found.log_probabilities[overruled] == 0).all()
        assert (found.log_probabilities[~overruled] < 0).any()
        assert found.rewards[overruled].sum() < 0
        learned.append(1 - overruled.mean())
    assert learned[0] < 0.5 < learned[1]
