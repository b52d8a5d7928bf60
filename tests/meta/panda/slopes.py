"""Weights of an advisor, gradients beside differences of its loss, and the leaves of its tree."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import nn

from meta.panda.specifications import Tree
from rllib_configs.learning.losses import clipped_loss, log_probabilities_of


def weights_of(network: nn.Module) -> dict[str, np.ndarray]:
    """As a policy has them."""
    return {f"network.{name}": value.numpy() for name, value in network.state_dict().items()}


def assert_slopes(
    network: nn.Module,
    logits: Callable[[], torch.Tensor],
    actions: np.ndarray,
    rng: np.random.Generator,
    **tolerance: float,
) -> None:
    """Gradients of the clipped loss agree with finite differences, within `pytest.approx`'s."""
    taken = torch.from_numpy(actions)
    with torch.no_grad():
        old = log_probabilities_of(logits(), taken)[0] + 0.05
    advantages = torch.linspace(-1, 1, len(taken), dtype=torch.float64)

    def loss() -> torch.Tensor:
        value, entropy = clipped_loss(logits(), taken, old, advantages, 0.2)
        return value - 0.1 * entropy.mean()

    for name, found, expected in slopes(network, loss, rng):
        assert found == pytest.approx(expected, **tolerance), name


def slopes(
    network: nn.Module, loss: Callable[[], torch.Tensor], rng: np.random.Generator
) -> Iterator[tuple[str, float, float]]:
    """The slope of a loss along a drawn direction, parameter by parameter.

    Yields:
        The parameter's name, the slope by its gradient, and that by central differences.
    """
    loss().backward()  # type: ignore[no-untyped-call]
    for name, parameter in network.named_parameters():
        direction = torch.from_numpy(rng.standard_normal(tuple(parameter.shape)))
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter += sign * 1e-6 * direction
                values.append(float(loss()))
                parameter -= sign * 1e-6 * direction
        yield name, float((parameter.grad * direction).sum()), (values[0] - values[1]) / 2e-6


def leaves_of(tree: Tree) -> np.ndarray:
    """Places of the classes of an advisor's tree."""
    return np.setdiff1d(np.flatnonzero(tree.statistics[:, 0] > 0), tree.parent)
