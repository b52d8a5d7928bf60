"""Optimizers are PyTorch's, or the paper's, and make no process wait for PyTorch's compiler."""

import subprocess
import sys

import numpy as np
import torch

from rllib_configs.learning.optimizers import Adam, RootMeanSquare

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
