"""Optimizers are PyTorch's, or the paper's, and make no process wait for PyTorch's compiler."""

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from rllib_configs.learning.flat import joined
from rllib_configs.learning.optimizers import Adam, RootMeanSquare, joined_state

_STEPS = """
import sys
import torch
from rllib_configs.learning.optimizers import Adam, RootMeanSquare
weight = torch.nn.Parameter(torch.ones(3))
for optimizer in (Adam([weight], 0.1), RootMeanSquare([weight], 0.1, 0.9, 1e-6)):
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
assert (weight < 1).all()
print("torch._dynamo" in sys.modules)
"""


def test_adam_is_pytorch_s() -> None:
    weights = [torch.nn.Parameter(torch.linspace(-1, 1, 5)) for _ in range(2)]
    optimizers = [Adam([weights[0]], 0.1), torch.optim.Adam([weights[1]], 0.1, fused=True)]
    for step in range(5):
        for optimizer, weight in zip(optimizers, weights, strict=True):
            optimizer.zero_grad()
            (weight**2).sum().mul(step - 2).backward()
            optimizer.step()
    assert not torch.equal(weights[0], torch.linspace(-1, 1, 5))
    assert torch.equal(*weights)


def test_steps_do_not_import_the_compiler() -> None:
    command = [sys.executable, "-W", "ignore", "-c", _STEPS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_optimizer_is_rmsprop_with_its_constant_under_the_root() -> None:
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))
    optimizer = RootMeanSquare([parameter], lr=0.1, decay=0.9, eps=1e-2)
    mean_square, expected = np.zeros(2), np.array([1.0, 2.0])
    for gradient in (np.array([1.0, 0.0]), np.array([-2.0, 1e-3])):
        parameter.grad = torch.from_numpy(gradient)
        optimizer.step()
        mean_square = 0.9 * mean_square + 0.1 * gradient**2
        expected -= 0.1 * gradient / np.sqrt(mean_square + 1e-2)
    assert np.allclose(parameter.detach().numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "kind", [partial(Adam, lr=0.1), partial(RootMeanSquare, lr=0.1, decay=0.9, eps=1e-6)]
)
def test_parameters_stand_in_a_vector_and_older_states_are_taken_over(kind: Any) -> None:
    several, parts = ([nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(()))] for _ in "ab")
    optimizer, slopes = kind([{"params": several[:1]}, {"params": several[1:]}]), (1.0, -0.5)
    optimizer.zero_grad()

    def step() -> None:
        for parameter, slope in zip(several, slopes, strict=True):
            parameter.grad = torch.full_like(parameter, slope)
        optimizer.step()

    step()
    for part, parameter in zip(parts, several, strict=True):
        part.data.copy_(parameter)
    vector = joined(parts)
    whole = kind([{"params": [vector]}])
    given = optimizer.state_dict()
    given["param_groups"] = [{**given["param_groups"][0], "params": [0, 1]}]
    whole.load_state_dict(tensors(joined_state(given)))
    assert joined_state(whole.state_dict()).keys() == whole.state_dict().keys()
    for _ in range(3):
        step()
        vector.grad = torch.tensor([slopes[0]] * 6 + [slopes[1]])
        whole.step()
    for part, parameter in zip(parts, several, strict=True):
        assert torch.allclose(part, parameter, rtol=1e-6)
        assert not torch.equal(part, torch.ones_like(part))


def tensors(state: dict[str, Any]) -> dict[str, Any]:
    """As RLlib gives them to an optimizer."""
    found = {
        number: {name: torch.tensor(np.array(value)) for name, value in each.items()}
        for number, each in state["state"].items()
    }
    return {**state, "state": found}
