"""Specifications of consumers as an agent sees them, and the tree of their classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.world import World
from cluster_env.objectives import OBJECTIVES
from meta.panda.clustering import Dendrogram, cluster
from meta.panda.evidence import Evidence, Floats, Table

SPECIFICATION = ("left", "cores", "memory", "any_core", "core_type", "one_region", "one_rack")
"""Features of the context that a specification consists of; ``left`` is the run time."""
STATE = ("free_nodes", "free_cores", "waiting", "waiting_cores", "running")
"""Features of the context that say how the system is."""
SAMPLE = 512
"""Consumers that the tree is grown from."""
GRAIN = 0.03
"""Share of the variance inside a type of consumers, see `Evidence`. The likeliest share is far
smaller, because cores are few whole numbers, each of which then is a type of its own."""


def columns_of(world: World, names: Sequence[str]) -> NDArray[np.int64]:
    """Places of features in the context.

    Raises:
        InputError: if agents of the world have no specification.
    """
    known = list(world.feature_names[1])
    if not set(names) <= set(known):
        raise InputError(
            f"a policy advisor advises agents by the specifications of their consumers, which the "
            f"world {world.kind} does not have; take the world panda"
        )
    return np.array([known.index(name) for name in names])


def specifications(world: World, jobsets: Sequence[JobSet]) -> NDArray[np.float32]:
    """What the agents of some consumers see of their specifications at first.

    float32 ``(consumers, 7)``, in the order of `SPECIFICATION`.
    """
    found = []
    for jobset in jobsets:
        at_once = JobSet.of(
            np.zeros(jobset.num_jobs, int),
            jobset.duration,
            jobset.demand,
            1,
            None,
            jobset.attributes,
        )
        simulator = world.simulator()
        simulator.load([at_once], OBJECTIVES.get("completion_time"))
        context = world.features(simulator.states).context
        found.append(context[:, columns_of(world, SPECIFICATION)])
    return np.concatenate(found)


def consumers_table(specs: NDArray[np.float32], core_types: int) -> Table:
    """Specifications to be clustered: three real columns, the core type and the topology.

    Args:
        specs: float32 ``(n, 7)``.
        core_types: of the cloud.
    """
    core_type = np.rint(specs[:, 4] * core_types).astype(np.int64).clip(0, core_types)
    topology = np.rint(specs[:, 5] + 2 * specs[:, 6]).astype(np.int64)
    return Table(
        specs[:, :3].astype(np.float64),
        np.stack([core_type, topology], axis=1),
        (core_types + 1, 3),
    )


def nodes_table(nodes: Any) -> Table:
    """The nodes of a cloud to be clustered into types of resources.

    Args:
        nodes: of the world, see its ``nodes``.
    """
    cores, memory = nodes.of("cores"), nodes.of("memory")
    real = np.log2(np.stack([cores, (memory + 1) / cores, nodes.of("speed")], axis=1))
    core_type = nodes.of("core_type").astype(np.int64)[:, None]
    return Table(real, core_type, (int(max(nodes.core_type)) + 1,))


def states_table(world: World, states: NDArray[np.int32]) -> Table:
    """States of the system, as any of its agents sees them, to be clustered.

    Args:
        world: whose they are.
        states: int32 ``(n, state_size)``.
    """
    context = world.features(states).context[:, columns_of(world, STATE)]
    return Table.of_real(context.astype(np.float64))


_DEALT = 20240818  # seed of the leaves of consumers that are dealt out


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
        found, parent = [dendrogram.root], [-1]
        place = {dendrogram.root: 0}
        while len(leaves) < classes:
            open_nodes = [node for node in leaves if node >= n]
            top = min(open_nodes, key=lambda node: dendrogram.log_odds[node - n], default=None)
            if top is None or dendrogram.log_odds[top - n] >= 0:
                break
            leaves.remove(top)
            for child in dendrogram.children[top - n].tolist():
                place[child] = len(found)
                found.append(child)
                parent.append(place[top])
                leaves.append(child)
        room = 2 * classes - 1
        statistics = np.zeros((room, dendrogram.statistics.shape[1]))
        statistics[: len(found)] = dendrogram.statistics[found]
        parents = np.full(room, -1, np.int64)
        parents[: len(found)] = parent
        return cls(statistics, parents, dendrogram.evidence)

    @classmethod
    def balanced(cls, table: Table, classes: int) -> "Tree":
        """A balanced tree of the same room whose leaves have rows dealt out at random."""
        evidence, room = Evidence.of(table, GRAIN), 2 * classes - 1
        leaf = np.random.default_rng(_DEALT).permutation(table.num_rows) % classes
        of_row = evidence.statistics(table)
        statistics = np.zeros((room, of_row.shape[1]))
        np.add.at(statistics, classes - 1 + leaf, of_row)
        parent = (np.arange(room) - 1) // 2  # as in a heap: the leaves are the last nodes
        for node in range(room - 1, 0, -1):
            statistics[parent[node]] += statistics[node]
        return cls(statistics, parent, evidence)

    @property
    def leaves(self) -> NDArray[np.int64]:
        """Places of the classes."""
        used = np.flatnonzero(self.statistics[:, 0] > 0)
        return np.setdiff1d(used, self.parent)

    def gates(self, table: Table) -> Floats:
        """Probability that each row belongs below each node, float64 ``(rows, room)``.

        The posterior predictive of the two sides decides at each merge (soft routing); the root has
        all of it.
        """
        used = np.flatnonzero(self.statistics[:, 0] > 0)
        old, new = self.statistics[used], self.evidence.statistics(table)
        likely = np.full((table.num_rows, self.parent.size), -np.inf)
        joined = self.evidence.log_likelihood(old[None] + new[:, None])
        likely[:, used] = joined - self.evidence.log_likelihood(old) + np.log(old[:, 0])
        gates = np.zeros(likely.shape)
        gates[:, 0] = 1.0
        for node in used[1:].tolist():  # parents stand before their children
            sides = np.flatnonzero(self.parent == self.parent[node])
            total = np.logaddexp.reduce(likely[:, sides], axis=1)
            gates[:, node] = gates[:, self.parent[node]] * np.exp(likely[:, node] - total)
        return gates


def grown_tree(world: Any, jobsets: Sequence[JobSet], classes: int, clustered: bool = True) -> Tree:
    """The tree of the consumers of some jobsets.

    Args:
        world: what they come to.
        jobsets: at least `SAMPLE` consumers of them are looked at, if there are as many.
        classes: at most.
        clustered: whether the tree follows a clustering, see `Tree.balanced`.
    """
    specs = specifications(world, jobsets)[:SAMPLE]
    table = consumers_table(specs, int(max(world.nodes.core_type)) + 1)
    if not clustered:
        return Tree.balanced(table, classes)
    return Tree.of(cluster(table, within=GRAIN), classes)
