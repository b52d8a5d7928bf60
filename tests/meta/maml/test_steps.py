"""Inner and outer steps against closed forms and finite differences."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from meta.maml.steps import StepOptions, adapt, adapted_names, inner_step, outer_loss, scorer_of
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.policy_gradient import PolicyLoss
from tests.meta.maml.bandit import NO_CLIP, Bandit, draws, gradient, hessian, plain, stepped
from tests.meta.maml.tiny import WORLD, leaves, tiny_decisions, tiny_network

OUTER = PolicyLoss(clip=0.2, entropy_coefficient=0.03)


@pytest.mark.parametrize("surrogate", ["ratio", "log_probability"])
@pytest.mark.parametrize("clip", [NO_CLIP, 0.05])
@pytest.mark.parametrize("normalize", [False, True])
def test_inner_step_is_the_clipped_or_normalized_gradient_step(
    surrogate: str, clip: float, normalize: bool
) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=4)
    data = draws(rng, logits)
    g = gradient(logits, data, surrogate)
    norm = np.linalg.norm(g)
    assert norm > 0.05
    expected = logits - 0.7 * g * (1 / norm if normalize else min(1.0, clip / norm))
    options = StepOptions(surrogate, gradient_clip=clip, normalize=normalize)
    assert np.allclose(stepped(logits, data, 0.7, options), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("surrogate", ["ratio", "log_probability"])
@pytest.mark.parametrize("order", ["first", "second"])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_meta_gradient_on_a_bandit_is_the_closed_form(
    surrogate: str, order: str, steps: int
) -> None:
    rng = np.random.default_rng(1)
    logits, rate = rng.normal(size=4), 0.6
    *before, last = stages = [draws(rng, logits) for _ in range(steps + 1)]
    at, slope = logits, np.zeros(4)  # slope: of the adapted logits in the logarithm of the rate
    jacobian = np.eye(4)
    for number, data in enumerate(before, 1):
        g, h = gradient(at, data, surrogate), hessian(at, data, surrogate)
        curved = h if order == "second" else np.zeros((4, 4))
        shorter = rate / number**0.5
        slope = slope - shorter * (g + curved @ slope)
        jacobian = (np.eye(4) - shorter * curved) @ jacobian
        at = at - shorter * g
    outer = gradient(at, last, "ratio")

    network = Bandit(logits)
    parameters = leaves(dict(network.named_parameters()))
    rates = {"logits": torch.tensor(np.log(rate), requires_grad=True)}
    loss, _, inner_norm = outer_loss(
        plain(network),
        parameters,
        rates,
        stages,
        StepOptions(surrogate, gradient_clip=NO_CLIP, create_graph=order == "second"),
        PolicyLoss(clip=1e6),
    )
    found = torch.autograd.grad(
        loss, [parameters["logits"], rates["logits"]], allow_unused=True, materialize_grads=True
    )
    assert np.allclose(found[0], jacobian.T @ outer, rtol=0, atol=1e-9)
    assert float(found[1]) == pytest.approx(float(slope @ outer), abs=1e-9)
    assert inner_norm == pytest.approx(np.linalg.norm(at - logits), abs=1e-9)


Loss = Callable[[dict[str, torch.Tensor], dict[str, torch.Tensor]], torch.Tensor]


def finite_differences(
    loss: Loss,
    parameters: dict[str, torch.Tensor],
    rates: dict[str, torch.Tensor],
    ways: dict[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Central differences along a random way through each tensor; see `along`."""
    found = {}
    for prefix, group in (("", parameters), ("rate of ", rates)):
        for name, value in group.items():
            way = torch.from_numpy(np.asarray(1e-5 * ways[prefix + name]))
            ends = []
            for sign in (1, -1):
                value.data += sign * way
                ends.append(float(loss(parameters, rates).detach()))
                value.data -= sign * way
            found[prefix + name] = np.array((ends[0] - ends[1]) / 2e-5)
    return found


