"""Runner that samples whole units of episodes of one task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.core.task import Task
from rllib_configs.networks import make_sampler
from rllib_configs.networks.sampling import Sampler
from rllib_configs.runners.rollout import Rollouts, rollout
from rllib_configs.runners.units import SampleRequest, SampleResult, UnitEnvRunner

__all__ = ["BatchedEnvRunner", "SampleRequest", "SampleResult", "SampleUnit"]


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


class BatchedEnvRunner(UnitEnvRunner):
    """Samples with compiled simulators, hundreds of episodes side by side."""

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        task = self._experiment.task.build(seed=self._experiment.seed)
        self._task: Task = task
        short = getattr(task.workload, "with_short_windows", None)
        self._first_task = task if short is None else replace(task, workload=short())
        self._fixed_jobsets: dict[int, JobSet] = {}

    def prepare(self, weights: Mapping[str, NDArray[np.float32]]) -> Sampler:
        """The policy."""
        return make_sampler(self._experiment, weights, self._task.world)

    def answer(self, unit: SampleUnit, prepared: Sampler) -> Rollouts:
        """Samples the episodes of a unit."""
        training = self._experiment.training
        keys = episode_keys(
            self._experiment.seed,
            Split.TRAIN,
            unit.iteration,
            unit.index,
            count=len(unit.jobsets) * training.episodes_per_jobset,
        )
        return rollout(
            self._task.world,
            prepared,
            self._jobsets(unit),
            self._task.objective,
            training.episodes_per_jobset,
            keys,
        )

    def _jobsets(self, unit: SampleUnit) -> list[JobSet]:
        training = self._experiment.training
        if training.fresh_jobsets:
            early = unit.iteration < training.window_curriculum * training.iterations
            task = self._first_task if early else self._task
            return task.jobsets(Split.TRAIN, unit.jobsets)
        missing = [i for i in unit.jobsets if i not in self._fixed_jobsets]
        drawn = self._task.jobsets(Split.TRAIN, missing)
        self._fixed_jobsets.update(zip(missing, drawn, strict=True))
        return [self._fixed_jobsets[i] for i in unit.jobsets]
