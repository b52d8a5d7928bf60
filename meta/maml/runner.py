"""Runner that samples tasks, adapts to them and samples again."""

from dataclasses import dataclass
from typing import Any

from cluster_env.core.task import Task
from meta.maml.module import split_weights
from meta.maml.options import maml_options
from meta.maml.stages import StageSampler
from meta.maml.steps import Parameters
from meta.tasks import get_distribution, training_tasks
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays
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


class MetaWork:
    """Plays all stages of tasks; see `rllib_configs.runners.units.UnitWork`."""

    def __init__(self, experiment: ExperimentConfig) -> None:
        self._distribution = get_distribution(experiment.training.family)
        self._tasks = training_tasks(self._distribution, experiment.seed)
        self._stages = StageSampler(experiment.training, maml_options(experiment), experiment.seed)
        self._given: tuple[Parameters, Parameters]

    def begin(self, weights: Arrays) -> None:
        """Takes parameters and rates."""
        self._given = split_weights(weights)

    def play(self, unit: MetaUnit) -> tuple[Part, None]:
        """Samples all stages of a task."""
        sample = self._stages.play(
            self._task(unit),
            *self._given,
            num_steps=unit.num_steps,
            iteration=unit.iteration,
            index=unit.index,
        )
        return Part(apart={unit.index: sample}), None

    def take(self, parameters: Any) -> None:
        """Learners have all tasks."""

    def gradient(self, rows: None, step: Any) -> Part:
        """See `take`."""
        raise NotImplementedError("learners compute the gradients of tasks")

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
