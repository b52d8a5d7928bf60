"""A policy of free logits, whose gradients and Hessians have closed forms."""

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from meta.maml.decisions import Decisions
from meta.maml.steps import Scorer, StepOptions, inner_step

NO_CLIP = 1e9


class Bandit(nn.Module):
    """One state; the parameters are the logits."""

    def __init__(self, logits: np.ndarray) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.from_numpy(logits))

    def forward(self, states: np.ndarray) -> torch.Tensor:
        return self.logits.expand(states.shape[0], -1)


def plain(network: nn.Module) -> Scorer:
    """A network that looks at states themselves."""
    return lambda parameters, states: functional_call(network, dict(parameters), (states,))


def stepped(logits: np.ndarray, data: Decisions, rate: float, options: StepOptions) -> np.ndarray:
    """Where an inner step leads."""
    network = Bandit(logits)
    rates = {"logits": torch.tensor(np.log(rate))}
    moved = inner_step(plain(network), dict(network.named_parameters()), rates, data, options)
    found: np.ndarray = moved["logits"].detach().numpy()
    return found


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def draws(rng: np.random.Generator, logits: np.ndarray, rows: int = 12) -> Decisions:
    """Decisions of a policy near the given one, of random worth."""
    actions = rng.integers(0, logits.size, rows).astype(np.int32)
    old = np.log(softmax(logits + rng.normal(0, 0.1, logits.size)))[actions]
    jobset = np.repeat([0, 1], [rows // 2, rows - rows // 2]).astype(np.int32)
    return Decisions(np.zeros((rows, 1), np.uint8), actions, old, rng.normal(size=rows), jobset)


def gradient(logits: np.ndarray, data: Decisions, surrogate: str) -> np.ndarray:
    """Of the inner loss, by hand."""
    p = softmax(logits)
    ratio = p[data.actions] / np.exp(data.log_probabilities)
    weight = data.advantages * (ratio if surrogate == "ratio" else 1.0)
    return -(weight[:, None] * (np.eye(p.size)[data.actions] - p)).mean(0)


def hessian(logits: np.ndarray, data: Decisions, surrogate: str) -> np.ndarray:
    """Of the inner loss, by hand."""
    p = softmax(logits)
    curvature = np.diag(p) - np.outer(p, p)
    ratio = p[data.actions] / np.exp(data.log_probabilities)
    score = np.eye(p.size)[data.actions] - p
    if surrogate == "log_probability":
        return data.advantages.mean() * curvature
    outer = score[:, :, None] * score[:, None, :] - curvature
    return -((data.advantages * ratio)[:, None, None] * outer).mean(0)
