"""Units of jobsets of one task, and the episodes of a unit."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.core.task import Task
from cluster_env.core.world import World
from rllib_configs.networks.sampling import Sampler
from rllib_configs.runners.rollout import Rollouts, rollout
from rllib_configs.schema import ExperimentConfig


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
    """

    def __init__(self, experiment: ExperimentConfig) -> None:
        self._experiment = experiment
        task = experiment.task.build(seed=experiment.seed)
        self.task: Task = task
        short = getattr(task.workload, "with_short_windows", None)
        self._first_task = task if short is None else replace(task, workload=short())
        self._fixed_jobsets: dict[int, JobSet] = {}

    def __call__(self, unit: SampleUnit, policy: Sampler) -> Rollouts:
        """Samples the episodes of a unit."""
        training = self._experiment.training
        keys = episode_keys(
            self._experiment.seed,
            Split.TRAIN,
            unit.iteration,
            unit.index,
            count=len(unit.jobsets) * training.episodes_per_jobset,
        )
        world = training.world_at(self.task.world, unit.iteration)
        jobsets, each = self._jobsets(unit), training.episodes_per_jobset
        found = rollout(world, policy, jobsets, self.task.objective, each, keys)
        return without_overruled(world, found)

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

    The last one may have fewer.
    """
    training = experiment.training
    first = iteration * training.jobsets if training.fresh_jobsets else 0
    last, size = first + training.jobsets, training.jobsets_per_unit
    return [
        SampleUnit(index, iteration, tuple(range(start, min(start + size, last))))
        for index, start in enumerate(range(first, last, size))
    ]


def episode_sums(rollouts: Rollouts) -> dict[str, float]:
    """What metrics of episodes are made of, so that units can be added up."""
    returns = np.bincount(rollouts.row, rollouts.rewards, rollouts.row_jobset.size)
    best = np.full(int(rollouts.row_jobset.max()) + 1, -np.inf)
    np.maximum.at(best, rollouts.row_jobset, returns)
    outcome = rollouts.outcome
    return {
        "decisions": rollouts.num_rows,
        "episodes": rollouts.num_episodes,
        "deciders": returns.size,
        "returns": float(returns.sum()),
        "jobsets": best.size,
        "best": float(best.sum()),
        "headline": float(outcome["headline_sum"].sum()),
        "headline_count": int(outcome["headline_count"].sum()),
        "unfinished": int(outcome["num_unfinished"].sum()),
    }


def without_overruled(world: World, rollouts: Rollouts) -> Rollouts:
    """Rollouts whose decisions count as certain where the static scheduler took them instead."""
    hybrid: Any = world
    if not getattr(hybrid, "hybrid", 0.0):
        return rollouts
    learned = np.where(hybrid.overruled(rollouts.time), 0, rollouts.log_probabilities)
    return replace(rollouts, log_probabilities=learned.astype(np.float32))
