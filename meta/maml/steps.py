r"""Inner and outer steps of MAML as plain functions of PyTorch.

With :math:`\theta` the parameters, :math:`\alpha_b` the inner rate of block :math:`b` and
:math:`D_k` the decisions that were sampled with :math:`\theta_k` on a task, an inner step is

.. math:: \theta_{k+1} = \theta_k - \alpha_b \, c_k \nabla_{\theta_k} L(\theta_k; D_k)

with the factor :math:`c_k \le 1` that clips the norm of the gradient (Finn et al., *Model-agnostic
meta-learning for fast adaptation of deep networks*, 2017, algorithm 3; rates by block and learned
after Li et al., *Meta-SGD*, 2017, equation 4, who learn one for every parameter). The outer loss
is PPO's on :math:`D_K` under :math:`\theta_K`.

The inner loss :math:`L` is minus the mean over the decisions of, with A the advantage,

* ``log_probability``: :math:`A \log \pi_\theta(a|s)`, as in MAML;
* ``ratio``: :math:`A \, \pi_\theta(a|s) / \pi_{old}(a|s)`, the same gradient where the parameters
  are those that chose the actions, but an unbiased estimate of the Hessian as well, so that the
  effect of :math:`\theta` on what is sampled counts (Rothfuss et al., *ProMP: Proximal
  meta-policy search*, 2019, section 5). It also stays right when :math:`\theta` has changed since
  the decisions were stored.

With ``shrink`` the step of each block is shortened to what independent jobsets agree on. Where a
policy is good already, the gradient of 20 episodes is noise, but no smaller than one that points
somewhere, and steps along it undo what was learned. With :math:`g_i` the part of a block's gradient
:math:`g` that comes from jobset i of n, and :math:`m` its expectation,
:math:`s = n / (n - 1) \sum_{i \ne j} g_i g_j` has
the expectation :math:`|m|^2`, and :math:`\min(1, \max(0, s / |g|^2))` is the factor: that of the
positive-part James-Stein estimator (1961), with the variance estimated from the jobsets.

With ``normalize`` the gradient of each block is divided by its length, in place of :math:`c_k`, so
that a rate is the length of a step. The gradient of a bias that decides whether jobs are held back
can be a thousandth of that of the layers before it, and no rate suits both.

Without ``create_graph`` the inner gradient is a constant for the outer loss (first-order MAML), but
rates are still learned, through :math:`\theta_K = \theta - \alpha g`. Two differences from the
papers: all factors are constants in either order, and the decisions of the outer loss do not
change with :math:`\theta` while an update is computed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from cluster_env.core.world import State, World
from meta.maml.decisions import Decisions
from meta.maml.options import MAMLOptions
from rllib_configs.learning.losses import clipped_loss
from rllib_configs.networks.set_scorer.policy_gradient import PolicyLoss

Parameters = dict[str, torch.Tensor]
Surrogate = Literal["ratio", "log_probability"]
Adapt = Literal["all", "head", "direct", "classes", "context"]

LEAST_SQUARE = 1e-24
"""Added to the square of a gradient's length, so that one that is 0 has a direction."""

Scorer = Callable[[Mapping[str, torch.Tensor], State], torch.Tensor]
"""From parameters and states, ``(n, state_size)``, to logits, ``(n, num_actions)``."""


@dataclass(frozen=True)
class StepOptions:
    """How inner steps are taken, in either order; this module has the formulas.

    Attributes:
        surrogate: the inner loss.
        gradient_clip: largest norm of the inner gradient, over all adapted parameters.
        shrink: whether the step of a block is shortened to what the jobsets agree on; with
            decisions of one jobset alone it is not.
        normalize: whether the gradient of each block gets length 1, and none is clipped.
        adapted: names of the parameters that inner steps change; None for all.
        create_graph: whether the outer gradient sees how the inner one depends on the parameters,
            which makes it one of second order; `meta.maml.first_order` never has a graph.
    """

    surrogate: Surrogate = "ratio"
    gradient_clip: float = 0.1
    shrink: bool = False
    normalize: bool = False
    adapted: tuple[str, ...] | None = None
    create_graph: bool = False

    @staticmethod
    def of(meta: MAMLOptions, network: nn.Module) -> "StepOptions":
        """Those that a config asks for, of a network whose values do not count."""
        return StepOptions(
            surrogate=meta.surrogate,
            gradient_clip=meta.gradient_clip,
            shrink=meta.shrink,
            normalize=meta.normalize,
            adapted=adapted_names(network, meta.adapt),
            create_graph=meta.order == "second",
        )


def scorer_of(network: nn.Module, world: World) -> Scorer:
    """A network of features as a function of its parameters and of states of a world."""

    def scores(parameters: Mapping[str, torch.Tensor], states: State) -> torch.Tensor:
        return functional_call(network, dict(parameters), (world.features(states),))

    return scores


def adapted_names(network: nn.Module, adapt: Adapt) -> tuple[str, ...]:
    """The parameters of a network that inner steps change: all, those of a part, or none."""
    names = tuple(name for name, _ in network.named_parameters())
    if adapt == "all":
        return names
    parts: Any = network.parts
    part = () if adapt == "context" else parts[adapt]
    return tuple(name for name in names if name in part or name.split(".")[0] in part)


def rate_of_step(step: int) -> float:
    """What inner rates are multiplied by in a step, counted from 0: the root of 1 / (step + 1).

    A rate that makes the most of one step is too long for many, which come to walk around the best
    place; rates that fall end there (Robbins and Monro, 1951).
    """
    return 1.0 / math.sqrt(step + 1)


