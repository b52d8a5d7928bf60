"""An inner step is shortened to what the jobsets of a task agree on."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from meta.maml.decisions import Decisions
from meta.maml.steps import StepOptions, adapt, inner_step, outer_loss
from rllib_configs.networks.set_scorer.policy_gradient import PolicyLoss
from tests.meta.maml.bandit import NO_CLIP, Bandit, draws, gradient, hessian, plain, stepped
from tests.meta.maml.tiny import leaves


def way(logits: np.ndarray, data: Decisions, shrink: bool) -> np.ndarray:
    """Where one step with the rate 1 and without clipping leads, from the logits."""
    return stepped(logits, data, 1.0, StepOptions(gradient_clip=NO_CLIP, shrink=shrink)) - logits


def test_a_step_is_shortened_to_what_jobsets_agree_on() -> None:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=4)
    parts = [draws(rng, logits, rows) for rows in (30, 20, 50)]
    data = Decisions(
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("states", "actions", "log_probabilities", "advantages")
        },
        jobset=np.repeat([0, 1, 2], [30, 20, 50]).astype(np.int32),
    )
    weighed = replace(
        data, advantages=data.advantages + 2 * (data.actions == 1)
    )  # all like action 1
    each = [
        share * gradient(logits, weighed.of_jobset(k), "ratio")
        for k, share in enumerate((0.3, 0.2, 0.5))
    ]
    total = np.sum(each, axis=0)
    signal = 1.5 * sum(a @ b for i, a in enumerate(each) for j, b in enumerate(each) if i != j)
    factor = signal / (total @ total)
    assert 0.5 < factor < 0.999
    assert np.allclose(way(logits, weighed, True), -factor * total, rtol=0, atol=1e-9)
    assert np.allclose(way(logits, weighed, False), -total, rtol=0, atol=1e-9)


def test_the_share_that_jobsets_agree_on_is_a_constant_in_second_order_too() -> None:
    """The gradient is that of a step whose rate is as much lower."""
    rng = np.random.default_rng(11)
    logits = rng.normal(size=4)
    data = draws(rng, logits, 40)
    data = replace(data, advantages=data.advantages + (data.actions == 1))
    last = draws(rng, logits, 30)
    halves = [0.5 * gradient(logits, data.of_jobset(k), "ratio") for k in (0, 1)]
    total = np.sum(halves, axis=0)
    share = 2 * 2 * (halves[0] @ halves[1]) / (total @ total)
    assert 0.2 < share < 0.95
    rate = 0.6
    at = logits - rate * share * total
    jacobian = np.eye(4) - rate * share * hessian(logits, data, "ratio")
    expected = jacobian.T @ gradient(at, last, "ratio")

    network = Bandit(logits)
    parameters = leaves(dict(network.named_parameters()))
    loss, _, inner_norm = outer_loss(
        plain(network),
        parameters,
        {"logits": torch.tensor(np.log(rate))},
        [data, last],
        StepOptions(gradient_clip=NO_CLIP, shrink=True, create_graph=True),
        PolicyLoss(clip=1e6),
    )
    (found,) = torch.autograd.grad(loss, [parameters["logits"]])
    assert inner_norm == pytest.approx(rate * share * np.linalg.norm(total), rel=1e-9)
    assert np.allclose(found, expected, rtol=0, atol=1e-9)


def test_each_block_is_shortened_by_itself() -> None:
    """Of two blocks, the jobsets agree on one and contradict each other on the other."""

    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.agreed = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
            self.contested = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))

        def forward(self, states: np.ndarray) -> torch.Tensor:
            kind = torch.from_numpy(states[:, :1] == 1)
            return torch.where(kind, self.contested, self.agreed)

    names = {"log_probabilities": np.full(8, np.log(0.5)), "actions": np.zeros(8, np.int32)}
    data = Decisions(
        states=np.tile(np.array([[0], [1]], np.uint8), (4, 1)),
        advantages=np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, -1.0]),
        jobset=np.repeat([0, 1], 4).astype(np.int32),
        **names,
    )
    network = Two()
    parameters = dict(network.named_parameters())
    rates = {name: torch.tensor(0.0) for name in parameters}
    options = StepOptions(gradient_clip=NO_CLIP, shrink=True)
    moved = inner_step(plain(network), parameters, rates, data, options)
    assert moved["agreed"].tolist() == pytest.approx([0.25, -0.25])
    assert moved["contested"].tolist() == [0.0, 0.0]


def test_later_steps_are_shorter() -> None:
    rng = np.random.default_rng(7)
    network = Bandit(rng.normal(size=3))
    parameters = dict(network.named_parameters())
    rates = {"logits": torch.tensor(0.4)}
    data = [draws(rng, rng.normal(size=3), 12) for _ in range(3)]
    expected, options = parameters, StepOptions(gradient_clip=NO_CLIP)
    for number, part in enumerate(data, 1):
        rate = {"logits": torch.tensor(0.4 - 0.5 * math.log(number))}
        expected = inner_step(plain(network), expected, rate, part, options)
    found = adapt(plain(network), parameters, rates, data, options)
    assert torch.allclose(found["logits"], expected["logits"], rtol=1e-12, atol=0)


def test_jobsets_that_contradict_each_other_move_nothing_and_alike_ones_all_the_way() -> None:
    rng = np.random.default_rng(6)
    logits = rng.normal(size=4)
    half = draws(rng, logits, 20)
    names = ("states", "actions", "log_probabilities")
    twice = {name: np.concatenate([getattr(half, name)] * 2) for name in names}
    jobset = np.repeat([0, 1], 20).astype(np.int32)
    for sign, share in ((-0.9, 0.0), (1.0, 1.0)):
        advantages = np.concatenate([half.advantages, sign * half.advantages])
        data = Decisions(**twice, advantages=advantages, jobset=jobset)
        alone = way(logits, data, shrink=False)
        assert np.linalg.norm(alone) > 1e-3
        assert np.allclose(way(logits, data, shrink=True), share * alone, rtol=0, atol=1e-9)
    one = replace(half, jobset=np.zeros(20, np.int32))
    assert np.array_equal(way(logits, one, True), way(logits, one, False))
