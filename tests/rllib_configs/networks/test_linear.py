"""A dense layer with one order of its sums, whatever the processor."""

import hashlib

import numpy as np
import pytest
import torch

from rllib_configs.networks.linear import Linear, linear
from tests.waiting import run_python

ROWS, WIDTH, OUTPUTS = 5000, 20, 6


def given(zeros: float = 0.0) -> list[torch.Tensor]:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(ROWS, WIDTH))
    inputs[rng.random(inputs.shape) < zeros] = 0.0
    arrays = (inputs, rng.normal(size=(WIDTH, OUTPUTS)), rng.normal(size=OUTPUTS))
    return [torch.from_numpy(array.astype(np.float32)).requires_grad_() for array in arrays]


@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_layer_and_gradients_are_those_of_the_product(zeros: float) -> None:
    ours = given(zeros)
    exact = [tensor.detach().double().requires_grad_() for tensor in ours]
    upstream = torch.from_numpy(np.random.default_rng(1).normal(size=(ROWS, OUTPUTS)))
    found = Linear.apply(*ours)
    expected = exact[0] @ exact[1] + exact[2]
    assert torch.allclose(found.double(), expected, rtol=0, atol=1e-5)
    found.backward(upstream.float())
    expected.backward(upstream)
    for mine, true in zip(ours, exact, strict=True):
        scale = true.grad.abs().max()
        assert torch.allclose(mine.grad / scale, true.grad.float() / scale, rtol=0, atol=2e-6)


def test_views_are_taken_as_they_look() -> None:
    inputs, weight, bias = (tensor.detach() for tensor in given())
    turned = weight.t().contiguous().requires_grad_()
    Linear.apply(inputs[::2], turned.t(), bias).sum().backward()
    assert torch.allclose(turned.grad, inputs[::2].sum(0).expand(OUTPUTS, -1), atol=1e-3)


def test_a_gradient_of_the_gradient_is_refused() -> None:
    inputs, weight, bias = given()
    (first,) = torch.autograd.grad(
        Linear.apply(inputs, weight, bias).square().sum(), [weight], create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_no_row_depends_on_the_others() -> None:
    inputs, weight, bias = (tensor.detach().numpy() for tensor in given(0.3))
    whole = linear(inputs, weight, bias)
    assert np.array_equal(linear(inputs[7:8], weight, bias), whole[7:8])


def digests() -> list[str]:
    """Of the gradients of our layer, and of PyTorch's."""
    found = []
    for layer in (Linear.apply, lambda x, w, b: x @ w + b):
        rng = np.random.default_rng(0)
        tensors = [
            torch.from_numpy(rng.normal(size=size).astype("f4")).requires_grad_()
            for size in ((20_000, 32), (32, 32), (32,))
        ]
        layer(*tensors).square().sum().backward()
        bits = b"".join(tensor.grad.numpy().tobytes() for tensor in tensors)
        found.append(hashlib.sha256(bits).hexdigest())
    return found


def test_bits_do_not_depend_on_how_the_library_would_multiply() -> None:
    """MKL takes other ways where it is told to; PyTorch's product shows that it is."""
    code = f"from {__name__} import digests; print(*digests())"
    done = run_python("-c", code, MKL_CBWR="COMPATIBLE")
    assert done.returncode == 0, done.stderr
    (ours, theirs), others = digests(), done.stdout.split()
    assert others[0] == ours
    if torch.backends.mkl.is_available():
        assert others[1] != theirs
