"""PPO on batched rollouts, with the other episodes of a jobset as the baseline."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModule

from rllib_configs.algorithms.batched import (
    AdamLearner,
    UnitAlgorithm,
    episode_metrics,
    module_weights,
)
from rllib_configs.algorithms.config import BatchedConfig
from rllib_configs.algorithms.ppo_units import PPOStep, PPOWork, UnitRows
from rllib_configs.learning.equalizing import Equalizer, Spreads
from rllib_configs.runners.dispatch import Gathered, Iteration
from rllib_configs.runners.sampling import iteration_units
from rllib_configs.runners.sums import Part


class BatchedPPO(UnitAlgorithm):
    """Several passes over the decisions of an iteration, in minibatches."""

    def training_step(self) -> None:
        """Units sample; then each update is one round trip, weights out and gradients in."""
        started = perf_counter()
        iteration = self._begun()
        gathered = iteration.play()
        sampled = perf_counter()
        learned = self._learn(iteration, gathered)
        skipped = self.count_skipped()
        ended = perf_counter()
        sums = gathered.part.sums
        self.log_iteration(
            {
                **episode_metrics(sums, self.headline),
                **learned,
                **skipped,
                "time/sample_s": sampled - started,
                "time/runner_s": gathered.runner_s,
                "time/learn_s": ended - sampled,
                "time/iteration_s": ended - started,
            },
            decisions=int(sums["decisions"]),
            episodes=int(sums["episodes"]),
        )

    def _begun(self) -> Iteration:
        """The rounds of this iteration; in a run's first one, the critic's scale is set before."""
        experiment = self.config.experiment
        units = iteration_units(experiment, self.iteration)
        if experiment.training.critic and self.iteration == 0:
            # The same episodes will be played again, with values on that scale.
            sums = self.begin(units, module_weights(self)).play().part.sums
            scale = max(sums["returns_to_go"] / sums["decisions"], 1e-6)
            # It keeps the critic's part of the gradient small beside the policy's, whatever the
            # rewards are. It is part of the weights from then on, so that a resumed run has it.
            self.on_learner(
                lambda learner: (
                    learner.module[DEFAULT_MODULE_ID].unwrapped().network.critic_scale.fill_(scale)
                )
            )
        return self.begin(units, module_weights(self))

    def _learn(self, iteration: Iteration, gathered: Gathered) -> dict[str, float]:
        """Makes the updates of an iteration; returns metrics of the last one."""
        training = self.config.experiment.training
        parameters = self.parameters()
        found: dict[str, float] = {}
        for step in steps_of(training, gathered.part, self.iteration, self.left):
            part = iteration.step(step, parameters).part
            updated = self.learn(part.gradient)
            parameters = updated.parameters
            found = {"train/gradient_norm": updated.norm}
            found |= {f"train/{name}": value / step.num_rows for name, value in part.sums.items()}
        return found


class PPOConfig(BatchedConfig):
    """Config of `BatchedPPO`; options are those of `rllib_configs.config.options.PPOOptions`."""

    algorithm_class = BatchedPPO
    default_learner = AdamLearner
    preset = "deeprm-ppo"
    samples_episodes = True

    def make_work(self, module: RLModule) -> PPOWork:
        """See `PPOWork`."""
        return PPOWork(self.experiment, module)


def steps_of(training: Any, played: Part, iteration: int, left: float) -> Iterator[PPOStep]:
    """The updates of an iteration, in order.

    Args:
        training: how it is learned.
        played: what the units of the iteration say.
        iteration: of the run.
        left: share of the run that is left.
    """
    units: list[UnitRows] = [unit for _, unit in sorted(played.per_unit.items())]
    if sum(unit.num_rows for unit in units) < training.minibatches:
        return  # nothing was left to chance
    count = np.concatenate([unit.spreads.count for unit in units])
    squares = np.concatenate([unit.spreads.squares for unit in units])
    equalizer = Equalizer.of(Spreads(count, squares), training.equalize)
    for epoch in range(training.epochs):
        for minibatch in range(training.minibatches):
            num_rows = sum(unit.rows_of(minibatch, training.minibatches) for unit in units)
            if num_rows:
                yield PPOStep(
                    iteration, epoch, minibatch, num_rows, equalizer, training.entropy * left
                )
