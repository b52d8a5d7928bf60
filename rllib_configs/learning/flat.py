"""All that is learned as one vector: what gradients travel and add up as."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn


def learned_parameters(module: nn.Module) -> list[nn.Parameter]:
    """The parameters of a module that are learned, in its order."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


@torch.no_grad()
def joined(parameters: Sequence[nn.Parameter]) -> nn.Parameter:
    """One vector, in whose parts parameters stand from now on: who changes it changes them."""
    vector = nn.Parameter(torch.cat([parameter.reshape(-1) for parameter in parameters]))
    pieces = vector.data.split([parameter.numel() for parameter in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.data = piece.view_as(parameter)
    return vector


def flat_gradient(loss: torch.Tensor, module: nn.Module) -> NDArray[np.float32]:
    """The gradient of a scalar by `learned_parameters`, float32 ``(num_learned,)``.

    It is 0 for parameters that the scalar does not depend on.
    """
    found = torch.autograd.grad(
        loss, learned_parameters(module), allow_unused=True, materialize_grads=True
    )
    return torch.cat([part.reshape(-1) for part in found]).numpy()


def shaped(
    gradient: NDArray[np.float32], parameters: Sequence[nn.Parameter]
) -> Iterator[tuple[nn.Parameter, torch.Tensor]]:
    """Each of `learned_parameters`, and its part of a gradient in its shape."""
    writable = np.require(gradient, requirements="W")  # not the object store's own
    pieces = torch.from_numpy(writable).split([parameter.numel() for parameter in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        yield parameter, piece.view_as(parameter)


def flat_parameters(module: nn.Module) -> NDArray[np.float32]:
    """A copy of `learned_parameters`, float32 ``(num_learned,)``."""
    return flattened(learned_parameters(module))


def flattened(parameters: Sequence[nn.Parameter]) -> NDArray[np.float32]:
    """A copy of parameters, float32 ``(num_learned,)``."""
    parts = [parameter.detach().reshape(-1) for parameter in parameters]
    return torch.cat(parts).numpy()


@torch.no_grad()
def load_flat(module: nn.Module, flat: NDArray[np.float32]) -> None:
    """Gives a module what `flat_parameters` gave."""
    for parameter, piece in shaped(flat, learned_parameters(module)):
        parameter.copy_(piece)