def along(slopes: dict[str, np.ndarray], ways: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Slope along the way through each tensor."""
    return {name: (slope * ways[name]).sum() for name, slope in slopes.items()}


def autograd(
    loss: Loss, parameters: dict[str, torch.Tensor], rates: dict[str, torch.Tensor]
) -> dict[str, np.ndarray]:
    found = torch.autograd.grad(
        loss(parameters, rates),
        [*parameters.values(), *rates.values()],
        allow_unused=True,
        materialize_grads=True,
    )
    names = [*parameters, *(f"rate of {name}" for name in rates)]
    return {name: value.numpy() for name, value in zip(names, found, strict=True)}


def largest(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """Largest difference of any number."""
    assert found.keys() == expected.keys()
    return max(np.abs(found[name] - expected[name]).max() for name in expected)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("adapt_what", ["all", "head"])
def test_meta_gradient_of_the_set_scorer_against_finite_differences(
    steps: int, adapt_what: str
) -> None:
    network = tiny_network(0)
    parameters = leaves(dict(network.named_parameters()))
    names = adapted_names(network, adapt_what)
    rng = np.random.default_rng(2)
    rates = leaves({name: torch.tensor(rng.normal(0, 0.3)).double() for name in parameters})
    tasks = [[tiny_decisions(10 * task + stage) for stage in range(steps + 1)] for task in (0, 1)]

    def loss_of(create_graph: bool) -> Loss:
        scorer = scorer_of(network, WORLD)
        options = StepOptions(gradient_clip=NO_CLIP, adapted=names, create_graph=create_graph)
        return lambda p, r: sum(outer_loss(scorer, p, r, t, options, OUTER)[0] / 2 for t in tasks)

    second = autograd(loss_of(True), parameters, rates)
    first = autograd(loss_of(False), parameters, rates)
    ways = {name: np.asarray(rng.normal(size=slope.shape)) for name, slope in first.items()}
    expected = finite_differences(loss_of(True), parameters, rates, ways)
    size = max(np.abs(value).max() for value in expected.values())
    assert size > 0.01
    assert largest(along(second, ways), expected) < 1e-7 * max(1.0, size)
    assert largest(along(first, ways), expected) > 1e-3 * size  # it leaves something out

    # First order is the gradient at the adapted parameters, carried over unchanged.
    by_hand = {name: np.zeros(tuple(value.shape)) for name, value in parameters.items()}
    by_hand |= {f"rate of {name}": np.zeros(()) for name in rates}
    for *before, last in tasks:
        options = StepOptions(gradient_clip=NO_CLIP, adapted=names)
        ends = adapt(scorer_of(network, WORLD), parameters, rates, before, options)
        at = leaves(ends)
        loss, *_ = outer_loss(scorer_of(network, WORLD), at, rates, [last], options, OUTER)
        slopes = torch.autograd.grad(loss, list(at.values()))
        for name, slope in zip(at, slopes, strict=True):
            by_hand[name] += slope.numpy() / 2
            way = (ends[name] - parameters[name]).detach()
            by_hand[f"rate of {name}"] += float((way * slope).sum()) / 2
    assert largest(first, by_hand) < 1e-12


def test_clip_factor_is_a_constant() -> None:
    # A clipped step of a constant factor c is an unclipped one at the rate c times as high.
    network = tiny_network(1)
    parameters = leaves(dict(network.named_parameters()))
    rates = {name: torch.zeros(()).double() for name in parameters}
    stages = [tiny_decisions(0), tiny_decisions(1)]
    options = StepOptions(gradient_clip=NO_CLIP, create_graph=True)
    free = adapt(scorer_of(network, WORLD), parameters, rates, stages[:1], options)
    squares = [((free[n] - parameters[n]).detach() ** 2).sum() for n in parameters]
    norm = float(sum(squares)) ** 0.5
    slower = {name: value + np.log(0.1) for name, value in rates.items()}

    def slopes(rates: dict[str, torch.Tensor], clip: float) -> list[torch.Tensor]:
        loss, _, inner_norm = outer_loss(
            scorer_of(network, WORLD),
            parameters,
            rates,
            stages,
            replace(options, gradient_clip=clip),
            PolicyLoss(clip=0.2),
        )
        assert inner_norm == pytest.approx(0.1 * norm, rel=1e-6)
        return list(torch.autograd.grad(loss, list(parameters.values())))

    for one, other in zip(slopes(rates, 0.1 * norm), slopes(slower, NO_CLIP), strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("part", "expected"), [("head", {"mix", "mix_pooled", "score", "void"}), ("direct", {"void"})]
)
def test_adapting_a_part_moves_nothing_else(part: str, expected: set[str]) -> None:
    network = tiny_network(0)  # it has no skip connection
    parameters = leaves(dict(network.named_parameters()))
    rates = {name: torch.zeros(()) for name in parameters}
    options = StepOptions(adapted=adapted_names(network, part))
    stages = [tiny_decisions(0)] * 2
    adapted = adapt(scorer_of(network, WORLD), parameters, rates, stages, options)
    moved = {name for name, value in adapted.items() if not torch.equal(value, parameters[name])}
    assert {name.split(".")[0] for name in moved} == expected
    assert part == "head" or moved == {"void.bias"}
    assert adapted_names(network, "all") == tuple(parameters)


def test_what_classes_count_can_be_adapted_alone() -> None:
    names = ("size", "class_0", "class_1"), ("waiting",)
    options = SetScorerOptions(hidden=2, skip_connection=True)
    network = SetScorer(names, options, seed=0)
    assert adapted_names(network, "classes") == ("skip_classes",)
    assert dict(network.named_parameters())["skip_classes"].shape == (2,)
    assert adapted_names(tiny_network(0), "classes") == ()  # it has no classes


def test_a_step_without_decisions_changes_nothing() -> None:
    network = tiny_network(0)
    parameters = leaves(dict(network.named_parameters()))
    rates = {name: torch.zeros(()) for name in parameters}
    nothing = tiny_decisions(0).of_rows(np.arange(0))
    options = StepOptions()
    assert inner_step(scorer_of(network, WORLD), parameters, rates, nothing, options) == parameters
