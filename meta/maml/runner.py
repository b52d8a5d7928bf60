"""Runner that samples tasks, adapts to them and samples again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.task import Task
from meta.maml.module import split_weights
from meta.maml.options import maml_options
from meta.maml.stages import StageSampler, TaskSample
from meta.maml.steps import Parameters
from meta.tasks import get_distribution, training_tasks
from rllib_configs.runners.units import UnitEnvRunner
from rllib_configs.schema import ExperimentConfig


@dataclass(frozen=True)
class MetaUnit:
    """A task of an iteration.

    Attributes:
        index: place of the task in its iteration.
        iteration: iteration that it belongs to, for the random streams.
        task: index of the task in the training split.
        num_steps: inner steps.
        base: whether it is the family's base task, with the jobsets of that index.
    """

    index: int
    iteration: int
    task: int
    num_steps: int
    base: bool


class BatchedMetaRunner(UnitEnvRunner):
    """Answers each unit with a `meta.maml.stages.TaskSample`."""

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        experiment: ExperimentConfig = config.experiment
        self._worker = int(kwargs.get("worker_index") or 0)
        self._distribution = get_distribution(experiment.training.family)
        self._tasks = training_tasks(self._distribution, experiment.seed)
        self._stages = StageSampler(experiment.training, maml_options(experiment), experiment.seed)

    def prepare(self, weights: Mapping[str, NDArray[np.float32]]) -> tuple[Parameters, Parameters]:
        """Parameters and rates."""
        return split_weights(weights)

    def answer(self, unit: MetaUnit, prepared: tuple[Parameters, Parameters]) -> TaskSample:
        """Samples all stages of a task."""
        parameters, rates = prepared
        return self._stages.play(
            self._task(unit),
            parameters,
            rates,
            num_steps=unit.num_steps,
            iteration=unit.iteration,
            index=unit.index,
            worker=self._worker,
        )

    def _task(self, unit: MetaUnit) -> Task:
        task = self._tasks.task(unit.task)
        if not unit.base:
            return task
        return self._distribution.base.build(task.name, task.seed)


def iteration_tasks(experiment: ExperimentConfig, iteration: int) -> list[MetaUnit]:
    """The tasks of an iteration, new ones in each, whatever the number of runners."""
    meta = experiment.training
    assert meta is not None
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
