"""Specifications of consumers as an agent sees them, and the tree of their classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.world import World
from cluster_env.objectives import OBJECTIVES
from cluster_env.worlds.panda.world import Panda
from meta.panda.clustering import Dendrogram, cluster
from meta.panda.evidence import Evidence, Floats, Table

SPECIFICATION = ("left", "cores", "memory", "any_core", "core_type", "one_region", "one_rack")
"""Features of the context that a specification consists of; ``left`` is the run time."""
NUM_REAL, NUM_TOPOLOGIES = 3, 3
"""Real columns of `consumers_table`, and categories of its last column."""
SAMPLE = 512
"""Consumers that are clustered."""
WITHIN_CLASS = 0.03
"""Share of the variance inside a class of consumers, see `Evidence`. The likeliest share is far
smaller, because cores are few whole numbers, each of which then is a class of its own."""
_LEAVES_SEED = 20240818  # of the leaves that consumers are assigned to at random


def panda_of(world: World) -> Panda:
    """The world, if its agents have specifications.

    Raises:
        InputError: if it is another one.
    """
    if not isinstance(world, Panda):
        raise InputError(
            "a policy advisor needs specifications of consumers, which the world "
            f"{world.kind} does not have; take the world panda"
        )
    return world


def specification_places(world: Panda) -> NDArray[np.int64]:
    """Places of the `SPECIFICATION` in the context."""
    names = world.feature_names[1]
    return np.array([names.index(name) for name in SPECIFICATION])


def num_core_types(world: Panda) -> int:
    """How many types of cores the nodes of a cloud have."""
    return int(max(world.nodes.core_type)) + 1


def specifications(world: World, jobsets: Sequence[JobSet]) -> NDArray[np.float32]:
    """What the agents of some consumers see of their specifications at first.

    float32 ``(consumers, 7)``, in the order of `SPECIFICATION`.
    """
    cloud = panda_of(world)
    seen = []
    for jobset in jobsets:
        # All arrive at once, so that each has a state at the beginning.
        arrival = np.zeros(jobset.num_jobs, int)
        at_once = JobSet.of(arrival, jobset.duration, jobset.demand, 1, None, jobset.attributes)
        simulator = cloud.simulator()
        simulator.load([at_once], OBJECTIVES.get("completion_time"))
        seen.append(cloud.features(simulator.states).context[:, specification_places(cloud)])
    return np.concatenate(seen)


def consumers_table(specs: NDArray[np.float32], core_types: int) -> Table:
    """Specifications to be clustered: three real columns, the core type and the topology."""
    core_type = np.rint(specs[:, 4] * core_types).astype(np.int64).clip(0, core_types)
    topology = np.rint(specs[:, 5] + 2 * specs[:, 6]).astype(np.int64)
    return Table(
        specs[:, :NUM_REAL].astype(np.float64),
        np.stack([core_type, topology], axis=1),
        (core_types + 1, NUM_TOPOLOGIES),
    )


def cluster_consumers(world: World, jobsets: Sequence[JobSet]) -> Dendrogram:
    """The dendrogram of the first `SAMPLE` consumers of some jobsets."""
    return cluster(_sampled_table(world, jobsets), within=WITHIN_CLASS)


def _sampled_table(world: World, jobsets: Sequence[JobSet]) -> Table:
    specs = specifications(world, jobsets)[:SAMPLE]
    return consumers_table(specs, num_core_types(panda_of(world)))


@dataclass(frozen=True, eq=False)
class Tree:
    """The upper part of a dendrogram, down to the classes, with room for more.

    Attributes:
        statistics: float64 ``(room, size)``, of each node, the root first; zeros for none.
        parent: int64 ``(room,)``, -1 for the root and where there is none.
        evidence: the model of a class.
    """

    statistics: Floats
    parent: NDArray[np.int64]
    evidence: Evidence

    @classmethod
    def of(cls, dendrogram: Dendrogram, classes: int) -> "Tree":
        """The tree above the clusters of a dendrogram, at most so many.

        Where the cut leaves more, the merges with the lowest posterior stay apart.
        """
        n, leaves = dendrogram.num_rows, [dendrogram.root]
        nodes, parent = [dendrogram.root], [-1]
        place = {dendrogram.root: 0}
        # Split the leaf that is least likely one cluster, until there are enough or all are.
        while len(leaves) < classes:
            merges = [node for node in leaves if node >= n]
            top = min(merges, key=lambda node: dendrogram.log_odds[node - n], default=None)
            if top is None or dendrogram.log_odds[top - n] >= 0:
                break
            leaves.remove(top)
            for child in dendrogram.children[top - n].tolist():
                place[child] = len(nodes)
                nodes.append(child)
                parent.append(place[top])
                leaves.append(child)
        # Arrays of a fixed size, because they are among the weights of the network.
        room = 2 * classes - 1
        statistics = np.zeros((room, dendrogram.statistics.shape[1]))
        statistics[: len(nodes)] = dendrogram.statistics[nodes]
        parents = np.full(room, -1, np.int64)
        parents[: len(nodes)] = parent
        return cls(statistics, parents, dendrogram.evidence)

    @classmethod
    def balanced(cls, table: Table, classes: int) -> "Tree":
        """A balanced tree of the same room, to whose leaves rows are assigned at random."""
        evidence, room = Evidence.of(table, WITHIN_CLASS), 2 * classes - 1
        leaf = np.random.default_rng(_LEAVES_SEED).permutation(table.num_rows) % classes
        rows = evidence.statistics(table)
        statistics = np.zeros((room, rows.shape[1]))
        # Nodes are numbered as in a heap: the leaves come last, and each node after its parent.
        np.add.at(statistics, classes - 1 + leaf, rows)
        parent = (np.arange(room) - 1) // 2
        for node in range(room - 1, 0, -1):
            statistics[parent[node]] += statistics[node]
        return cls(statistics, parent, evidence)

    def gates(self, table: Table) -> Floats:
        """Probability that each row belongs below each node, float64 ``(rows, room)``.

        The posterior predictive of the two sides decides at each merge (soft routing); the root has
        all of it.
        """
        used = np.flatnonzero(self.statistics[:, 0] > 0)
        likely = np.full((table.num_rows, self.parent.size), -np.inf)
        rows = self.evidence.statistics(table)
        likely[:, used] = self.evidence.log_predictive(self.statistics[used], rows)
        gates = np.zeros(likely.shape)
        gates[:, 0] = 1.0
        for node in used[1:].tolist():  # parents stand before their children
            sides = np.flatnonzero(self.parent == self.parent[node])
            total = np.logaddexp.reduce(likely[:, sides], axis=1)
            gates[:, node] = gates[:, self.parent[node]] * np.exp(likely[:, node] - total)
        return gates


def consumer_tree(
    world: World, jobsets: Sequence[JobSet], classes: int, clustered: bool = True
) -> Tree:
    """The tree of the consumers of some jobsets, with so many classes at most.

    At least `SAMPLE` consumers are looked at, if there are as many. One that is not clustered is a
    `Tree.balanced`.
    """
    if not clustered:
        return Tree.balanced(_sampled_table(world, jobsets), classes)
    return Tree.of(cluster_consumers(world, jobsets), classes)
