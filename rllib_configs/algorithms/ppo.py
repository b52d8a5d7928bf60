"""PPO on batched rollouts, with the other episodes of a jobset as the baseline."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns as Names

from cluster_env.core.seeding import Purpose, generator
from rllib_configs.algorithms.batched import (
    WEIGHTS,
    BatchedAlgorithm,
    BatchedConfig,
    Columns,
    GradientLearner,
    module_weights,
)
from rllib_configs.learning.advantages import advantages_by_clock, equalize
from rllib_configs.learning.losses import clipped_loss, symlog
from rllib_configs.learning.optimizers import Adam
from rllib_configs.networks import make_sampler
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from rllib_configs.runners.rollout import Rollouts


class BatchedPPOConfig(BatchedConfig):
    """Config of `BatchedPPO`."""

    def __init__(self, algo_class: type["BatchedPPO"] | None = None) -> None:
        super().__init__(algo_class=algo_class or BatchedPPO)

    def get_default_learner_class(self) -> type["BatchedPPOLearner"]:
        """See `BatchedPPOLearner`."""
        return BatchedPPOLearner


class BatchedPPOLearner(GradientLearner):
    """Adam on the clipped surrogate; learning rate and entropy bonus fall with the run."""

    def build(self) -> None:
        """Starts at the beginning of the schedules."""
        super().build()
        self._left = 1.0

    def set_left(self, left: float) -> None:
        """Says which share of the run is left, from 1 to 0."""
        self._left = left

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Adam with the experiment's learning rate."""
        parameters = self.get_parameters(self._module[module_id])
        lr = self.config.experiment.training.lr
        self.register_optimizer(
            module_id=module_id,
            optimizer=Adam(parameters, lr, betas=(0.9, 0.99), fused=True),
            params=parameters,
            lr_or_lr_schedule=lr,
        )

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Sets the learning rate, also after a checkpoint has brought back another one."""
        training = self.config.experiment.training
        lr = training.lr * (training.lr_end_share + (1 - training.lr_end_share) * self._left)
        for optimizer in self._optimizer_parameters:
            for group in optimizer.param_groups:
                group["lr"] = lr

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: dict[str, Any], fwd_out: dict[str, Any]
    ) -> torch.Tensor:
        """Mean over the rows of this learner's share."""
        training = self.config.experiment.training
        loss, entropy = clipped_loss(
            fwd_out[Names.ACTION_DIST_INPUTS],
            batch[Names.ACTIONS],
            batch[Names.ACTION_LOGP],
            batch[WEIGHTS],
            training.clip,
        )
        self.metrics.log_value((module_id, "entropy"), entropy.mean().item(), window=1)
        loss = loss - training.entropy * self._left * entropy.mean()
        if not training.critic:
            return loss
        targets = symlog(batch[Names.VALUE_TARGETS] / self._critic_scale(module_id))
        missed = ((fwd_out[Names.VF_PREDS] - targets) ** 2).mean()
        self.metrics.log_value((module_id, "critic_loss"), missed.item(), window=1)
        return loss + 0.5 * missed

    def _critic_scale(self, module_id: str) -> torch.Tensor:
        scale: torch.Tensor = self.module[module_id].unwrapped().network.critic_scale
        return scale


def _set_critic_scale(learner: BatchedPPOLearner, scale: float) -> None:
    """Keeps the critic's part of the gradient small beside the policy's, whatever the rewards are.

    It is part of the weights from then on, so that a run resumes with the one that it had.
    """
    learner.module[DEFAULT_MODULE_ID].unwrapped().network.critic_scale.fill_(max(scale, 1e-6))


class BatchedPPO(BatchedAlgorithm):
    """Several passes over the decisions of an iteration, in minibatches."""

    @classmethod
    def get_default_config(cls) -> BatchedPPOConfig:
        """See `rllib_configs.schema.TrainingSection`."""
        return BatchedPPOConfig()

    def batches(self, rollouts: Rollouts) -> Iterator[tuple[Columns, int]]:
        """Each pass in an order of its own, which depends on seed, iteration and pass alone.

        Decisions with only one allowed action, two thirds of them, have no gradient and are left
        out: their log-probability is exactly 0.
        """
        experiment = self.config.experiment
        training = experiment.training
        left = max(0.0, 1.0 - self.iteration / training.iterations)
        self.learner_group.foreach_learner(partial(BatchedPPOLearner.set_left, left=left))
        advantages, targets = self._weigh(rollouts)
        open_rows = np.flatnonzero(rollouts.log_probabilities < 0)
        if open_rows.size < training.minibatches * max(1, self.config.num_learners):
            return  # nothing was left to chance
        episode = rollouts.episode[open_rows]
        # A long episode has more rows, and would outvote the others.
        advantages = advantages[open_rows] / rollouts.outcome["weight"][episode]
        columns = {
            Names.OBS: rollouts.states[open_rows],
            Names.ACTIONS: rollouts.actions[open_rows],
            Names.ACTION_LOGP: rollouts.log_probabilities[open_rows],
            WEIGHTS: equalize(advantages, rollouts.jobset[episode], training.equalize).astype(
                np.float32
            ),
        }
        if training.critic:
            columns[Names.VALUE_TARGETS] = targets[open_rows].astype(np.float32)
        size = -(-open_rows.size // (training.minibatches * max(1, self.config.num_learners)))
        for epoch in range(training.epochs):
            rng = generator(experiment.seed, Purpose.SHUFFLE, self.iteration, epoch)
            order = rng.permutation(open_rows.size)
            yield {name: column[order] for name, column in columns.items()}, size

    def _weigh(self, rollouts: Rollouts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Advantages and the critic's targets, float64 ``(rows,)`` each."""
        experiment = self.config.experiment
        training = experiment.training
        values = np.zeros(rollouts.num_rows)
        if training.critic and self.iteration == 0:
            _, returns = self._advantages(rollouts, values, 1.0)
            scale = float(np.abs(returns).mean())
            self.learner_group.foreach_learner(partial(_set_critic_scale, scale=scale))
        if training.critic:
            sampler = make_sampler(experiment, module_weights(self))
            assert isinstance(sampler, SetScorerSampler)
            values = sampler.values(rollouts.states)
        return self._advantages(rollouts, values, training.gae_lambda if training.critic else 1.0)

    def _advantages(
        self, rollouts: Rollouts, values: NDArray[np.float64], trace: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        training = self.config.experiment.training
        return advantages_by_clock(
            rollouts.rewards,
            values,
            rollouts.row,
            rollouts.time,
            rollouts.row_jobset,
            training.gamma,
            trace,
            training.discount_per,
        )
