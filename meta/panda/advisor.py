"""The policy advisor network: from a specification to the weights of an actor (3.2.1)."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.world import Features, World
from cluster_env.worlds.panda.features import Proposals
from meta.panda.actors import LEVELS, ActorShape, PlanShape
from meta.panda.evidence import Evidence
from meta.panda.specifications import (
    NUM_REAL,
    NUM_TOPOLOGIES,
    SAMPLE,
    SPECIFICATION,
    Tree,
    consumer_tree,
    consumers_table,
    num_core_types,
    panda_of,
    specification_places,
)
from rllib_configs.config.options import TrainingSection
from rllib_configs.config.schema import ExperimentConfig

FORBIDDEN = -1e9  # finite, so that a row with nothing allowed gives no NaN
TREES = ("tree", "unclustered")
"""Advisors whose topology is a tree."""
_MOST_JOBSETS = 64  # that a tree is made from


class PolicyAdvisor(nn.Module):
    """P_w: specification -> weights of an actor, and the actors (definition 3.1).

    The weights are a shared vector plus a linear function of the advisor's units. The units of the
    tree's root are always on; those of a branch count as much as the specification belongs below it
    (`Tree.gates`), so that classes share what their branches have in common.

    Args:
        shape: of the actors.
        columns: places of `SPECIFICATION` in the context.
        training: the topology, its leaves and the units of each node.
        core_types: of the cloud.
        tree: what the topology follows; None for one that is loaded with the weights.
        seed: of the weights.
    """

    tree_statistics: torch.Tensor
    tree_parent: torch.Tensor
    tree_model: torch.Tensor

    def __init__(
        self,
        shape: ActorShape | PlanShape,
        columns: NDArray[np.int64],
        training: TrainingSection,
        core_types: int,
        tree: Tree | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.shape, self.kind, self.units = shape, training.advisor, training.units
        self.columns = torch.from_numpy(columns)
        room, rng = 2 * training.classes - 1, generator(seed, Purpose.INIT)
        # Names of parameters and buffers are those in files of trained policies.
        self.shared = nn.Parameter(torch.tensor(shape.initial(rng), dtype=torch.float32))
        if self.kind == "none":
            return
        width = room * self.units
        first = rng.normal(0.0, (2 / len(SPECIFICATION)) ** 0.5, (len(SPECIFICATION), width))
        last = rng.normal(0.0, shape.spread, (width, shape.size))
        self.given = nn.Parameter(torch.tensor(first, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(width))
        self.made = nn.Parameter(torch.tensor(last, dtype=torch.float32))
        if self.kind in TREES:
            size = 1 + 2 * NUM_REAL + core_types + 1 + NUM_TOPOLOGIES
            self.register_buffer("tree_statistics", torch.zeros(room, size))
            self.register_buffer("tree_parent", torch.full((room,), -1.0))
            self.register_buffer("tree_model", torch.zeros(2 * NUM_REAL + 1))
            if tree is not None:
                self._set_tree(tree)

    @torch.no_grad()
    def _set_tree(self, tree: Tree) -> None:
        model = tree.evidence
        self.tree_statistics.copy_(torch.from_numpy(tree.statistics))
        self.tree_parent.copy_(torch.from_numpy(tree.parent))
        numbers = np.concatenate([model.mean, model.scale, [model.within]])
        self.tree_model.copy_(torch.from_numpy(numbers))

    def tree(self) -> Tree:
        """What the topology follows."""
        statistics = self.tree_statistics.double().numpy()
        mean, scale, within = np.split(self.tree_model.double().numpy(), [NUM_REAL, 2 * NUM_REAL])
        core_types = statistics.shape[1] - 2 - 2 * NUM_REAL - NUM_TOPOLOGIES
        model = Evidence(mean, scale, float(within[0]), (core_types + 1, NUM_TOPOLOGIES))
        return Tree(statistics, self.tree_parent.long().numpy(), model)

    def gates(self, specs: torch.Tensor) -> torch.Tensor:
        """How much each node of the tree counts for specifications, ``(n, room)``."""
        tree = self.tree()
        table = consumers_table(specs.detach().float().numpy(), tree.evidence.categories[0] - 1)
        return torch.from_numpy(tree.gates(table)).to(specs.dtype)

    def advise(self, specs: torch.Tensor) -> torch.Tensor:
        """Weights of actors, ``(n, size)``, from specifications, ``(n, 7)``."""
        if self.kind == "none":
            return self.shared.expand(len(specs), -1)
        units = torch.relu(specs @ self.given + self.bias)
        if self.kind in TREES:
            units = units * self.gates(specs).repeat_interleave(self.units, dim=1)
        # The more units there are, the less each of them adds.
        return self.shared + (units @ self.made) * self.made.shape[0] ** -0.5

    def forward(self, features: Features, plans: Proposals | None = None) -> torch.Tensor:
        """Logits, see the actors' `logits`; those of what is not allowed are -1e9."""
        specs = torch.from_numpy(features.context).to(self.shared.dtype)[:, self.columns]
        # An agent decides many times, so the advisor is asked once for each specification.
        rows = np.ascontiguousarray(specs.numpy())
        keys = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
        _, first, actor = np.unique(keys, return_index=True, return_inverse=True)
        weights = self.advise(specs[torch.from_numpy(first)])[torch.from_numpy(actor)]
        logits = self.shape.logits(weights, features, plans)
        allowed = features.allowed.copy()
        allowed[:, -1] &= allowed[:, :-1].any(axis=1)  # who has nothing cannot but wait
        levels = np.ones((len(allowed), LEVELS), np.bool_)
        return logits.masked_fill(torch.from_numpy(~np.hstack([allowed, levels])), FORBIDDEN)


def build_advisor(
    experiment: ExperimentConfig, world: World, tree: Tree | None = None
) -> PolicyAdvisor:
    """The network of an experiment, its weights drawn from the run's seed.

    It follows a tree, if that is not to be loaded.

    Raises:
        InputError: if agents of the world have no specification.
    """
    cloud, training = panda_of(world), experiment.training
    items, context = cloud.feature_names
    shape = (
        PlanShape()
        if training.actor == "plans"
        else ActorShape(items, len(context), training.hidden)
    )
    places, core_types = specification_places(cloud), num_core_types(cloud)
    return PolicyAdvisor(shape, places, training, core_types, tree, experiment.seed)


def initial_advisor(experiment: ExperimentConfig, world: World) -> PolicyAdvisor:
    """The same, with a tree of the consumers that it is trained on if it needs one."""
    if experiment.training.advisor not in TREES:
        return build_advisor(experiment, world)
    task = experiment.task.build(seed=experiment.seed)
    jobsets: list[JobSet] = []
    while sum(one.num_jobs for one in jobsets) < SAMPLE and len(jobsets) < _MOST_JOBSETS:
        jobsets += task.jobsets(Split.TRAIN, [len(jobsets)])
    clustered = experiment.training.advisor == "tree"
    tree = consumer_tree(task.world, jobsets, experiment.training.classes, clustered)
    return build_advisor(experiment, world, tree)
