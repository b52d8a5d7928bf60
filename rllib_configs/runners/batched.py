"""Runner that samples whole units of episodes of one task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
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
    """Samples with the compiled simulator, hundreds of episodes side by side."""

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        task = self._experiment.task
        self._workload = task.build_workload()
        self._first_workload = task.with_short_windows().build_workload()
        self._objective = task.build_objective()
        self._simulator = DeepRMSimulator(self._cluster, task.build_rules(), task.max_time)
        self._fixed_jobsets: dict[int, JobSet] = {}

    def prepare(self, weights: Mapping[str, NDArray[np.float32]]) -> Sampler:
        """The policy."""
        return make_sampler(self._experiment, weights)

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
            self._simulator,
            prepared,
            self._jobsets(unit),
            self._objective,
            training.episodes_per_jobset,
            keys,
        )

    def _jobsets(self, unit: SampleUnit) -> list[JobSet]:
        seed, training = self._experiment.seed, self._experiment.training
        if training.fresh_jobsets:
            early = unit.iteration < training.window_curriculum * training.iterations
            workload = self._first_workload if early else self._workload
            return sample_jobsets(workload, seed, Split.TRAIN, unit.jobsets)
        missing = [i for i in unit.jobsets if i not in self._fixed_jobsets]
        drawn = sample_jobsets(self._workload, seed, Split.TRAIN, missing)
        self._fixed_jobsets.update(zip(missing, drawn, strict=True))
        return [self._fixed_jobsets[i] for i in unit.jobsets]
