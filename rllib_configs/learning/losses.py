"""Losses of policy gradients."""

import torch
from torch.nn.functional import logsigmoid


def log_probabilities_of(
    logits: torch.Tensor, actions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """How likely actions are, and how open each decision is.

    Args:
        logits: float ``(rows, actions)``; -1e9 where something is not allowed. Where an action is a
            row, those of levels may follow.
        actions: integer ``(rows,)``, one of them each; or ``(rows, actions)``, all that are above 0
            at once, each drawn by itself from the softmax of its logit and 0. If there are levels,
            a number above 0 is 1 plus the level that was drawn for the row.

    Returns:
        Logarithms of the probabilities and entropies, float ``(rows,)`` each.
    """
    if actions.ndim == 1:
        each = torch.log_softmax(logits, dim=-1)
        chosen = each.gather(1, actions.long().unsqueeze(1)).squeeze(1)
        return chosen, -(each.exp() * each).sum(dim=-1)
    bits, levels = logits[:, : actions.shape[1]], logits[:, actions.shape[1] :]
    taken, left = logsigmoid(bits), logsigmoid(-bits)
    chosen = torch.where(actions > 0, taken, left).sum(dim=-1)
    entropy = -(taken.exp() * taken + left.exp() * left).sum(dim=-1)
    if levels.shape[1]:
        each, level = torch.log_softmax(levels, dim=-1), actions.amax(dim=1).long() - 1
        drawn = each.gather(1, level.clamp(min=0).unsqueeze(1)).squeeze(1)
        chosen = chosen + torch.where(level >= 0, drawn, 0.0)
        entropy = entropy - (each.exp() * each).sum(dim=-1)
    return chosen, entropy


def policy_gradient_loss(
    logits: torch.Tensor, actions: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss whose negative gradient is REINFORCE's update direction (DeepRM, figure 3).

    Args:
        logits: float ``(rows, actions)``.
        actions: see `log_probabilities_of`.
        weights: float ``(rows,)``, advantages, or what is proportional to them.

    Returns:
        The loss, a scalar that is a sum over rows, and the entropy of each row's policy, float
        ``(rows,)``, without gradient.
    """
    chosen, entropy = log_probabilities_of(logits, actions)
    return -(chosen * weights).sum(), entropy.detach()


def clipped_loss(
    logits: torch.Tensor,
    actions: torch.Tensor,
    old_log_probabilities: torch.Tensor,
    advantages: torch.Tensor,
    clip: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """PPO's clipped surrogate (Schulman et al., 2017, equation 7), negated.

    Args:
        logits: float ``(rows, actions)``.
        actions: see `log_probabilities_of`.
        old_log_probabilities: float ``(rows,)``, under the policy that chose the actions.
        advantages: float ``(rows,)``.
        clip: how far the ratio of the probabilities counts, the paper's epsilon.

    Returns:
        The loss, a scalar that is a mean over rows, and the entropy of each row's policy, float
        ``(rows,)``.
    """
    chosen, entropy = log_probabilities_of(logits, actions)
    ratio = torch.exp(chosen - old_log_probabilities)
    surrogate = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    return -surrogate.mean(), entropy


def symlog(values: torch.Tensor) -> torch.Tensor:
    """``sign(v) log(1 + |v|)``: returns of empty and of crowded clusters on one scale.

    After Hafner et al., *Mastering diverse domains through world models*, 2023, equation 9.
    """
    return values.sign() * values.abs().log1p()


def symexp(values: torch.Tensor) -> torch.Tensor:
    """The inverse of `symlog`; values of more than 30 count as 30."""
    return values.sign() * values.abs().clamp(max=30.0).expm1()