def inner_loss(
    scorer: Scorer,
    parameters: Mapping[str, torch.Tensor],
    decisions: Decisions,
    surrogate: Surrogate,
) -> torch.Tensor:
    """The scalar that an inner step descends; decisions: at least one."""
    logits = scorer(parameters, decisions.states)
    actions = torch.tensor(decisions.actions).long()
    chosen = torch.log_softmax(logits, dim=-1).gather(1, actions.unsqueeze(1)).squeeze(1)
    advantages = torch.tensor(decisions.advantages)
    if surrogate == "log_probability":
        return -(chosen * advantages).mean()
    ratio = torch.exp(chosen - torch.tensor(decisions.log_probabilities))
    return -(ratio * advantages).mean()


def inner_step(
    scorer: Scorer,
    parameters: Mapping[str, torch.Tensor],
    rates: Mapping[str, torch.Tensor],
    decisions: Decisions,
    options: StepOptions,
) -> Parameters:
    """One step of adaptation; without decisions nothing changes.

    Rates are the logarithm of the inner rate of each parameter tensor, by the same names. What is
    not adapted are the tensors of ``parameters``.
    """
    if decisions.num_rows == 0:
        return dict(parameters)
    names = tuple(parameters) if options.adapted is None else options.adapted
    # Without a graph the gradient needs none behind the parameters either.
    graph = options.create_graph
    current = {name: value if graph else value.detach() for name, value in parameters.items()}
    for name in names:
        if not current[name].requires_grad:
            current[name] = current[name].detach().requires_grad_()

    # The gradient of each jobset's share of the loss; their sum is that of the whole loss.
    parts = [decisions]
    if options.shrink:
        parts = [decisions.of_jobset(k) for k in np.unique(decisions.jobset)]
    by_part = []
    for part in parts:
        share = part.num_rows / decisions.num_rows
        with torch.enable_grad():
            loss = share * inner_loss(scorer, current, part, options.surrogate)
            inputs = [current[name] for name in names]
            by_part.append(torch.autograd.grad(loss, inputs, create_graph=graph))
    by_block = list(zip(*by_part, strict=True))
    gradients = [torch.stack(pieces).sum(0) for pieces in by_block]

    # How long the step of each block is. These factors are constants for the outer gradient.
    squares = [sum_of_squares([gradient.detach()]) for gradient in gradients]
    if options.normalize:
        factors = [1.0 / torch.sqrt(square + LEAST_SQUARE) for square in squares]
    else:
        norm = torch.sqrt(torch.stack(squares).sum())
        factors = [torch.clamp(options.gradient_clip / (norm + 1e-12), max=1.0)] * len(squares)
    shares = [_shrinkage(pieces) for pieces in by_block]
    return dict(parameters) | {
        name: parameters[name] - torch.exp(rates[name]) * (factor * share * gradient)
        for name, gradient, factor, share in zip(names, gradients, factors, shares, strict=True)
    }


def _shrinkage(pieces: Sequence[torch.Tensor]) -> torch.Tensor:
    """The factor of this module's text for a block, from its gradients by jobsets."""
    count = len(pieces)
    if count < 2:
        return torch.ones(())
    square = sum_of_squares([torch.stack([piece.detach() for piece in pieces]).sum(0)])
    signal = count / (count - 1) * (square - sum_of_squares([piece.detach() for piece in pieces]))
    return torch.clamp(signal / (square + LEAST_SQUARE), 0.0, 1.0)


def adapt(
    scorer: Scorer,
    parameters: Mapping[str, torch.Tensor],
    rates: Mapping[str, torch.Tensor],
    stages: Sequence[Decisions],
    options: StepOptions,
) -> Parameters:
    """One inner step for each stage, in order; see `inner_step`.

    The rates are those of the first; later ones are shorter, see `rate_of_step`.
    """
    adapted = dict(parameters)
    for step, decisions in enumerate(stages):
        shorter = {name: rate + math.log(rate_of_step(step)) for name, rate in rates.items()}
        adapted = inner_step(scorer, adapted, shorter, decisions, options)
    return adapted


def outer_loss(
    scorer: Scorer,
    parameters: Mapping[str, torch.Tensor],
    rates: Mapping[str, torch.Tensor],
    stages: Sequence[Decisions],
    options: StepOptions,
    policy_loss: PolicyLoss,
) -> tuple[torch.Tensor, float, float]:
    """What an adapted policy loses on a task.

    The stages are decisions, those of stage k sampled after k inner steps. The last one is what
    counts, and holds at least one; all others are adapted on. With one stage alone this is PPO's
    loss, where the ratio is the gain.

    Returns the loss, a scalar with a gradient for parameters and rates (see `inner_step`); the mean
    entropy over the decisions of the last stage, in nats; and the Euclidean norm of the
    displacement from the parameters to the adapted ones.
    """
    *before, last = stages
    adapted = adapt(scorer, parameters, rates, before, options)
    # The loss of the last stage at the parameters that all others lead to.
    loss, entropies = clipped_loss(
        scorer(adapted, last.states),
        torch.tensor(last.actions),
        torch.tensor(last.log_probabilities),
        torch.tensor(last.advantages),
        policy_loss.clip,
    )
    entropy = entropies.mean()
    displacement = [(adapted[name] - parameters[name]).detach() for name in parameters]
    norm = float(torch.sqrt(sum_of_squares(displacement)))
    return loss - policy_loss.entropy_coefficient * entropy, float(entropy.detach()), norm


def sum_of_squares(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Sum over all elements of all tensors, a scalar; 0 for none."""
    total = torch.zeros(())
    for tensor in tensors:
        total = total + (tensor**2).sum()
    return total
