"""Learns an advisor from a file of records, as an algorithm of RLlib like all others."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from cluster_env.core.seeding import Purpose, generator
from meta.panda.offline import RegressionData, regression_data, regression_loss
from meta.panda.records import Records
from rllib_configs.algorithms.batched import (
    AdamLearner,
    UnitAlgorithm,
    Vector,
    module_weights,
)
from rllib_configs.algorithms.config import BatchedConfig
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.flat import flat_gradient, load_flat
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays


@dataclass(frozen=True)
class RecordsUnit:
    """All records: there is one unit, so that no number depends on how many runners there are."""

    index: int = 0


@dataclass(frozen=True)
class OfflineStep:
    """An update; its consumers are drawn by the iteration of the run and its number in it."""

    iteration: int
    number: int


class OfflineWork:
    """See `UpdateWork`; what is kept saves time and changes no number."""

    def __init__(self, experiment: ExperimentConfig, module: Any) -> None:
        self._experiment, self._module = experiment, module
        self._read: tuple[RegressionData, dict[str, float]] | None = None

    def set_weights(self, weights: Arrays) -> None:
        """Takes the weights that learning goes on from."""
        self._module.set_state(dict(weights))

    def play(self, unit: RecordsUnit) -> tuple[Part, RegressionData]:
        """Reads the records; nothing is played."""
        if self._read is None:
            training = self._experiment.training
            records = Records.read(training.records)
            rewards = {"mean": float(records.reward.mean()), "best": float(records.reward.max())}
            self._read = regression_data(records, training.sharpness), rewards
        data, rewards = self._read
        return Part(sums=rewards), data

    def set_parameters(self, parameters: Vector) -> None:
        """Takes the parameters that gradients are computed at."""
        load_flat(self._module, parameters)

    def gradient(self, rows: RegressionData, step: OfflineStep) -> Part:
        """Of the loss of one batch."""
        seed = self._experiment.seed
        rng: np.random.Generator = generator(seed, Purpose.SHUFFLE, step.iteration, step.number)
        loss = regression_loss(self._module.network, rows, rng)
        return Part(flat_gradient(loss, self._module), {"loss": loss.item()})


class Offline(UnitAlgorithm):
    """Regression on recorded weights that did well; see `meta.panda.offline.regression_data`."""

    def training_step(self) -> None:
        """Some steps of Adam; each is one round trip, weights out and a gradient in."""
        started = perf_counter()
        iteration = self.begin([RecordsUnit()], module_weights(self))
        gathered = iteration.play()
        read, losses, parameters = perf_counter(), [], self.parameters()
        for number in range(self.config.experiment.training.steps):
            part = iteration.step(OfflineStep(self.iteration, number), parameters).part
            parameters = self.learn(part.gradient).parameters
            losses.append(part.sums["loss"])
        skipped = self.count_skipped()
        ended = perf_counter()
        self.log_iteration(
            {
                "train/return_mean": gathered.part.sums["mean"],
                "train/return_max": gathered.part.sums["best"],
                "train/loss": float(np.mean(losses)),
                **skipped,
                "time/sample_s": read - started,
                "time/runner_s": gathered.runner_s,
                "time/learn_s": ended - read,
                "time/iteration_s": ended - started,
            }
        )


class OfflineConfig(BatchedConfig):
    """Config of `Offline`; options are those of `meta.panda.options.OfflineOptions`."""

    algorithm_class = Offline
    default_learner = AdamLearner

    def make_work(self, module: Any) -> OfflineWork:
        """See `OfflineWork`."""
        return OfflineWork(self.experiment, module)
