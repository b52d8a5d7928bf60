"""Steps without a graph are those of `meta.maml.steps`."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import meta.maml.gradients as gradients_module
from meta.maml.decisions import Decisions, decisions_of
from meta.maml.first_order import FirstOrder
from meta.maml.gradients import FirstOrderGradients, GraphGradients
from meta.maml.module import MetaSetScorerModule, meta_model_config
from meta.maml.options import MAMLOptions
from meta.maml.stages import TaskSample
from meta.maml.steps import StepOptions, inner_step, outer_loss, scorer_of
from rllib_configs.config.loading import make_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from rllib_configs.networks.set_scorer.kernels import SKIP_GAIN
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.policy_gradient import PolicyLoss
from tests.meta.maml.tiny import WORLD, leaves, tiny_rollouts

TINY = "tests.meta.maml.tiny_tasks:TINY_TASKS"
WIDTH = 8
OPTIONS = [
    MAMLOptions(gradient_clip=1e9, shrink=False),
    MAMLOptions(gradient_clip=0.05),
    MAMLOptions(surrogate="log_probability", gradient_clip=1e9, adapt="head"),
    MAMLOptions(adapt="direct", normalize=True),
]


def decisions(seed: int) -> Decisions:
    """Of a policy that is not the one that learns, so that some ratios are clipped."""
    found = decisions_of(tiny_rollouts(seed, width=WIDTH), gamma=1.0, floor=0.03)
    noise = np.random.default_rng(seed).normal(0, 0.3, found.num_rows).astype(np.float32)
    return replace(found, log_probabilities=found.log_probabilities + noise)


def network_of(*, skip_connection: bool = False) -> SetScorer:
    """With weights that all matter."""
    options = SetScorerOptions(WIDTH, skip_connection=skip_connection)
    network = SetScorer(WORLD.feature_names, options, 0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            scale = 0.03 if name in network.skip_names else 0.3
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    return network


def given(network: SetScorer) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    parameters = leaves(dict(network.named_parameters()))
    values = np.random.default_rng(1).normal(0, 0.3, len(parameters)).astype(np.float32)
    values[[name in network.skip_names for name in parameters]] -= 2 * np.log(SKIP_GAIN)
    rates = {name: torch.tensor(float(v)) for name, v in zip(parameters, values, strict=True)}
    return parameters, leaves(rates)


def test_jobsets_that_contradict_each_other_move_nothing_and_that_is_why() -> None:
    network = network_of()
    inner = FirstOrder(network, WORLD, StepOptions(shrink=True))
    parameters, rates = given(network)
    one = decisions(0).of_jobset(0)
    rows = np.tile(np.arange(one.num_rows), 2)
    sign = np.repeat(np.float32([1, -1]), one.num_rows)
    jobset = np.repeat(np.int32([0, 1]), one.num_rows)
    contrary = replace(one.of_rows(rows), advantages=sign * one.advantages[rows], jobset=jobset)
    found = inner.inner_step(parameters, rates, contrary)
    assert all(torch.equal(found[name], parameters[name]) for name in found)
    assert inner.why_unchanged(contrary) == "the jobsets did not agree on a direction"
    alike = replace(contrary, advantages=np.zeros_like(contrary.advantages))
    assert inner.why_unchanged(alike) == "episodes of the same jobset cost the same"
    assert inner.why_unchanged(one.of_rows(np.arange(0))) == "no decision had a choice"
    assert (
        FirstOrder(network, WORLD, StepOptions()).why_unchanged(one) == "the gradient was too small"
    )


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 5e-6) -> None:
    """Relative to the largest number; sums of rows in float32 differ in the last digits."""
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("skip_connection", [False, True])
@pytest.mark.parametrize("meta", OPTIONS)
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_outer_gradient_is_that_of_the_graph(
    steps: int, meta: MAMLOptions, skip_connection: bool
) -> None:
    network = network_of(skip_connection=skip_connection)
    parameters, rates = given(network)
    stages = [decisions(seed) for seed in range(steps + 1)]
    options, policy_loss = StepOptions.of(meta, network), PolicyLoss(True, 0.2, 0.03)
    scorer = scorer_of(network, WORLD)
    loss, entropy, norm = outer_loss(scorer, parameters, rates, stages, options, policy_loss)
    tensors = [*parameters.values(), *rates.values()]
    slopes = torch.autograd.grad(loss, tensors, allow_unused=True, materialize_grads=True)

    first_order = FirstOrder(network, WORLD, options)
    found = first_order.outer_gradient(
        first_order.flatten(parameters),
        first_order.spread_rates(rates),
        [first_order.choices(stage, k < steps) for k, stage in enumerate(stages)],
        policy_loss,
    )
    by_name, by_block = (
        first_order.by_name(found.parameters),
        first_order.rates_by_name(found.rates),
    )
    largest = max(float(slope.abs().max()) for slope in slopes[: len(parameters)])
    for name, slope in zip(parameters, slopes, strict=False):
        assert np.abs(by_name[name] - slope.numpy()).max() <= 2e-5 * largest
    expected = torch.stack(slopes[len(parameters) :]).numpy()
    assert_close(np.array([by_block[name] for name in rates]), expected, 1e-4)
    assert (np.abs(expected).max() > 0) == (steps > 0)
    assert found.entropy == pytest.approx(entropy, rel=1e-6)
    assert found.inner_norm == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("skip_connection", [False, True])
@pytest.mark.parametrize("meta", OPTIONS)
def test_inner_step_is_that_of_the_graph(meta: MAMLOptions, skip_connection: bool) -> None:
    network = network_of(skip_connection=skip_connection)
    parameters, rates = given(network)
    data = decisions(0)
    options = StepOptions.of(meta, network)
    expected = inner_step(scorer_of(network, WORLD), parameters, rates, data, options)
    steps = FirstOrder(network, WORLD, options)
    moved = steps.inner_step(parameters, rates, data)
    assert list(moved) == list(expected)
    for name, value in moved.items():
        assert not value.requires_grad
        way = (expected[name] - parameters[name]).detach().numpy()
        assert np.allclose((value - parameters[name]).detach(), way, rtol=1e-4, atol=1e-6)
    later = steps.inner_step(parameters, rates, data, 3)
    for name, value in later.items():  # the fourth step has half the rate of the first
        way = (moved[name] - parameters[name]) / 2
        assert torch.allclose(value - parameters[name], way, rtol=1e-4, atol=1e-6)
    nothing = data.of_rows(np.arange(0))
    still = steps.inner_step(parameters, rates, nothing)
    assert all(torch.equal(still[name], parameters[name]) for name in parameters)


def test_gradients_of_tasks_agree_and_do_not_depend_on_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = config_of()
    assert config.task.world == WORLD
    module = MetaSetScorerModule(model_config=meta_model_config(config))
    networks = {True: network_of(), False: network_of()}
    tasks = [TaskSample(WORLD, (decisions(2 * k), decisions(2 * k + 1)), (), 0.0) for k in range(2)]
    empty = replace(tasks[0], stages=(decisions(0), decisions(0).of_rows(np.arange(0))))
    tasks.append(empty)
    graph = GraphGradients(config, module, lambda _: networks[True])
    kept = FirstOrderGradients(config, module, lambda _: networks[False])
    monkeypatch.setattr(gradients_module, "KEPT_BYTES", 0)
    not_kept = FirstOrderGradients(config, module, lambda _: networks[False])
    for _ in range(2):
        for task in (tasks[1], tasks[0]):
            expected, found, mix = (each(task) for each in (graph, kept, not_kept))
            assert_close(found.flat, expected.flat)
            assert np.array_equal(found.flat, mix.flat)
        assert graph(tasks[2]) is kept(tasks[2]) is None
    assert set(kept._kept) == set(tasks[:2])
    assert not not_kept._kept


def config_of(**training: float) -> ExperimentConfig:
    chosen = {"algorithm": "maml", "network": "set_scorer", "hidden": WIDTH, "family": TINY}
    return prepare(make_config({"training": chosen | training}))


@pytest.mark.parametrize("kind", [FirstOrderGradients, GraphGradients])
@pytest.mark.parametrize("clip", [0.05, 0.6])
def test_the_ratio_is_clipped_as_the_config_says(kind: type, clip: float) -> None:
    config, task = config_of(clip=clip), TaskSample(WORLD, (decisions(0),), (), 0.0)
    module = MetaSetScorerModule(model_config=meta_model_config(config))
    parameters = module.parameters_by_name()
    loss, *_ = outer_loss(
        scorer_of(network_of(), WORLD),
        parameters,
        module.rates_by_name(),
        task.stages,
        StepOptions(),
        PolicyLoss(clip=clip, entropy_coefficient=float(module.entropy_coefficient)),
    )
    expected = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    found = kind(config, module, lambda _: network_of())(task)
    wanted = torch.cat([slope.reshape(-1) for slope in expected if slope is not None])
    assert_close(found.flat[: wanted.numel()], wanted.numpy())


@pytest.mark.parametrize("kind", [FirstOrderGradients, GraphGradients])
def test_tasks_on_different_clusters_see_their_own_features(kind: type) -> None:
    """What fits into 4 units fits into 6, so the same decisions could be made on both clusters."""
    config = config_of()
    module = MetaSetScorerModule(model_config=meta_model_config(config))
    larger = replace(WORLD, cluster=replace(WORLD.cluster, capacity=(6, 6)))
    stages = (decisions(0), decisions(1))
    tasks = [TaskSample(world, stages, (), 0.0) for world in (WORLD, larger, WORLD)]

    together = kind(config, module, lambda _: network_of())
    for task in tasks:
        alone = kind(config, module, lambda _: network_of())
        assert np.array_equal(together(task).flat, alone(task).flat)
    assert not np.array_equal(together(tasks[0]).flat, together(tasks[1]).flat)


def test_what_is_not_a_number_is_seen() -> None:
    network = network_of()
    parameters, rates = given(network)
    steps = FirstOrder(network, WORLD, StepOptions.of(OPTIONS[1], network))
    stages = [steps.choices(decisions(0), True), steps.choices(decisions(1), False)]
    start = steps.flatten(parameters)
    start[-1] = np.nan
    spread = steps.spread_rates(rates)
    assert np.isnan(steps.outer_gradient(start, spread, stages[1:], PolicyLoss()).parameters).any()
    assert np.isnan(steps.outer_gradient(start, spread, stages, PolicyLoss()).parameters).any()
