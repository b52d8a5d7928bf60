"""What a registration gives to every world: observations, masks, and ids that Gymnasium knows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import gymnasium
import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.core.spec import (
    WORLDS,
    Environments,
    Heuristic,
    WorldSpec,
    environment_ids,
    get_heuristic,
    spec_of,
)
from cluster_env.envs import ClusterVectorEnv, check_cluster_env
from cluster_env.envs.episodes import JobsetStream
from cluster_env.envs.view import View
from cluster_env.objectives import get_objective
from cluster_env.task import build_workload
from cluster_env.worlds import get_spec
from cluster_env.worlds.deeprm import DeepRM
from tests.registries import own_registrations


@dataclass(frozen=True)
class Mine(DeepRM):
    """DeepRM's world under another name."""

    kind: ClassVar[str] = "mine"


@pytest.fixture
def own_ids() -> Iterator[None]:
    """What a test registers is gone after it."""
    before = dict(gymnasium.registry)
    with own_registrations([WORLDS]):
        yield
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


def spec_with(ids: dict[str, dict[str, object]]) -> WorldSpec:
    deeprm = get_spec("deeprm")
    return replace(deeprm, world=Mine, environments=replace(deeprm.environments, ids=ids))


def test_gymnasium_knows_the_ids_of_a_world_that_was_just_registered(own_ids: None) -> None:
    WORLDS.register("mine")(spec_with({"Mine-v0": {"world": {"kind": "mine"}}}))
    assert "Mine-v0" in environment_ids()
    env = gymnasium.make("Mine-v0", workload={"window": 10})
    assert isinstance(env.unwrapped.world, Mine)
    check_cluster_env(env, num_episodes=1)
    assert isinstance(gymnasium.make_vec("Mine-v0", num_envs=2), ClusterVectorEnv)


def test_an_id_stands_for_one_thing(own_ids: None) -> None:
    shared = get_spec("deeprm").environments.ids
    WORLDS.register("mine")(spec_with(dict(shared)))  # the same options: DeepRM's id, still
    assert isinstance(gymnasium.make("DeepRM-v0").unwrapped.world, DeepRM)
    with pytest.raises(ValueError, match="environment 'DeepRM-v0' is registered twice"):
        WORLDS.register("other")(spec_with({"DeepRM-v0": {"world": {"kind": "other"}}}))


def test_the_smallest_registration_is_the_world_alone() -> None:
    spec = WorldSpec(Mine)
    assert spec.headline == "completion_time"
    assert spec.environments.observations.names() == ("state", "features", "flat")
    assert spec.environments.masks.names() == ("allowed",)
    assert spec.workloads.names() == spec.heuristics.names() == ()
    assert not spec.side_metrics


def test_what_a_world_shows_of_its_own_comes_first() -> None:
    first = {name: get_spec(name).environments.observations.names()[0] for name in WORLDS.names()}
    assert first["deeprm"] == "image"
    assert first["hpc"] == "jobs"
    assert first["accrual"] == "candidates"
    own = Environments(observations=Registry("observation", {"state": lambda world: None}))
    assert own.observations.get("state")(None) is None  # a world may say itself what its state is
    assert own.observations.names() == ("state", "features", "flat")


@pytest.mark.parametrize("name", WORLDS.names())
def test_every_world_shows_its_state_and_its_features(name: str) -> None:
    world = get_spec(name).world()
    workload = build_workload(world, get_spec(name).workloads.names()[0], {})
    simulator = world.simulator()
    simulator.load([JobsetStream(workload, 0).draw()], get_objective("completion_time"))
    states = simulator.states[np.flatnonzero(simulator.active)]
    expected = world.features(states)
    shown = View(world, "features", None, False)
    seen = shown.buffer(len(states))
    shown.look(states, seen)
    np.testing.assert_array_equal(seen["items"], expected.items)
    np.testing.assert_array_equal(seen["context"], expected.context)
    one = {key: values[0] for key, values in seen.items()}
    assert shown.observation_space.contains(one)
    row = View(world, "flat", None, False)
    flat = row.buffer(len(states))
    row.look(states, flat)
    num_items = expected.items[0].size
    np.testing.assert_array_equal(flat[:, :num_items], expected.items.reshape(len(states), -1))
    np.testing.assert_array_equal(flat[:, num_items:], expected.context)
    assert row.observation_space.contains(flat[0])
    whole = View(world, "state", None, False)
    copied = whole.buffer(len(states))
    whole.look(states, copied)
    np.testing.assert_array_equal(copied, states)
    assert whole.observation_space.contains(copied[0])


def test_names_that_nobody_registered_are_refused() -> None:
    with pytest.raises(InputError, match="unknown world 'mine'"):
        spec_of(Mine())
    with pytest.raises(InputError, match="unknown heuristic 'sfj': did you mean 'sjf'"):
        get_heuristic("sfj", DeepRM())


def test_a_registry_may_begin_with_things() -> None:
    rules = Registry("heuristic", {"first": Heuristic(lambda world, argument: None)})
    assert rules.names() == ("first",)
    with pytest.raises(ValueError, match="heuristic 'first' is registered twice"):
        rules.register("first")(rules.get("first"))
