"""A network that weighs what groups of jobs took, and says a distribution of a run time.

The distribution is a mixture of the groups' shares and of one that all sites have in common. Its
weights depend on how much is known of each group. It is conditioned on a site's history alone, so
that it needs no training there, and can have it.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

from meta.run_times.known import BINS, FACTS, GROUPS, Known

HIDDEN = 32

_LEAST = 1e-4  # of a bin's share, so that what has never happened can

Parameters = Mapping[str, Tensor]


class RunTimeNetwork(nn.Module):
    """From `Known` to logits of the bins; see the head of this module."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(FACTS, affine=False, momentum=0.02)
        self.body = nn.Sequential(
            nn.Linear(FACTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
        )
        self.weigh = nn.Linear(HIDDEN, len(GROUPS) + 1)
        self.correct = nn.Linear(HIDDEN, BINS)
        self.common = nn.Parameter(torch.zeros(BINS))
        # At first nothing is corrected: the mixture is what there is.
        nn.init.zeros_(self.correct.weight)
        nn.init.zeros_(self.correct.bias)

    def forward(self, facts: Tensor, shares: Tensor) -> Tensor:
        """Logits ``(n, BINS)`` from ``(n, FACTS)`` and ``(n, len(GROUPS), BINS)``."""
        seen = self.body(self.norm(facts))
        common = torch.softmax(self.common, 0).expand(len(facts), 1, BINS)
        there = torch.cat([shares.sum(2) > 0.5, torch.ones(len(facts), 1, dtype=torch.bool)], 1)
        weights = torch.softmax(self.weigh(seen).masked_fill(~there, -1e9), 1)
        mixture = (weights[:, :, None] * torch.cat([shares, common], 1)).sum(1)
        logits: Tensor = torch.log(mixture + _LEAST) + self.correct(seen)
        return logits


def loss_of(network: RunTimeNetwork, parameters: Parameters, known: Known) -> Tensor:
    """Mean cross entropy in nats, with some parameters in place of the network's own."""
    facts, shares, place = (torch.from_numpy(part) for part in known)
    logits = functional_call(network, dict(parameters), (facts, shares))
    return nn.functional.cross_entropy(logits, place)
