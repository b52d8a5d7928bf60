"""REINFORCE as DeepRM uses it (section 3.3, figure 3), on RLlib's new API stack."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns as Names

from rllib_configs.algorithms.batched import (
    WEIGHTS,
    BatchedAlgorithm,
    BatchedConfig,
    Columns,
    GradientLearner,
)
from rllib_configs.learning.advantages import returns_to_go, subtract_decision_baseline
from rllib_configs.learning.losses import policy_gradient_loss
from rllib_configs.learning.optimizers import RootMeanSquare
from rllib_configs.runners.rollout import Rollouts


class ReinforceConfig(BatchedConfig):
    """Config of `Reinforce`."""

    def __init__(self, algo_class: type["Reinforce"] | None = None) -> None:
        super().__init__(algo_class=algo_class or Reinforce)

    def get_default_learner_class(self) -> type["ReinforceLearner"]:
        """See `ReinforceLearner`."""
        return ReinforceLearner


class ReinforceLearner(GradientLearner):
    """One update per batch; rows are decisions, weighted by the driver."""

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """RMSProp with the experiment's settings."""
        training = self.config.experiment.training
        parameters = self.get_parameters(self._module[module_id])
        self.register_optimizer(
            module_id=module_id,
            optimizer=RootMeanSquare(
                parameters, training.lr, training.rmsprop_decay, training.rmsprop_eps
            ),
            params=parameters,
            lr_or_lr_schedule=training.lr,
        )

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Sets what a checkpoint may have brought back with other values, as in a population."""
        training = self.config.experiment.training
        for optimizer in self._optimizer_parameters:
            for group in optimizer.param_groups:
                group |= {
                    "lr": training.lr,
                    "decay": training.rmsprop_decay,
                    "eps": training.rmsprop_eps,
                }

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: dict[str, Any], fwd_out: dict[str, Any]
    ) -> torch.Tensor:
        """Sum over the rows of this learner's share.

        As in figure 3 the gradient is a plain sum over all decisions; RMSProp takes no notice of
        its scale. RLlib averages gradients over learners, hence the factor.
        """
        loss, entropy = policy_gradient_loss(
            fwd_out[Names.ACTION_DIST_INPUTS], batch[Names.ACTIONS], batch[WEIGHTS]
        )
        self.metrics.log_value((module_id, "entropy"), entropy.mean().item(), window=1)
        return loss * max(1, self.config.num_learners)


class Reinforce(BatchedAlgorithm):
    """One update from all episodes of an iteration."""

    @classmethod
    def get_default_config(cls) -> ReinforceConfig:
        """The paper's settings."""
        return ReinforceConfig()

    def batches(self, rollouts: Rollouts) -> Iterator[tuple[Columns, None]]:
        """All decisions, with their advantages over the same jobset's other episodes."""
        training = self.config.experiment.training
        returns = returns_to_go(
            rollouts.rewards,
            rollouts.row,
            rollouts.row_jobset.size,
            training.gamma,
            rollouts.time,
            training.discount_per,
        )
        advantages = subtract_decision_baseline(
            returns, rollouts.row, rollouts.decision, rollouts.row_jobset
        )
        yield (
            {
                Names.OBS: rollouts.states,
                Names.ACTIONS: rollouts.actions,
                WEIGHTS: advantages.astype(np.float32),
            },
            None,
        )
