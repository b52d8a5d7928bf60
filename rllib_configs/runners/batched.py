"""RLlib env runner that samples whole units of episodes and keeps no state between calls."""

import traceback
from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
import ray
import torch
from numpy.typing import NDArray
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from cluster_env.core.cluster import Cluster
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.simulators.code import CodeLayout
from cluster_env.simulators.timeline import TimelineSimulator
from cluster_env.workloads import sample_jobsets
from rllib_configs.modules import make_sampler
from rllib_configs.runners.rollout import Rollouts, rollout


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


@dataclass(frozen=True)
class SampleRequest:
    """A call to a runner: everything that its answer depends on.

    Attributes:
        units: what to sample.
        weights: the module's state, or a reference to it in Ray's object store.
        version: counts the updates of the weights.
    """

    units: tuple[SampleUnit, ...]
    weights: Any
    version: int


@dataclass(frozen=True, eq=False)
class SampleResult:
    """A runner's answer.

    Attributes:
        rollouts: by index of the unit.
        version: of the weights that were used.
        seconds: time that sampling took.
        error: traceback of a fault in the program, else None. An exception that left the runner
            would restart it instead of being shown.
    """

    rollouts: dict[int, Rollouts]
    version: int
    seconds: float
    error: str | None = None


class BatchedEnvRunner(EnvRunner, Checkpointable):
    """Samples with the compiled simulator, hundreds of episodes side by side.

    It needs neither connectors nor episode objects, and holds neither a random state nor weights
    that anything depends on, so it can be lost and replaced at any time.
    """

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        torch.set_num_threads(1)
        self.spaces = kwargs.get("spaces")
        self._experiment = config.experiment
        task = self._experiment.task
        self._workload = task.build_workload()
        self._first_workload = task.with_short_windows().build_workload()
        self._objective = task.build_objective()
        self._simulator = TimelineSimulator(task.cluster.build(), task.build_rules(), task.max_time)
        self._fixed_jobsets: dict[int, JobSet] = {}
        self._weights_seq_no = 0
        self.module: Any = None
        self.make_module()

    def make_module(self) -> None:
        """Builds the policy; its weights come with each request."""
        spec = self.config.get_default_rl_module_spec()
        spec.observation_space, spec.action_space = spaces_of(self._simulator.cluster)
        self.module = spec.build()

    def sample(self, *, request: SampleRequest, **kwargs: Any) -> SampleResult:
        """Samples the units of a request."""
        started = perf_counter()
        try:
            weights = request.weights
            self.module.set_state(
                ray.get(weights) if isinstance(weights, ray.ObjectRef) else weights
            )
            self._weights_seq_no = request.version
            sampler = make_sampler(self._experiment, self.module.get_state())
            rollouts = {unit.index: self._rollout(unit, sampler) for unit in request.units}
        except Exception:
            return SampleResult({}, request.version, 0.0, traceback.format_exc())
        return SampleResult(rollouts, request.version, perf_counter() - started)

    def _rollout(self, unit: SampleUnit, sampler: Any) -> Rollouts:
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
            sampler,
            self._jobsets(unit),
            self._objective,
            training.episodes_per_jobset,
            keys,
        )

    def _jobsets(self, unit: SampleUnit) -> list[JobSet]:
        seed, training = self._experiment.seed, self._experiment.training
        if training.fresh_jobsets:
            early = unit.iteration < training.short_first * training.iterations
            workload = self._first_workload if early else self._workload
            return sample_jobsets(workload, seed, Split.TRAIN, unit.jobsets)
        missing = [i for i in unit.jobsets if i not in self._fixed_jobsets]
        drawn = sample_jobsets(self._workload, seed, Split.TRAIN, missing)
        self._fixed_jobsets.update(zip(missing, drawn, strict=True))
        return [self._fixed_jobsets[i] for i in unit.jobsets]

    def get_spaces(self) -> dict[str, tuple[gym.Space, gym.Space]]:
        """Spaces of the codes and actions."""
        spaces = spaces_of(self._simulator.cluster)
        return {
            INPUT_ENV_SPACES: spaces,
            INPUT_ENV_SINGLE_SPACES: spaces,
            DEFAULT_MODULE_ID: spaces,
        }

    def get_metrics(self) -> Any:
        """Metrics come with the results; the algorithm logs them."""
        return self.metrics.reduce()

    def assert_healthy(self) -> None:
        """Fails where the constructor did not get to its end."""
        assert self.module is not None

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The module's weights, for RLlib's tools; nothing that sampling depends on."""
        if not self._check_component(COMPONENT_RL_MODULE, components, not_components):
            return {}
        return {
            COMPONENT_RL_MODULE: self.module.get_state(),
            WEIGHTS_SEQ_NO: self._weights_seq_no,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over weights, whatever their number: an older checkpoint may be restored."""
        if COMPONENT_RL_MODULE not in state:
            return
        weights = state[COMPONENT_RL_MODULE]
        if isinstance(weights, ray.ObjectRef):
            weights = ray.get(weights)
        self.module.set_state(weights.get(DEFAULT_MODULE_ID, weights))
        self._weights_seq_no = state.get(WEIGHTS_SEQ_NO, 0)

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What builds this runner again."""
        return (), {"config": self.config}

    def get_checkpointable_components(self) -> list[tuple[str, Any]]:
        """The module; its weights are the learner's."""
        return [(COMPONENT_RL_MODULE, self.module)]

    def stop(self) -> None:
        """Nothing to release."""


def spaces_of(cluster: Cluster) -> tuple[gym.Space, gym.Space]:
    """Spaces of the codes and the actions of a cluster."""
    size = CodeLayout(cluster).size
    observation: gym.Space[NDArray[np.uint8]] = gym.spaces.Box(0, 255, (size,), np.uint8)
    return observation, gym.spaces.Discrete(cluster.num_actions)
