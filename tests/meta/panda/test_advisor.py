"""The policy advisor: its gradients, its topology, and what its actors do."""

import numpy as np
import pytest
import torch

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.core.world import Features
from cluster_env.objectives import get_objective
from meta.panda.actors import LEVELS
from meta.panda.advisor import PolicyAdvisor, build_advisor, initial_advisor
from meta.panda.sampler import AdvisedSampler
from meta.panda.specifications import consumers_table, specifications
from rllib_configs.config.loading import load_config
from rllib_configs.learning.losses import log_probabilities_of
from rllib_configs.networks.registry import make_sampler
from rllib_configs.runners.rollout import rollout
from tests.meta.panda.slopes import assert_slopes, leaves_of, weights_of

SMALL = ("training.hidden=3", "training.units=2", "training.classes=4", "task.workload.window=25")


@pytest.fixture(scope="module")
def config():
    return load_config("panda-small", ["training.network=policy_advisor", *SMALL])


@pytest.fixture(scope="module")
def task(config):
    return config.task.build(seed=0)


@pytest.fixture(scope="module")
def network(config, task) -> PolicyAdvisor:
    return initial_advisor(config, task.world)


@pytest.fixture(scope="module")
def seen(task) -> tuple[np.ndarray, Features]:
    """States of some agents, and what they see."""
    simulator = task.world.simulator()
    simulator.load(task.jobsets(Split.TRAIN, range(4)), get_objective("completion_time"))
    while np.flatnonzero(simulator.active).size < 6:
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        simulator.step(rows, np.full(rows.size, task.world.num_actions - 1), np.empty(rows.size))
    states = simulator.states[np.flatnonzero(simulator.active)].copy()
    return states, task.world.features(states)


def test_an_advisor_fed_one_specification_is_a_plain_actor(network, seen) -> None:
    """Written out for one row, with the weights that the advisor makes for it."""
    _, features = seen
    one = Features(*(array[:1] for array in features))
    context = torch.from_numpy(one.context)
    weights = network.advise(context[:, network.columns])
    part = {name: value[0] for name, value in network.shape.split(weights).items()}
    nodes, context = torch.from_numpy(one.items[0]), context[0]
    hidden = torch.relu(nodes @ part["item"] + context @ part["context"] + part["bias"])
    scores = hidden @ part["score"] + nodes @ part["skip"] + part["offset"]
    waits = torch.relu(context @ part["wait_context"] + part["wait_bias"])
    wait = waits @ part["wait_score"] + part["wait"]
    urgency = waits @ part["urgency"] + part["urgency_bias"]
    found = network(one)[0]
    allowed = np.append(one.allowed[0], np.ones(LEVELS, bool))
    expected = torch.cat([scores, wait, urgency])
    assert torch.allclose(found[allowed], expected[allowed], atol=1e-5)
    assert (found[~allowed] < -1e8).all()


def test_rows_have_actors_of_their_own(network, seen) -> None:
    _, features = seen
    together = network(features)
    for row in range(len(together)):
        alone = network(Features(*(array[row : row + 1] for array in features)))[0]
        assert torch.allclose(together[row], alone, atol=1e-5)


@pytest.mark.parametrize("advisor", ["tree", "flat", "none"])
def test_gradients_through_the_advisor_agree_with_finite_differences(
    config, task, seen, advisor: str
) -> None:
    changed = config.model_copy(
        update={"training": config.training.model_copy(update={"advisor": advisor})}
    )
    network = initial_advisor(changed, task.world).double()
    _, features = seen
    rng = np.random.default_rng(0)
    actions = (features.allowed & (rng.random(features.allowed.shape) < 0.5)) * 3
    actions[:, -1] *= features.allowed[:, :-1].any(axis=1)
    assert_slopes(network, lambda: network(features), actions, rng, abs=1e-7)


def test_units_of_a_branch_are_on_where_a_specification_belongs(network, task) -> None:
    tree = network.tree()
    specs = specifications(task.world, task.jobsets(Split.VALIDATION, range(4)))
    gates = tree.gates(consumers_table(specs, tree.evidence.categories[0] - 1))
    assert np.allclose(gates[:, 0], 1.0)
    assert np.allclose(gates[:, leaves_of(tree)].sum(axis=1), 1.0)
    for node in range(1, len(tree.parent)):
        if tree.parent[node] >= 0:
            sides = tree.parent == tree.parent[node]
            assert np.allclose(gates[:, sides].sum(axis=1), gates[:, tree.parent[node]])
    assert (gates[:, leaves_of(tree)].max(axis=1) > 0.9).mean() > 0.9


def test_the_tree_travels_with_the_weights(config, network, task, seen) -> None:
    sampler = make_sampler(config, weights_of(network), task.world)
    assert isinstance(sampler, AdvisedSampler)
    assert np.allclose(sampler.logits(seen[0]), network(seen[1]).detach().numpy(), atol=1e-6)
    assert build_advisor(config, task.world).tree_statistics.abs().sum() == 0


def test_draws_have_the_probabilities_that_they_say(config, network, task, seen) -> None:
    """Of many draws for one state, each bit and each level as often as its logit says."""
    sampler = make_sampler(config, weights_of(network), task.world)
    states = np.repeat(seen[0][:1], 4000, axis=0)
    actions, log_probabilities = sampler.sample(states, np.random.default_rng(1).random(4000))
    logits = torch.from_numpy(sampler.logits(states))
    expected = log_probabilities_of(logits, torch.from_numpy(actions))[0].numpy()
    assert np.allclose(log_probabilities, expected, atol=1e-5)
    bits = task.world.num_actions
    share = torch.sigmoid(logits[0, :bits]).numpy()
    assert np.abs((actions > 0).mean(axis=0) - share).max() < 0.04
    level = actions.max(axis=1)[actions.any(axis=1)] - 1
    chance = torch.softmax(logits[0, bits:], dim=0).numpy()
    assert np.abs(np.bincount(level, minlength=LEVELS) / level.size - chance).max() < 0.04


def test_agents_that_follow_best_fit_at_first_finish_their_consumers(config, network, task) -> None:
    sampler = make_sampler(config, weights_of(network), task.world)
    jobsets = task.jobsets(Split.TRAIN, range(2))
    played = rollout(
        task.world, sampler, jobsets, task.objective, 2, np.arange(4, dtype=np.uint64) * 77 + 5
    )
    assert played.outcome["num_unfinished"].sum() == 0
    assert played.actions.shape == (played.num_rows, task.world.num_actions)


def test_other_worlds_have_no_specification() -> None:
    config = load_config("deeprm-ppo")
    with pytest.raises(InputError, match="take the world panda"):
        build_advisor(config, config.task.world)


def test_actors_of_one_shape_take_any_number_of_nodes(network) -> None:
    weights = network.shared.detach()[None]
    items = np.zeros((1, 40, len(network.shape.items)), np.float32)
    seen = Features(items, np.zeros((1, 17), np.float32), np.ones((1, 41), bool))
    assert network.shape.logits(weights, seen).shape == (1, 41 + LEVELS)
