"""The policy advisor network: from a specification to the weights of an actor (3.2.1)."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.seeding import Purpose, generator
from cluster_env.core.world import Features
from meta.panda.evidence import Evidence
from meta.panda.plans import PlanShape
from meta.panda.specifications import SPECIFICATION, Tree, consumers_table
from rllib_configs.worlds.panda.plans import Proposals

FORBIDDEN = -1e9  # finite, so that a row with nothing allowed gives no NaN
SURE = 4.0
"""Log odds at the beginning of doing what the static rule would do."""
LEVELS = 8
"""How urgent the catches of an agent may be, where collisions ask for the need."""
TREES = ("tree", "unclustered")
"""Advisors whose topology is a tree."""
_NUM_REAL = 3  # real columns of `consumers_table`
_TOPOLOGIES = 3


@dataclass(frozen=True)
class ActorShape:
    """The weights of an actor, one after the other in a vector.

    An actor scores each node with a hidden layer that sees the node and the context, and beside it
    by a linear function of the node; a second hidden layer on the context scores to wait, and how
    urgent the catches are.

    Attributes:
        items: names of a node's features.
        context: number of features of the context.
        hidden: units of a hidden layer.
    """

    items: tuple[str, ...]
    context: int
    hidden: int

    @property
    def spread(self) -> float:
        """Standard deviation of the advisor's last layer at first."""
        return float(0.1 * self.hidden**-0.5)

    @property
    def pieces(self) -> dict[str, tuple[int, ...]]:
        """Shape of each part by name, in order."""
        return {
            "item": (len(self.items), self.hidden),
            "context": (self.context, self.hidden),
            "bias": (self.hidden,),
            "score": (self.hidden,),
            "skip": (len(self.items),),
            "offset": (1,),
            "wait_context": (self.context, self.hidden),
            "wait_bias": (self.hidden,),
            "wait_score": (self.hidden,),
            "wait": (1,),
            "urgency": (self.hidden, LEVELS),
            "urgency_bias": (LEVELS,),
        }

    @property
    def size(self) -> int:
        """Number of weights."""
        return sum(math.prod(shape) for shape in self.pieces.values())

    def split(self, theta: torch.Tensor) -> dict[str, torch.Tensor]:
        """The parts of some actors' weights, ``(n, size)``, each ``(n, *shape)``."""
        sizes = [math.prod(shape) for shape in self.pieces.values()]
        parts = zip(self.pieces.items(), torch.split(theta, sizes, dim=1), strict=True)
        return {name: part.reshape(-1, *shape) for (name, shape), part in parts}

    def drawn(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weights to begin with, float64 ``(size,)``: nearly always those of best fit, no waiting.

        The hybrid of section 5 at its beginning: agents do what a static rule would, and learn
        where to do something else.
        """
        found = {name: np.zeros(shape) for name, shape in self.pieces.items()}
        for name in ("item", "context", "wait_context"):
            found[name] = rng.normal(0.0, len(found[name]) ** -0.5, found[name].shape)
        for name in ("score", "wait_score", "urgency"):
            found[name] = rng.normal(0.0, 0.1 * self.hidden**-0.5, found[name].shape)
        found["skip"][self.items.index("best_fit")] = 2 * SURE
        found["offset"][:] = found["wait"][:] = -SURE
        return np.concatenate([part.ravel() for part in found.values()])


def actor_logits(
    shape: ActorShape, theta: torch.Tensor, items: torch.Tensor, context: torch.Tensor
) -> torch.Tensor:
    """What actors make of what they see; each row has an actor of its own.

    Args:
        shape: of the actors.
        theta: their weights, ``(n, size)``.
        items: nodes, ``(n, num_items, item size)``.
        context: ``(n, context size)``.

    Returns:
        Logits ``(n, num_items + 1 + LEVELS)``: of what to do with each node and of waiting, each
        against doing nothing; and of the levels of urgency, against each other.
    """
    part, seen = shape.split(theta), context.unsqueeze(1)
    shared = torch.bmm(seen, part["context"]) + part["bias"].unsqueeze(1)
    hidden = torch.relu(torch.bmm(items, part["item"]) + shared)
    scores = torch.bmm(hidden, part["score"].unsqueeze(2))
    scores = scores + torch.bmm(items, part["skip"].unsqueeze(2)) + part["offset"].unsqueeze(1)
    waits = torch.relu(torch.bmm(seen, part["wait_context"]).squeeze(1) + part["wait_bias"])
    wait = (waits * part["wait_score"]).sum(dim=1, keepdim=True) + part["wait"]
    urgency = torch.bmm(waits.unsqueeze(1), part["urgency"]).squeeze(1) + part["urgency_bias"]
    return torch.cat([scores.squeeze(2), wait, urgency], dim=1)


class PolicyAdvisor(nn.Module):
    """P_w: specification -> weights of an actor, and the actors (definition 3.1).

    The weights are a shared vector plus a linear function of the advisor's units. The units of the
    tree's root are always on; those of a branch count as much as the specification belongs below it
    (`Tree.gates`), so that classes share what their branches have in common.

    Args:
        shape: of the actors.
        columns: places of `SPECIFICATION` in the context.
        advisor: see `meta.panda.options.AdvisorOptions`, as the next two.
        classes: leaves at most.
        units: for each node of the tree.
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
        advisor: str,
        classes: int,
        units: int,
        core_types: int,
        tree: Tree | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.shape, self.kind, self.units = shape, advisor, units
        self.columns = torch.from_numpy(columns)
        room, rng = 2 * classes - 1, generator(seed, Purpose.INIT)
        self.shared = nn.Parameter(torch.tensor(shape.drawn(rng), dtype=torch.float32))
        if advisor == "none":
            return
        width = room * units
        given = rng.normal(0.0, (2 / len(SPECIFICATION)) ** 0.5, (len(SPECIFICATION), width))
        made = rng.normal(0.0, shape.spread, (width, shape.size))
        self.given = nn.Parameter(torch.tensor(given, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(width))
        self.made = nn.Parameter(torch.tensor(made, dtype=torch.float32))
        if advisor in TREES:
            size = 1 + 2 * _NUM_REAL + core_types + 1 + _TOPOLOGIES
            self.register_buffer("tree_statistics", torch.zeros(room, size))
            self.register_buffer("tree_parent", torch.full((room,), -1.0))
            self.register_buffer("tree_model", torch.zeros(2 * _NUM_REAL + 1))
            if tree is not None:
                self._plant(tree)

    @torch.no_grad()
    def _plant(self, tree: Tree) -> None:
        model = tree.evidence
        self.tree_statistics.copy_(torch.from_numpy(tree.statistics))
        self.tree_parent.copy_(torch.from_numpy(tree.parent))
        numbers = np.concatenate([model.mean, model.scale, [model.within]])
        self.tree_model.copy_(torch.from_numpy(numbers))

    def tree(self) -> Tree:
        """What the topology follows."""
        statistics = self.tree_statistics.double().numpy()
        mean, scale, within = np.split(self.tree_model.double().numpy(), [_NUM_REAL, 2 * _NUM_REAL])
        core_types = statistics.shape[1] - 2 - 2 * _NUM_REAL - _TOPOLOGIES
        categories = (core_types + 1, _TOPOLOGIES)
        model = Evidence(mean, scale, float(within[0]), categories)
        return Tree(statistics, self.tree_parent.long().numpy(), model)

    def gates(self, specs: torch.Tensor) -> torch.Tensor:
        """How much each node of the tree counts for specifications, ``(n, room)``."""
        tree = self.tree()
        core_types = tree.evidence.categories[0] - 1
        found = tree.gates(consumers_table(specs.detach().float().numpy(), core_types))
        return torch.from_numpy(found).to(specs.dtype)

    def advise(self, specs: torch.Tensor) -> torch.Tensor:
        """Weights of actors, ``(n, size)``, from specifications, ``(n, 7)``."""
        if self.kind == "none":
            return self.shared.expand(len(specs), -1)
        units = torch.relu(specs @ self.given + self.bias)
        if self.kind in TREES:
            units = units * self.gates(specs).repeat_interleave(self.units, dim=1)
        # The more units there are, the less each of them moves what they all make.
        return self.shared + (units @ self.made) * self.made.shape[0] ** -0.5

    def forward(self, features: Features, plans: Proposals | None = None) -> torch.Tensor:
        """Logits, see the actors' `logits`; those of what is not allowed are -1e9.

        Args:
            features: what agents see.
            plans: what is proposed to them; read by actors that weigh plans alone.
        """
        context = torch.from_numpy(features.context).to(self.shared.dtype)
        specs, which = _distinct(context[:, self.columns])
        theta = self.advise(specs)[which]
        if isinstance(self.shape, PlanShape):
            assert plans is not None
            logits = self.shape.logits(theta, features, plans)
        else:
            items = torch.from_numpy(features.items).to(theta.dtype)
            logits = actor_logits(self.shape, theta, items, context)
        allowed = features.allowed.copy()
        allowed[:, -1] &= allowed[:, :-1].any(axis=1)  # who has nothing cannot but wait
        free = np.ones((len(allowed), LEVELS), np.bool_)
        return logits.masked_fill(torch.from_numpy(~np.hstack([allowed, free])), FORBIDDEN)


def _distinct(specs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The specifications that differ, and which of them each row has.

    An agent decides many times, and the advisor is asked once for it.
    """
    rows = np.ascontiguousarray(specs.numpy())
    keys = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return specs[torch.from_numpy(first)], torch.from_numpy(which)
