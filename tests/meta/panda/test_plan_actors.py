"""Actors that weigh plans: what they do, what their network says, and their gradients."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.worlds.panda.features import PAIR, proposals
from meta.panda.advisor import initial_advisor
from meta.panda.entry import begin_as_shared
from meta.panda.sampler import AdvisedSampler
from meta.panda.specifications import consumer_tree, consumers_table, specifications
from rllib_configs.config.loading import load_config
from rllib_configs.networks.registry import make_sampler
from rllib_configs.policy_files import policy_of
from rllib_configs.runners.candidates import CANDIDATES, CandidateWork, units_of
from rllib_configs.search_problem import joined, searched_shapes
from tests.meta.panda.slopes import assert_slopes, leaves_of, weights_of

PLANS = ("task.workload.window=25", "training.classes=4", "training.units=2")


def config_of(advisor: str, *changes: str):
    return load_config("panda-elastic", [*PLANS, f"training.advisor={advisor}", *changes])


@pytest.fixture(scope="module")
def task():
    return config_of("none").task.build(seed=0)


@pytest.fixture(scope="module")
def states(task) -> np.ndarray:
    """Of agents in the middle of episodes, some of which hold nodes."""
    simulator = task.world.simulator()
    simulator.load(task.jobsets(Split.TRAIN, range(16)), task.objective)
    rng = np.random.default_rng(0)
    for _ in range(8):
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        bits = rng.random((rows.size, task.world.num_actions)) < 0.1
        simulator.step(rows, bits.astype(np.int32), np.empty(rows.size))
    return simulator.states[simulator.active].copy()


@pytest.mark.parametrize("advisor", ["flat", "none"])
def test_gradients_agree_with_finite_differences(task, states, advisor: str) -> None:
    network = initial_advisor(config_of(advisor), task.world).double()
    features = task.world.features(states)
    plans = proposals(states, task.world.observed + task.world.held)
    rng = np.random.default_rng(0)
    actions = (features.allowed & (rng.random(features.allowed.shape) < 0.5)) * 3
    assert_slopes(network, lambda: network(features, plans), actions, rng, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("advisor", ["tree", "flat", "unclustered", "none"])
def test_what_is_done_is_what_the_network_finds_likeliest(task, states, advisor: str) -> None:
    """Compiled code against PyTorch, wherever no plan is in doubt."""
    config = config_of(advisor)
    network = initial_advisor(config, task.world)
    with torch.no_grad():
        network.shared.copy_(torch.from_numpy(np.random.default_rng(3).normal(0, 2, len(PAIR))))
    sampler = make_sampler(config, weights_of(network), task.world)
    assert isinstance(sampler, AdvisedSampler)
    num_actions = task.world.num_actions
    bits = sampler.logits(states)[:, :num_actions]
    sure = (np.abs(bits) > 2).all(axis=1)
    allowed = task.world.features(states).allowed
    allowed[:, -1] &= allowed[:, :-1].any(axis=1)
    done = sampler.likeliest(states)
    assert sure.sum() > 20
    assert ((done > 0) == (bits > 0))[allowed & sure[:, None]].all()


def test_needs_rise_with_scores(task, states) -> None:
    config = config_of("none")
    weights = {"network.shared": np.array([name == "left" for name in PAIR], np.float32)}
    weights["network.shared"][-1] = 10
    done = make_sampler(config, weights, task.world).likeliest(states)
    catches = done[:, : task.world.observed].max(axis=1)
    asking = catches > 0
    assert asking.sum() > 5
    order = np.argsort(states[asking, 1], kind="stable")
    assert (np.diff(catches[asking][order]) >= 0).all()
    assert len(set(catches[asking])) > 2


def test_a_searched_policy_draws_nothing_and_a_higher_bias_holds_back(task, states) -> None:
    config = config_of("none")
    weights = weights_of(initial_advisor(config, task.world))
    sampler = make_sampler(config, weights, task.world)
    uniforms = np.random.default_rng(0).random(len(states))
    assert (sampler.sample(states, uniforms)[0] == sampler.likeliest(states)).all()
    assert not sampler.likeliest(states, 1e6)[:, : task.world.observed].any()


def test_a_search_leaves_the_topology_alone_and_begins_as_the_shared_actor(task, states) -> None:
    """Candidates have the tree of the run, whatever is drawn for them."""
    shared, config = config_of("none"), config_of("tree")
    begun = weights_of(initial_advisor(shared, task.world))
    begun["network.shared"] = np.random.default_rng(5).normal(0, 2, len(PAIR)).astype(np.float32)
    own = weights_of(initial_advisor(config, task.world))
    started = begin_as_shared(shared, begun, config, own)
    done = [
        make_sampler(which, weights, task.world).likeliest(states)
        for which, weights in ((shared, begun), (config, started))
    ]
    assert (done[0] == done[1]).all()
    assert (started["network.tree_parent"] == own["network.tree_parent"]).all()

    searched = searched_shapes(config)
    topology = {name: value for name, value in started.items() if name not in searched}
    assert {name.rpartition("_")[0] for name in topology} == {"network.tree"}
    work = CandidateWork(config)
    flat = joined(started, searched)
    work.set_weights({CANDIDATES: np.stack([flat, flat + 1]), **topology})
    units = units_of(Split.TRAIN, 0, 2, 2, 2)
    one, other = (work.play(unit)[0].per_unit[unit.index] for unit in units)
    assert (one != other).any()
    with pytest.raises(InputError, match=r"needs a policy with the same training\.actor"):
        begin_as_shared(config, own, shared, begun)


def test_the_tree_of_an_unclustered_advisor_tells_no_classes_apart() -> None:
    """It has as many leaves, and every consumer belongs to several."""
    task = config_of("tree", "task.workload.own_classes=false").task.build(seed=0)
    jobsets = task.jobsets(Split.TRAIN, range(16))
    specs = consumers_table(specifications(task.world, jobsets), 2)
    classes = np.concatenate([one.job_class for one in jobsets])
    clustered, random = (consumer_tree(task.world, jobsets, 4, which) for which in (True, False))
    assert leaves_of(random).size == leaves_of(clustered).size == 4
    sure, unsure = (tree.gates(specs)[:, leaves_of(tree)] for tree in (clustered, random))
    assert np.allclose(unsure.sum(axis=1), 1.0)
    assert sure.max(axis=1).mean() > 0.9
    assert unsure.max(axis=1).mean() < 0.5
    assert adjusted_rand_score(classes, sure.argmax(axis=1)) > 0.9


def test_agents_and_a_central_rival_finish_all_consumers(task) -> None:
    """With the weights that a search begins with."""
    jobsets = task.jobsets(Split.VALIDATION, range(3))
    own = config_of("none")
    agents = policy_of(
        own, weights_of(initial_advisor(own, task.world)), "own", "argmax", task.world
    )
    rival = load_config(
        "panda-elastic", ["task.workload.window=25", "training.network=pair_scorer"]
    )
    score = np.array([{"left": -2, "constant": 10}.get(name, 0) for name in PAIR], np.float32)
    central = policy_of(rival, {"network.score": score}, "central", "argmax", task.world)
    for policy in (agents, central):
        schedule = evaluate(policy, jobsets, task.world)
        assert schedule.finished.all()
        assert schedule.num_episodes == 3
