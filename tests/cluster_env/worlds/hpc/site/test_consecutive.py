"""Slurm's choice of nodes without a topology, on instances worked by hand.

What is free, and which jobs a real Slurm 22.05 then put where, is in tests/slurm as well.
"""

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Partition, Site
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule

HOUR = 3600


def nodes_of_last(free, size, nodes, weights=(1,) * 9):
    """On which nodes the last job starts, where so many of 8 processors are free on each node.

    Every node has a partition of its own, in which one job takes the rest; then comes the job, and
    after it one of a second on each node that tells by its start how much is left there.
    """
    count = len(free)
    names = [f"n{k + 1}" for k in range(count)]
    groups = tuple(NodeGroup(name, processors=8, weight=weights[k]) for k, name in enumerate(names))
    own = tuple(Partition(name, (name,)) for name in names)
    site = Site(groups, (Partition("all", default=True), *own), placement="consecutive")
    taken = [(8 - units, k + 1, 0) for k, units in enumerate(free) if units < 8]
    probes = [(1, k + 1, 0) for k in range(count) for _ in range(free[k])]
    jobs = [*taken, (size, 0, nodes), *probes]
    jobset = JobSet.of(
        np.array([0] * len(taken) + [1] + [2] * len(probes)),
        np.array([HOUR] * (len(taken) + 1 + len(probes))),
        np.array([[job[0]] for job in jobs]),
        attributes={
            "partition": np.array([job[1] for job in jobs]),
            "nodes": np.array([job[2] for job in jobs]),
        },
    )
    world = HPC(processors=8 * count, site=site)
    simulator = world.simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    simulator.play(Rule("fcfs", "skip"))
    schedule = simulator.schedule()
    start = np.full(jobset.num_jobs, -1)
    start[schedule.job] = schedule.start
    assert start[len(taken)] == 1
    late = start[len(taken) + 1 :] > 2
    place = np.array([job[1] - 1 for job in probes], int)
    return {int(k): int(late[place == k].sum()) for k in np.unique(place[late])}


@pytest.mark.parametrize(
    ("free", "size", "nodes", "expected"),
    [
        # The run n4 has 6 units, less than n1 and n2 together; in a run, the tightest node.
        ([4, 6, 0, 6, 0], 4, 1, {3: 4}),
        ([4, 6, 0, 8, 8], 4, 1, {0: 4}),
        # A node without enough for a job of one node parts a run.
        ([8, 8, 3, 8, 0], 4, 1, {3: 4}),
        # Two nodes: the tightest run of two that has enough, filled in order.
        ([8, 8, 0, 6, 8], 12, 2, {3: 6, 4: 6}),
        # One processor is left for the second node.
        ([8, 2, 0, 1, 0], 8, 2, {0: 7, 1: 1}),
        # No run is enough: the largest goes first, then the node that fits best.
        ([5, 0, 6, 0, 4], 9, 2, {2: 6, 4: 3}),
        # Filling n1 first leads nowhere, so nodes with few processors are left out.
        ([1, 8, 8, 0, 0], 16, 2, {1: 8, 2: 8}),
        # As many nodes as it takes: a single one if it can.
        ([8, 3, 0, 5, 5], 5, 0, {3: 5}),
        ([4, 3, 0, 2, 2], 6, 0, {0: 4, 1: 2}),
    ],
)
def test_runs_of_nodes_are_chosen_as_by_hand(free, size, nodes, expected):
    assert nodes_of_last(free, size, nodes) == expected


def test_nodes_of_low_weight_go_first():
    assert nodes_of_last([4, 8, 8], 4, 1, weights=(2, 2, 1)) == {2: 4}
    assert nodes_of_last([8, 8, 8], 12, 2, weights=(2, 1, 1)) == {1: 8, 2: 4}
