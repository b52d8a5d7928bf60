"""Actors that weigh what the supervisor proposes, instead of each node by itself."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.world import Features
from rllib_configs.worlds.panda.plans import PAIR, START, Proposals

SHARP = 4.0
"""Logits are so many times the scores: doubt is for training, the sign of a score decides."""
FAR = 12.0
"""Logits are at most so large: what is certain stays possible."""


@dataclass(frozen=True)
class PlanShape:
    """Actors with one weight for each feature of a pair (`cluster_env.worlds.panda.scoring.PAIR`).

    The score of a plan is a linear function of its features. An agent takes the best plan if its
    score is above 0, and its score is the need by which collisions are resolved (footnote 2 of the
    paper); else it releases what it holds and waits. While it learns, the softmax of the plans'
    scores and of 0, to take none, says how likely each node is caught.
    """

    levels: int

    @property
    def spread(self) -> float:
        """Standard deviation of the advisor's last layer at first."""
        return 0.1

    @property
    def size(self) -> int:
        """Number of weights."""
        return len(PAIR)

    def drawn(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weights to begin with, float64 ``(size,)``: nearly the shortest first, on what fits."""
        return np.array([START.get(name, 0.0) for name in PAIR])

    def logits(self, theta: torch.Tensor, features: Features, plans: Proposals) -> torch.Tensor:
        """Of catching and releasing each node, of waiting, and of the levels of urgency.

        Args:
            theta: weights of the actor of each row, ``(n, size)``.
            features: of the rows; what is allowed is left to the caller.
            plans: of the rows.

        Returns:
            ``(n, num_items + 1 + levels)``, each of the first against doing nothing.
        """
        pairs = torch.from_numpy(plans.pairs).to(theta.dtype)
        possible = torch.from_numpy(plans.possible)
        scores = (pairs * theta.unsqueeze(1)).sum(dim=2).masked_fill(~possible, -1e9)
        none = torch.zeros_like(scores[:, :1])
        shares = torch.softmax(SHARP * torch.cat([scores, none], dim=1), dim=1)
        members = torch.from_numpy(plans.members).to(theta.dtype)
        caught = (shares[:, :-1].unsqueeze(2) * members).sum(dim=1)
        held = torch.from_numpy(features.items[:, :, 1] > 0)
        given_up = shares[:, -1:].expand_as(caught)
        chances = torch.cat([torch.where(held, given_up, caught), shares[:, -1:]], dim=1)
        chances = chances.clamp(1e-6, 1 - 1e-6)
        bits = (torch.log(chances) - torch.log1p(-chances)).clamp(-FAR, FAR)
        best = scores.amax(dim=1, keepdim=True)
        middle = (self.levels - 1) * torch.sigmoid(best.clamp(min=-100.0) / 8.0)
        level = torch.arange(self.levels, dtype=theta.dtype)
        return torch.cat([bits, -2.0 * (level - middle) ** 2], dim=1)
