"""REINFORCE as DeepRM uses it (section 3.3, figure 3), on RLlib's new API stack."""

from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns as Names
from ray.rllib.core.rl_module.rl_module import RLModule

from rllib_configs.algorithms.batched import (
    UnitAlgorithm,
    UnitLearner,
    episode_metrics,
    episode_sums,
    module_weights,
)
from rllib_configs.algorithms.config import BatchedConfig
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.advantages import returns_to_go, subtract_decision_baseline
from rllib_configs.learning.flat import flat_gradient
from rllib_configs.learning.losses import policy_gradient_loss
from rllib_configs.learning.optimizers import RootMeanSquare
from rllib_configs.networks.registry import make_sampler
from rllib_configs.networks.sampling import Sampler
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.runners.sampling import SampleUnit, UnitSampler, iteration_units
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays


class ReinforceWork:
    """Samples the episodes of a unit, and answers with their gradient; see `UnitWork`.

    The baseline of figure 3 is over the episodes of a jobset, and those are in one unit, so nothing
    has to be known of the others, no row is kept, and the one update needs no second round.
    """

    def __init__(self, experiment: ExperimentConfig, module: Any) -> None:
        self._experiment, self._module = experiment, module
        self.sampler = UnitSampler(experiment)
        self.expect = self.sampler.expect
        self._policy: Sampler

    def set_weights(self, weights: Arrays) -> None:
        """Takes the weights for both."""
        self._policy = make_sampler(self._experiment, weights, self.sampler.task.world)
        self._module.set_state(dict(weights))

    def play(self, unit: SampleUnit) -> tuple[Part, None]:
        """Samples a unit, and sums up over its decisions.

        As in figure 3 the gradient is a plain sum; RMSProp takes no notice of its scale.
        """
        started = perf_counter()
        rollouts = self.sampler(unit, self._policy)
        sampled = perf_counter()
        logits = self._module.forward_train({Names.OBS: torch.from_numpy(rollouts.states)})
        loss, entropy = policy_gradient_loss(
            logits[Names.ACTION_DIST_INPUTS],
            torch.from_numpy(rollouts.actions),
            torch.from_numpy(self.advantages(rollouts).astype(np.float32)),
        )
        gradient = flat_gradient(loss, self._module)
        sums = {
            **episode_sums(rollouts),
            "entropy": float(entropy.sum()),
            "sample_s": sampled - started,
            "gradient_s": perf_counter() - sampled,
        }
        return Part(gradient, sums), None

    def advantages(self, rollouts: Rollouts) -> NDArray[np.float64]:
        """What each decision is weighed by, float64 ``(rows,)``; from one unit's episodes."""
        training = self._experiment.training
        returns = returns_to_go(
            rollouts.rewards,
            rollouts.row,
            rollouts.row_jobset.size,
            training.gamma,
            rollouts.time,
            training.discount_per,
        )
        return subtract_decision_baseline(
            returns, rollouts.row, rollouts.decision, rollouts.row_jobset
        )


class ReinforceLearner(UnitLearner):
    """RMSProp with the experiment's settings."""

    def make_optimizer(self, groups: list[dict[str, Any]]) -> RootMeanSquare:
        """See `RootMeanSquare`."""
        training = self.config.experiment.training
        return RootMeanSquare(groups, training.lr, training.rmsprop_decay, training.rmsprop_eps)

    def set_options(self, lr: float) -> None:
        """Sets all of them: a checkpoint may have brought back others, as in a population."""
        training = self.config.experiment.training
        super().set_options(lr)
        for optimizer in self._optimizer_parameters:
            for group in optimizer.param_groups:
                group |= {"decay": training.rmsprop_decay, "eps": training.rmsprop_eps}


class Reinforce(UnitAlgorithm):
    """One update from all episodes of an iteration."""

    def training_step(self) -> None:
        """Units sample and answer with gradients; the learner steps along their sum."""
        started = perf_counter()
        units = iteration_units(self.config.experiment, self.iteration)
        gathered = self.begin(units, module_weights(self)).play()
        answered = perf_counter()
        updated = self.learn(gathered.part.gradient)
        skipped = self.count_skipped()
        learned = perf_counter()
        sums = gathered.part.sums
        # Both happen side by side on all runners: what they took together is divided as they did.
        share = sums["sample_s"] / (sums["sample_s"] + sums["gradient_s"])
        sample_s = share * (answered - started)
        self.log_iteration(
            {
                **episode_metrics(sums, self.headline),
                **skipped,
                "train/entropy": sums["entropy"] / sums["decisions"],
                "train/gradient_norm": updated.norm,
                "time/sample_s": sample_s,
                "time/runner_s": gathered.runner_s,
                "time/learn_s": learned - started - sample_s,
                "time/iteration_s": learned - started,
            },
            decisions=int(sums["decisions"]),
            episodes=int(sums["episodes"]),
        )


class ReinforceConfig(BatchedConfig):
    """Config of `Reinforce`."""

    algorithm_class = Reinforce
    default_learner = ReinforceLearner
    samples_episodes = True

    def make_work(self, module: RLModule) -> ReinforceWork:
        """See `ReinforceWork`."""
        return ReinforceWork(self.experiment, module)
