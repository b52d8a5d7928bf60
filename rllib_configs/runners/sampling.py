"""Units of jobsets of one task, and the episodes of a unit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.task import Task
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.sampling import Sampler
from rllib_configs.runners.rollout import Rollouts, rollout, split

EPISODES = 600
"""As many are sampled side by side at most, where units are smaller; more are not faster."""


@dataclass(frozen=True)
class SampleUnit:
    """Work of a fixed shape: the same numbers come out wherever it is done.

    Attributes:
        index: place of the unit in its iteration.
        iteration: iteration that it belongs to, for the random streams.
        jobsets: indices of its jobsets in the training split.
    """

    index: int
    iteration: int
    jobsets: tuple[int, ...]


class UnitSampler:
    """Samples with compiled simulators, hundreds of episodes side by side.

    What it keeps from unit to unit saves time and changes no number.

    Attributes:
        on_rollouts: called with the episodes of each unit, if somebody wants them.
    """

    def __init__(self, experiment: ExperimentConfig) -> None:
        self._experiment = experiment
        task = experiment.task.build(seed=experiment.seed)
        self.task: Task = task
        short = getattr(task.workload, "with_short_windows", None)
        self._first_task = task if short is None else replace(task, workload=short())
        self._fixed_jobsets: dict[int, JobSet] = {}
        self._expected: Sequence[SampleUnit] = ()
        self._ahead: dict[SampleUnit, Rollouts] = {}
        self.on_rollouts: Callable[[Rollouts], None] | None = None

    def expect(self, units: Sequence[SampleUnit]) -> None:
        """Takes note of the units that are sampled next, so that some can be side by side."""
        self._expected, self._ahead = units, {}

    def __call__(self, unit: SampleUnit, policy: Sampler) -> Rollouts:
        """Samples the episodes of a unit."""
        if unit not in self._ahead:
            units = [unit]
            if getattr(policy, "by_row", False) and unit in self._expected:
                size = len(unit.jobsets) * self._experiment.training.episodes_per_jobset
                first = self._expected.index(unit)
                units = list(self._expected[first : first + max(1, EPISODES // size)])
            self._ahead = dict(zip(units, self._sample(units, policy), strict=True))
        rollouts = self._ahead.pop(unit)
        if self.on_rollouts is not None:
            self.on_rollouts(rollouts)
        return rollouts

    def _sample(self, units: Sequence[SampleUnit], policy: Sampler) -> list[Rollouts]:
        training, seed = self._experiment.training, self._experiment.seed
        each, iteration = training.episodes_per_jobset, units[0].iteration
        keys = [
            episode_keys(seed, Split.TRAIN, iteration, one.index, count=len(one.jobsets) * each)
            for one in units
        ]
        world = training.world_at(self.task.world, iteration)
        jobsets = [jobset for unit in units for jobset in self._jobsets(unit)]
        found = rollout(world, policy, jobsets, self.task.objective, each, np.concatenate(keys))
        if getattr(world, "hybrid", 0.0):  # what the static scheduler decides counts as certain
            hybrid: Any = world
            learned = np.where(hybrid.overruled(found.time), 0, found.log_probabilities)
            found = replace(found, log_probabilities=learned.astype(np.float32))
        if len(units) == 1:
            return [found]
        if not found.alone:  # the numbers of agents' rows depend on who is beside them
            return [self._sample([unit], policy)[0] for unit in units]
        return split(found, [len(unit.jobsets) for unit in units])

    def _jobsets(self, unit: SampleUnit) -> list[JobSet]:
        training = self._experiment.training
        if training.fresh_jobsets:
            early = unit.iteration < training.window_curriculum * training.iterations
            task = self._first_task if early else self.task
            return task.jobsets(Split.TRAIN, unit.jobsets)
        missing = [i for i in unit.jobsets if i not in self._fixed_jobsets]
        drawn = self.task.jobsets(Split.TRAIN, missing)
        self._fixed_jobsets.update(zip(missing, drawn, strict=True))
        return [self._fixed_jobsets[i] for i in unit.jobsets]


def iteration_units(experiment: ExperimentConfig, iteration: int) -> list[SampleUnit]:
    """Cuts the jobsets of an iteration into units, whatever the number of runners.

    The last one may have fewer. An algorithm without the option draws fresh jobsets.
    """
    training = experiment.training
    first = iteration * training.jobsets if getattr(training, "fresh_jobsets", True) else 0
    last, size = first + training.jobsets, training.jobsets_per_unit
    return [
        SampleUnit(index, iteration, tuple(range(start, min(start + size, last))))
        for index, start in enumerate(range(first, last, size))
    ]
