"""Losses of policy gradients."""

import torch


def policy_gradient_loss(
    logits: torch.Tensor, actions: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss whose negative gradient is REINFORCE's update direction (DeepRM, figure 3).

    Args:
        logits: float ``(rows, actions)``.
        actions: integer ``(rows,)``.
        weights: float ``(rows,)``, advantages, or what is proportional to them.

    Returns:
        The loss, a scalar that is a sum over rows, and the entropy of each row's policy, float
        ``(rows,)``, without gradient.
    """
    log_probabilities = torch.log_softmax(logits, dim=-1)
    chosen = log_probabilities.gather(1, actions.long().unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        entropy = -(log_probabilities.exp() * log_probabilities).sum(dim=-1)
    return -(chosen * weights).sum(), entropy


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
        actions: integer ``(rows,)``.
        old_log_probabilities: float ``(rows,)``, under the policy that chose the actions.
        advantages: float ``(rows,)``.
        clip: how far the ratio of the probabilities counts, the paper's epsilon.

    Returns:
        The loss, a scalar that is a mean over rows, and the entropy of each row's policy, float
        ``(rows,)``.
    """
    log_probabilities = torch.log_softmax(logits, dim=-1)
    chosen = log_probabilities.gather(1, actions.long().unsqueeze(1)).squeeze(1)
    ratio = torch.exp(chosen - old_log_probabilities)
    surrogate = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    entropy = -(log_probabilities.exp() * log_probabilities).sum(dim=-1)
    return -surrogate.mean(), entropy


def symlog(values: torch.Tensor) -> torch.Tensor:
    """``sign(v) log(1 + |v|)``: returns of empty and of crowded clusters on one scale.

    After Hafner et al., *Mastering diverse domains through world models*, 2023, equation 9.
    """
    return values.sign() * values.abs().log1p()


def symexp(values: torch.Tensor) -> torch.Tensor:
    """The inverse of `symlog`; values of more than 30 count as 30."""
    return values.sign() * values.abs().clamp(max=30.0).expm1()
