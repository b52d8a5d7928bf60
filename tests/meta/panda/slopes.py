"""Gradients of a network beside differences of its loss, and the leaves of its tree."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn

from meta.panda.specifications import Tree


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
        assert parameter.grad is not None
        yield name, float((parameter.grad * direction).sum()), (values[0] - values[1]) / 2e-6


def leaves_of(tree: Tree) -> np.ndarray:
    """Places of the classes of an advisor's tree."""
    return np.setdiff1d(np.flatnonzero(tree.statistics[:, 0] > 0), tree.parent)
