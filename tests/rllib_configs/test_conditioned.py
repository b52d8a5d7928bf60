"""What a policy is told of an objective, and a world whose states say it."""

import math

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.world import Features
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from rllib_configs.conditioned import ConditionedWorld, check_conditions, condition_of


def told(names: str, objective: str) -> list[float]:
    return [value for _, value in condition_of(names.split(), get_objective(objective))]


def test_a_policy_is_told_the_shares_of_the_weights() -> None:
    assert told("slowdown makespan", "makespan") == [0, 1]
    assert told("slowdown makespan", "3 slowdown + 1 makespan") == [0.75, 0.25]
    assert told("slowdown makespan utilization", "2 slowdown") == [1, 0, 0]


def test_a_policy_is_told_the_weights_of_classes() -> None:
    names = "slowdown class_weight_0 class_weight_1"
    assert told(names, "class_slowdown(100, 0.1)") == pytest.approx([0, 2, -1])
    assert told(names, "class_slowdown(1, 0)") == pytest.approx([0, 0, math.log10(1e-3)])
    assert told(names, "slowdown") == [1, 0, 0]


@pytest.mark.parametrize("objective", ["makespan", "1 slowdown + 1 makespan", "class_slowdown(1)"])
def test_what_it_is_not_told_of_is_refused(objective: str) -> None:
    with pytest.raises(InputError, match="cannot be used for the objective"):
        told("slowdown", objective)


@pytest.mark.parametrize("names", ["slow", "class_weight_x", "makespan makespan", "limit_wait"])
def test_nothing_else_can_be_told(names: str) -> None:
    with pytest.raises(InputError, match=names.split()[0]):
        check_conditions(names.split())


def test_the_condition_stands_behind_the_context_of_each_state() -> None:
    world = HPC(16, queue=3)
    seen = ConditionedWorld(world, (("slowdown", 0.25), ("makespan", 0.75)))
    states = np.ones((4, world.layout.size), np.int32)
    plain, found = world.features(states), seen.features(states)
    names = seen.feature_names
    assert names[0] == world.feature_names[0]
    assert names[1] == (*world.feature_names[1], "told_slowdown", "told_makespan")
    assert np.array_equal(found.items, plain.items)
    assert np.array_equal(found.context[:, :-2], plain.context)
    assert (found.context[:, -2:] == [0.25, 0.75]).all()
    out = Features(*(np.zeros_like(array) for array in found))
    assert seen.features(states, out) is out
    assert all(np.array_equal(a, b) for a, b in zip(out, found, strict=True))
