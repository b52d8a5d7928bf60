"""What MAML has its runners do: play the stages of a task, and take outer gradients from them."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.world import World
from meta.maml.gradients import TaskGradients, task_gradients
from meta.maml.module import MetaSetScorerModule, split_weights
from meta.maml.options import maml_options
from meta.maml.stages import StageSampler, TaskSample
from meta.maml.steps import Parameters
from meta.tasks import get_distribution, training_tasks, warmup_of
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.flat import flat_parameters, load_flat
from rllib_configs.networks.registry import FeatureNames, network_named
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays


@dataclass(frozen=True)
class MetaUnit:
    """A task of an iteration.

    Attributes:
        index: place of the task in its iteration.
        iteration: iteration that it belongs to, for the random streams.
        task: index of the task in the training split.
        base: whether it is the family's base task, with the jobsets of that index.
    """

    index: int
    iteration: int
    task: int
    num_steps: int
    base: bool


@dataclass(frozen=True)
class OuterStep:
    """An update, whose gradient is that of the mean over some tasks."""

    num_tasks: int  # with decisions to make and without


class MetaWork:
    """See `rllib_configs.runners.units.UpdateWork`.

    The decisions of all stages of a task stay where it was played; the driver gets scores and
    gradients.
    """

    def __init__(self, experiment: ExperimentConfig, module: MetaSetScorerModule) -> None:
        self._experiment, self._module = experiment, module
        self._distribution = get_distribution(experiment.training.family)
        self._tasks = training_tasks(self._distribution, experiment.seed)
        self._stages = StageSampler(
            *(experiment.training, maml_options(experiment), experiment.seed),
            warmup_of(self._distribution),
        )
        self._networks: dict[FeatureNames, nn.Module] = {}
        self._start: tuple[Parameters, Parameters]  # parameters and rates of the iteration
        self._gradients: TaskGradients

    def set_weights(self, weights: Arrays) -> None:
        """Takes parameters and rates, and the bonus for entropy."""
        # A copy, because outer gradients are taken at parameters that change.
        self._start = split_weights(weights)
        self._module.set_state(dict(weights))
        self._gradients = task_gradients(self._experiment, self._module, self._network)

    def play(self, unit: MetaUnit) -> tuple[Part, TaskSample]:
        """Samples all stages of a task."""
        started, task = perf_counter(), self._tasks.task(unit.task)
        if unit.base:
            task = self._distribution.base.build(task.name, task.seed)
        sample = self._stages.play(
            task, *self._start, num_steps=unit.num_steps, iteration=unit.iteration, index=unit.index
        )
        times = {"adapt_s": sample.adapt_s, "stages_s": perf_counter() - started}
        return Part(sums=times, per_unit={unit.index: sample.scores}), sample

    def set_parameters(self, parameters: NDArray[np.float32]) -> None:
        """Takes the parameters and rates that outer gradients are computed at."""
        load_flat(self._module, parameters)

    def gradient(self, rows: TaskSample, step: OuterStep) -> Part:
        """The task's part of the mean over an update's tasks."""
        outer = self._gradients(rows)
        # A task without decisions counts in the mean, and says nothing of entropies and norms.
        if outer is None:
            nothing = np.zeros_like(flat_parameters(self._module))
            return Part(nothing, {"tasks": 0.0, "entropy": 0.0, "inner_norm": 0.0})
        return Part(
            outer.flat / np.float32(step.num_tasks),
            {"tasks": 1.0, "entropy": outer.entropy, "inner_norm": outer.inner_norm},
        )

    def _network(self, world: World) -> nn.Module:
        """A network for the features of a world; its own parameters are not used."""
        names = world.feature_names
        if names not in self._networks:
            training = self._experiment.training
            network = network_named(training.network).scorer(training, names)
            if isinstance(network, SetScorer):  # else PyTorch's, which is derived twice
                network.compiled = training.order == "first"
            self._networks[names] = network
        return self._networks[names]


def iteration_tasks(experiment: ExperimentConfig, iteration: int) -> list[MetaUnit]:
    """The tasks of an iteration, new ones in each, whatever the number of runners."""
    meta = experiment.training
    base = is_warm_up(experiment, iteration)
    return [
        MetaUnit(
            index=index,
            iteration=iteration,
            task=iteration * meta.tasks + index,
            num_steps=0 if base else meta.inner_steps,
            base=base,
        )
        for index in range(meta.tasks)
    ]


def is_warm_up(experiment: ExperimentConfig, iteration: int) -> bool:
    """Whether an iteration learns the base task alone."""
    return iteration < experiment.training.warm_up * experiment.training.iterations
