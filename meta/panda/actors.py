"""The actors of agents: how their weights are laid out, and what they make of what they see."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.world import Features
from cluster_env.worlds.panda.features import PAIR, START, Proposals

SURE = 4.0
"""Log odds at the beginning of doing what the static rule would do."""
LEVELS = 8
"""How urgent the catches of an agent may be, where collisions ask for the need."""
SHARPNESS = 4.0
"""Logits of plans over their scores: doubt is for training, the sign of a score decides."""
LARGEST_LOGIT = 12.0
"""Logits of plans are at most so large: what is certain stays possible."""
IMPOSSIBLE = -1e9  # finite, so that a row with nothing possible gives no NaN


@dataclass(frozen=True)
class ActorShape:
    """Actors that score each node by itself; their weights stand one after the other in a vector.

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

    def split(self, weights: torch.Tensor) -> dict[str, torch.Tensor]:
        """The parts of some actors' weights, ``(n, size)``, each ``(n, *shape)``."""
        sizes = [math.prod(shape) for shape in self.pieces.values()]
        parts = zip(self.pieces.items(), torch.split(weights, sizes, dim=1), strict=True)
        return {name: part.reshape(-1, *shape) for (name, shape), part in parts}

    def initial(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weights to begin with, float64 ``(size,)``: nearly always those of best fit, no waiting.

        The hybrid of section 5 at its beginning: agents do what a static rule would, and learn
        where to do something else.
        """
        parts = {name: np.zeros(shape) for name, shape in self.pieces.items()}
        for name in ("item", "context", "wait_context"):
            parts[name] = rng.normal(0.0, len(parts[name]) ** -0.5, parts[name].shape)
        for name in ("score", "wait_score", "urgency"):
            parts[name] = rng.normal(0.0, 0.1 * self.hidden**-0.5, parts[name].shape)
        parts["skip"][self.items.index("best_fit")] = 2 * SURE
        parts["offset"][:] = parts["wait"][:] = -SURE
        return np.concatenate([part.ravel() for part in parts.values()])

    def logits(
        self, weights: torch.Tensor, features: Features, plans: Proposals | None = None
    ) -> torch.Tensor:
        """What actors make of what they see, ``(n, num_items + 1 + LEVELS)``.

        They are logits of what to do with each node and of waiting, each against doing nothing; and
        of the levels of urgency, against each other. Weights are of the actor of each row, ``(n,
        size)``; what is allowed is left to the caller, and plans are not used.
        """
        items, context = (torch.from_numpy(one).to(weights.dtype) for one in features[:2])
        part, seen = self.split(weights), context.unsqueeze(1)
        # Each node by itself: a hidden layer on node and context, and a linear function beside it.
        shared = torch.bmm(seen, part["context"]) + part["bias"].unsqueeze(1)
        hidden = torch.relu(torch.bmm(items, part["item"]) + shared)
        scores = torch.bmm(hidden, part["score"].unsqueeze(2))
        scores = scores + torch.bmm(items, part["skip"].unsqueeze(2)) + part["offset"].unsqueeze(1)
        # Waiting and urgency depend on the context alone.
        waits = torch.relu(torch.bmm(seen, part["wait_context"]).squeeze(1) + part["wait_bias"])
        wait = (waits * part["wait_score"]).sum(dim=1, keepdim=True) + part["wait"]
        urgency = torch.bmm(waits.unsqueeze(1), part["urgency"]).squeeze(1) + part["urgency_bias"]
        return torch.cat([scores.squeeze(2), wait, urgency], dim=1)


@dataclass(frozen=True)
class PlanShape:
    """Actors with one weight for each feature of a pair (`cluster_env.worlds.panda.features.PAIR`).

    The score of a plan is a linear function of its features. An agent takes the best plan if its
    score is above 0, and its score is the need by which collisions are resolved (footnote 2 of the
    paper); else it releases what it holds and waits. While it learns, the softmax of the plans'
    scores and of 0, to take none, says how likely each node is caught.
    """

    @property
    def spread(self) -> float:
        """Standard deviation of the advisor's last layer at first."""
        return 0.1

    @property
    def size(self) -> int:
        """Number of weights."""
        return len(PAIR)

    def initial(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weights to begin with, float64 ``(size,)``: nearly the shortest first, on what fits."""
        return np.array([START.get(name, 0.0) for name in PAIR])

    def logits(
        self, weights: torch.Tensor, features: Features, plans: Proposals | None
    ) -> torch.Tensor:
        """As those of `ActorShape`, by the plans of the rows."""
        assert plans is not None
        pairs = torch.from_numpy(plans.pairs).to(weights.dtype)
        possible = torch.from_numpy(plans.possible)
        scores = (pairs * weights.unsqueeze(1)).sum(dim=2).masked_fill(~possible, IMPOSSIBLE)
        # How likely each plan is taken; the last column is to take none.
        none = torch.zeros_like(scores[:, :1])
        shares = torch.softmax(SHARPNESS * torch.cat([scores, none], dim=1), dim=1)
        # A node is caught if it is in the plan that is taken; a held one is released with none.
        members = torch.from_numpy(plans.members).to(weights.dtype)
        caught = (shares[:, :-1].unsqueeze(2) * members).sum(dim=1)
        held = torch.from_numpy(features.items[:, :, 1] > 0)
        released = shares[:, -1:].expand_as(caught)
        chances = torch.cat([torch.where(held, released, caught), shares[:, -1:]], dim=1)
        chances = chances.clamp(1e-6, 1 - 1e-6)
        bits = (torch.log(chances) - torch.log1p(-chances)).clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
        # The level of urgency is drawn around one that rises with the best score.
        best = scores.amax(dim=1, keepdim=True)
        middle = (LEVELS - 1) * torch.sigmoid(best.clamp(min=-100.0) / 8.0)
        level = torch.arange(LEVELS, dtype=weights.dtype)
        return torch.cat([bits, -2.0 * (level - middle) ** 2], dim=1)
