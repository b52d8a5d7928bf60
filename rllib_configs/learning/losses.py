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
