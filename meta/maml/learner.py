"""Learner of MAML: Adam along outer gradients, and what the run sets beside them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID

from meta.maml.module import MetaSetScorerModule
from rllib_configs.algorithms.batched import AdamLearner


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
