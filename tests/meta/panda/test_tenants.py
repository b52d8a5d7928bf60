"""Tenants whose consumers differ in memory alone: who can tell them apart, and by what."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.objectives import read_class_weights
from cluster_env.worlds.panda.consumers import TOLERANCE
from cluster_env.worlds.panda.features import proposals
from cluster_env.worlds.panda.nodes import Nodes
from cluster_env.worlds.panda.workloads import ClusteredWorkload
from meta.panda.specifications import (
    SPECIFICATION,
    consumer_tree,
    consumers_table,
    num_core_types,
    specifications,
)
from rllib_configs.config.loading import load_config
from tests.meta.panda.slopes import leaves_of


@pytest.fixture(scope="module")
def task():
    return load_config("panda-tenants").task.build(seed=0)


@pytest.fixture(scope="module")
def jobsets(task) -> list[JobSet]:
    return task.jobsets(Split.TRAIN, range(12))


def test_an_actor_sees_the_same_of_all_tenants_and_the_advisor_their_memory(task, jobsets) -> None:
    jobset = jobsets[0]
    assert set(jobset.job_class) == set(range(4))
    at_once = JobSet.of(
        np.zeros(jobset.num_jobs, int), jobset.duration, jobset.demand, 1, None, jobset.attributes
    )
    simulator = task.world.simulator()
    simulator.load([at_once], task.objective)
    # What the actors weigh: the plans of their consumers.
    pairs = proposals(simulator.states, task.world.observed + task.world.held).pairs
    assert pairs.any()
    assert (pairs == pairs[0]).all()
    specs = specifications(task.world, [jobset])
    varying = {name for name, column in zip(SPECIFICATION, specs.T, strict=True) if np.ptp(column)}
    assert varying == {"memory"}


def test_contracts_do_not_follow_memory(task, jobsets) -> None:
    weights = np.array(read_class_weights(task.objective.name))
    memory, tenant = (
        np.concatenate([np.asarray(column) for column in columns])
        for columns in zip(
            *((one.attributes["memory"], one.job_class) for one in jobsets), strict=True
        )
    )
    medians = [np.median(memory[tenant == k]) for k in range(4)]
    assert medians == sorted(medians)
    assert (np.diff(np.sign(np.diff(weights))) != 0).all()


def test_the_leaves_of_the_advisor_are_the_tenants(task, jobsets) -> None:
    jobsets = jobsets[:4]
    specs = specifications(task.world, jobsets)
    tree = consumer_tree(task.world, jobsets, 4)
    gates = tree.gates(consumers_table(specs, num_core_types(task.world)))[:, leaves_of(tree)]
    tenants = np.concatenate([one.job_class for one in jobsets])
    assert gates.shape[1] == 4
    assert adjusted_rand_score(tenants, gates.argmax(axis=1)) > 0.9


def test_classes_may_have_deadlines_of_their_own() -> None:
    plain = ClusteredWorkload(feedback=1.0)
    workload = ClusteredWorkload(feedback=1.0, tolerances=(0.5, 1.0, 2.0, 4.0))
    drawn, given = (one.sample(np.random.default_rng(0)) for one in (plain, workload))
    assert (drawn.duration == given.duration).all()
    expected = np.array([50, 100, 200, 400])[given.job_class]
    assert (given.attributes[TOLERANCE] == expected).all()
    for wrong in ((1.0, 2.0), (0.0, 1.0, 1.0, 1.0)):
        with pytest.raises(InputError, match="for each of the 4 classes"):
            ClusteredWorkload(tolerances=wrong)


def test_memory_bound_consumers_fit_only_on_the_nodes_with_the_most_memory() -> None:
    nodes = Nodes(
        count=(2, 2), cores=(16, 16), speed=(1.0, 1.0), memory=(64, 256), core_type=(0, 0)
    )
    bound, free = (
        ClusteredWorkload(nodes, alike=True, spread=0.05, memory_bound=value).sample(
            np.random.default_rng(0)
        )
        for value in (True, False)
    )
    assert (bound.arrival == free.arrival).all()
    assert (bound.demand == 16).all()
    assert free.attributes["memory"].max() <= 64
    needs = bound.attributes["memory"] > 64
    assert needs[bound.job_class >= 2].all()
    assert not needs[bound.job_class < 2].any()
    assert bound.attributes["memory"].max() <= 256
    with pytest.raises(InputError, match="memory_bound requires alike"):
        ClusteredWorkload(nodes, memory_bound=True)
