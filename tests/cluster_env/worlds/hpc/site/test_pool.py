"""A site of one node is the pool, bit by bit; two partitions without a node in common are two."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Partition, Site
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, Rule
from cluster_env.worlds.hpc.scorer import SIZE, Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played, small_jobsets

ORDERS = ["fcfs", "saf", "lcfs", "wfp3", "unicep", "packer", "tetris", "priority", "random", "f1"]
POOL = HPC(processors=PROCESSORS, queue=16)
bounds = st.sampled_from([0, 2, 6])


def with_site(pool: HPC) -> HPC:
    """The same machine as one node."""
    node = NodeGroup("whole", 1, pool.processors, pool.memory, pool.gpus)
    return replace(pool, site=Site(nodes=(node,)))


def wide(jobset: JobSet, seed: int) -> JobSet:
    """The same jobs with users, memory (up to 20) and GPUs (up to 4)."""
    rng = np.random.default_rng(seed)
    more = rng.integers(0, [20, 4], (jobset.num_jobs, 2))
    attributes = {**jobset.attributes, "user": rng.integers(0, 3, jobset.num_jobs)}
    demand = np.concatenate([jobset.demand, more], axis=1).astype(np.int32)
    return replace(jobset, demand=demand, attributes=attributes)


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(
    jobset=small_jobsets(corrected=True),
    max_wait=bounds,
    seed=st.integers(0, 9),
    order=st.sampled_from(ORDERS),
)
@settings(max_examples=40)
def test_a_site_of_one_node_is_the_pool(
    order: str, backfilling: str, jobset: JobSet, max_wait: int, seed: int
) -> None:
    """Estimates are outlived and corrected; memory and GPUs are short, too."""
    pool = replace(POOL, max_wait=max_wait, memory=20, gpus=4)
    jobs, rule = wide(jobset, seed), Rule(order, backfilling)
    here, there = played(with_site(pool), [jobs], rule), played(pool, [jobs], rule)
    check_schedule(here, [jobs], complete_until=pool.max_time)
    assert here.start.tolist() == there.start.tolist()
    assert here.finish.tolist() == there.finish.tolist()
    assert here.end.tolist() == there.end.tolist()


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@given(
    jobset=small_jobsets(corrected=True),
    max_wait=bounds,
    seed=st.integers(0, 99),
    bilinear=st.booleans(),
)
@settings(max_examples=12)
def test_a_scorer_is_that_of_the_pool(
    mode: str, jobset: JobSet, max_wait: int, seed: int, bilinear: bool
) -> None:
    weights = np.random.default_rng(seed).normal(size=(SIZE, SIZE))
    if not bilinear:
        weights[:-1, :-1] = 0
    pool, starts = replace(POOL, max_wait=max_wait), []
    for world in (with_site(pool), pool):
        simulator = world.simulator()
        simulator.load([jobset], get_objective("bounded_slowdown"))
        simulator.play(Scorer(weights, mode))
        starts.append(simulator.schedule().start.tolist())
    assert starts[0] == starts[1]


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(
    parts=st.tuples(small_jobsets(exact=True), small_jobsets(exact=True)),
    order=st.sampled_from(["fcfs", "saf"]),
)
@settings(max_examples=12)
def test_partitions_without_a_common_node_are_pools_of_their_own(
    backfilling: str, parts: tuple[JobSet, JobSet], order: str
) -> None:
    """With fixed orders and estimates that hold: else a pass at an event of the others matters."""
    site = Site(
        nodes=(NodeGroup("a", 1, PROCESSORS), NodeGroup("b", 1, PROCESSORS)),
        partitions=(Partition("a", ("a",)), Partition("b", ("b",))),
    )
    rows = np.argsort(np.concatenate([part.arrival for part in parts]), kind="stable")

    def joined(name: str) -> NDArray:
        return np.concatenate([getattr(part, name) for part in parts])[rows]

    partition, run = np.repeat([0, 1], [part.num_jobs for part in parts])[rows], joined("duration")
    both = jobset_of(joined("arrival"), run, run, joined("demand"), partition=partition)
    rule = Rule(order, backfilling)
    together = played(replace(POOL, site=site), [both], rule).start
    for number, part in enumerate(parts):
        alone = played(POOL, [part], rule).start
        assert together[partition == number].tolist() == alone.tolist()
