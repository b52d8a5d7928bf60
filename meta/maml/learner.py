"""Learner of MAML: Adam along outer gradients, and what the run sets beside them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID

from meta.maml.module import MetaSetScorerModule
from rllib_configs.algorithms.batched import AdamLearner

HIGHEST_COEFFICIENT = 0.1
LOWEST_COEFFICIENT = 1e-4  # above 0, so that a factor brings it up again
_GAIN = 0.2  # of the controller; from 0.02 to the highest takes eight iterations


def next_coefficient(coefficient: float, entropy: float, target: float) -> float:
    """The entropy bonus of the next iteration.

    It is multiplied where the entropy is below the target and divided where it is above, by more
    the further it is away, and stays within `LOWEST_COEFFICIENT` and `HIGHEST_COEFFICIENT`; 0 for
    a target of 0.

    Args:
        coefficient: of this iteration.
        entropy: mean over the decisions of this iteration's last stages, in nats.
        target: what the entropy should be.
    """
    if target <= 0:
        return 0.0
    missing = min(1.0, max(-1.0, (target - entropy) / target))
    changed = coefficient * math.exp(_GAIN * missing)
    return min(HIGHEST_COEFFICIENT, max(LOWEST_COEFFICIENT, changed))


class MAMLLearner(AdamLearner):
    """Adam on the outer loss; inner rates have a learning rate of their own."""

    def groups(self, parameters: list[torch.nn.Parameter]) -> list[dict[str, Any]]:
        """See `UnitLearner`; rates are what has no dimensions."""
        rates = [each for each in parameters if each.ndim == 0]
        weights = [each for each in parameters if each.ndim > 0]
        groups: list[dict[str, Any]] = [{"params": weights, "scale": 1.0}]
        if rates:
            groups.append({"params": rates, "scale": self.config.experiment.training.rates_lr})
        return groups

    def set_entropy_coefficient(self, value: float) -> None:
        """Sets the bonus for entropy; it is part of the weights."""
        self._meta_module.entropy_coefficient.fill_(value)

    def go_back(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Takes earlier weights, and forgets what Adam has gathered since."""
        self._meta_module.set_state(dict(weights))
        for optimizer in self._optimizer_parameters:
            optimizer.state.clear()

    @property
    def _meta_module(self) -> MetaSetScorerModule:
        found: MetaSetScorerModule = self.module[DEFAULT_MODULE_ID].unwrapped()
        return found
