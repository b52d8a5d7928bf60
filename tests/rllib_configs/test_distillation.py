"""Targets from compared actions, and the fit to them, by hand on a table of logits."""

import numpy as np
import pytest
import torch

from rllib_configs.learning.distillation import Targets, fit, targets_of

ACTIONS = np.array([[2, 0, 1], [1, 3, -1], [0, 1, 2]], np.int32)


def test_the_target_is_the_best_of_what_is_certain_and_counts_by_what_is_lost() -> None:
    gains = np.array([[0.0, 4.0, 6.0], [0.0, -3.0, 0.0], [0.0, 1.0, -1.0]])
    errors = np.array([[0.0, 1.0, 4.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    found = targets_of(ACTIONS, gains, errors, 4, threshold=2.0)
    # 4 is certain, 6 is not; 3 is certainly lost; nothing is certain in the last row.
    assert found.probability.argmax(axis=1).tolist() == [0, 1, 0]
    assert found.probability.sum(axis=1) == pytest.approx([1, 1, 1])
    weight = np.sqrt([4.0, 3.0, 0.0])
    assert found.weight == pytest.approx(2 * weight / weight.sum())
    smooth = targets_of(ACTIONS, gains, errors, 4, threshold=2.0, smoothing=0.3)
    assert smooth.probability[0] == pytest.approx([0.8, 0.1, 0.1, 0.0])
    assert smooth.probability[1] == pytest.approx([0.0, 0.85, 0.0, 0.15])
    sure = targets_of(ACTIONS, gains, errors, 4, threshold=1.0)
    assert sure.probability.argmax(axis=1).tolist() == [1, 1, 0]


class Table(torch.nn.Module):
    """A logit for each action, the same in all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor([0.0, 0.0, -1e9]))

    def shown(self) -> torch.Tensor:
        return self.logits.expand(2, 3)


@pytest.mark.parametrize("stay", [0.0, 0.05, 10.0])
def test_the_fit_is_the_minimum_of_its_loss_and_leaves_the_module(stay: float) -> None:
    """Weights 1.5 and 0.5 for either action: the logits differ by d with p = sigmoid(d)."""
    targets = Targets(np.eye(3, dtype=np.float32)[:2], np.array([1.5, 0.5], np.float32))
    table = Table()
    found = fit(table, table.shown, targets, steps=800, lr=0.02, temperature=0.5, stay=stay)
    assert table.logits.tolist() == [0.0, 0.0, -1e9]
    assert found.is_finite
    assert found.loss_before == pytest.approx(np.log(2), rel=1e-5)
    assert found.loss < found.loss_before
    half = float(found.parameters[0] - found.parameters[1]) / 2
    # The derivative of 0.75 ln(1 + e^-4h) + 0.25 ln(1 + e^4h) + 2 stay h^2 by h is 0.
    p = 1 / (1 + np.exp(-4 * half))
    assert -3 * (1 - p) + p + 4 * stay * half == pytest.approx(0, abs=5e-3)
    assert half > 0
