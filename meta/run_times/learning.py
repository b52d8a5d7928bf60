"""Training of `RunTimeNetwork` over sites: jointly, or such that few steps at a site help."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from meta.run_times.known import BINS, Known
from meta.run_times.network import Parameters, RunTimeNetwork, loss_of

SUPPORT = 512
"""Jobs of a site that gradient steps are made on."""

INNER_STEPS = 3

_BATCH = 256  # jobs of a site in a step
_STEPS = 1000
_MAML_STEPS = 200
_RATE = 4e-3
_INNER_RATE = 0.1  # that MAML begins with; it learns one for each parameter


def train_jointly(sites: Sequence[Known], seed: int) -> RunTimeNetwork:
    """One network for all sites, each as important as the others."""
    torch.manual_seed(seed)
    network, rng = RunTimeNetwork(), np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=_STEPS)
    for _ in range(_STEPS):
        drawn = [site.rows(rng.integers(0, site.bin.size, _BATCH)) for site in sites]
        batch = Known(*(np.concatenate(part) for part in zip(*drawn, strict=True)))
        loss = loss_of(network, dict(network.named_parameters()), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return network.eval()


class Meta:
    """A network with an inner rate for each parameter, such that `adapted` is good: MAML.

    Finn et al. (2017) with the learned rates of Meta-SGD (Li et al., 2017). Second derivatives are
    taken. A task is a stretch of a site: `SUPPORT` jobs, and those that come next.

    Attributes:
        network: what adaptation begins with; it goes on from a joint one.
        rates: by name of the parameter.
    """

    def __init__(self, network: RunTimeNetwork) -> None:
        self.network = network
        parameters: dict[str, Tensor] = dict(network.named_parameters())
        self.rates: dict[str, Tensor] = {
            name: torch.full_like(one, _INNER_RATE).requires_grad_()
            for name, one in parameters.items()
        }

    def adapted(self, support: Known, steps: int = INNER_STEPS) -> Parameters:
        """Parameters after gradient steps on some jobs of a site."""
        parameters: dict[str, Tensor] = dict(self.network.named_parameters())
        for _ in range(steps):
            loss = loss_of(self.network, parameters, support)
            gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
            parameters = {
                name: one - self.rates[name] * gradient
                for (name, one), gradient in zip(parameters.items(), gradients, strict=True)
            }
        return parameters

    def train(self, sites: Sequence[Known], seed: int) -> None:
        """Minimizes the loss on what comes after the support, over stretches of all sites."""
        rng = np.random.default_rng(seed)
        optimizer = torch.optim.AdamW(
            [
                {"params": list(self.network.parameters()), "lr": 1e-3},
                {"params": list(self.rates.values()), "lr": 1e-2, "weight_decay": 0.0},
            ]
        )
        for _ in range(_MAML_STEPS):
            losses = []
            for site in sites:
                first = int(rng.integers(0, max(site.bin.size - 3 * SUPPORT, 1)))
                support = site.rows(slice(first, first + SUPPORT))
                query = site.rows(slice(first + SUPPORT, first + 3 * SUPPORT))
                losses.append(loss_of(self.network, self.adapted(support), query))
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()
            optimizer.step()


def probabilities(
    network: RunTimeNetwork, known: Known, parameters: Parameters | None = None
) -> NDArray[np.float64]:
    """Of the bins, float64 ``(num_jobs, BINS)``."""
    own = dict[str, Tensor](network.named_parameters() if parameters is None else parameters)
    found = [np.zeros((0, BINS))]
    with torch.no_grad():
        for first in range(0, known.bin.size, 65_536):
            facts, shares, _ = map(torch.from_numpy, known.rows(slice(first, first + 65_536)))
            logits = functional_call(network, own, (facts, shares))
            found.append(torch.softmax(logits, 1).double().numpy())
    return np.concatenate(found)
