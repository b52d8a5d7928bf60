"""RLlib env runner that answers requests for units of work and keeps nothing between them."""

import traceback
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

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

from cluster_env.core.world import World


class Unit(Protocol):
    """Work whose answer is the same wherever it is done."""

    @property
    def index(self) -> int:
        """Place of the unit in its iteration."""


@dataclass(frozen=True)
class SampleRequest:
    """A call to a runner: everything that its answer depends on.

    Attributes:
        units: what to do.
        weights: the module's state, or a reference to it in Ray's object store.
        version: counts the updates of the weights.
    """

    units: tuple[Any, ...]
    weights: Any
    version: int


@dataclass(frozen=True, eq=False)
class SampleResult:
    """A runner's answer.

    Attributes:
        answers: by index of the unit.
        version: of the weights that were used.
        seconds: time that it took.
        fetch_s: part of it in which the weights came.
        error: traceback of a fault in the program, else None. An exception that left the runner
            would restart it instead of being shown.
    """

    answers: dict[int, Any]
    version: int
    seconds: float
    error: str | None = None
    fetch_s: float = 0.0


class UnitEnvRunner(EnvRunner, Checkpointable):
    """What RLlib asks of an env runner, around `answer`.

    It needs neither connectors nor episode objects, and holds neither a random state nor weights
    that anything depends on, so it can be lost and replaced at any time.
    """

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        torch.set_num_threads(1)
        self.spaces = kwargs.get("spaces")
        self._experiment = config.experiment
        self._world: World = self._experiment.task.build_world()
        self._weights_seq_no = 0
        self.module: Any = None
        self.make_module()

    def prepare(self, weights: Mapping[str, NDArray[np.float32]]) -> Any:
        """Makes of a request's weights what `answer` wants of them; here, themselves."""
        return weights

    @abstractmethod
    def answer(self, unit: Any, prepared: Any) -> Any:
        """Does the work of a unit.

        Args:
            unit: what to do.
            prepared: what `prepare` made of the weights; nothing else may decide what comes out.
        """

    def make_module(self) -> None:
        """Builds the policy; its weights come with each request."""
        spec = self.config.get_default_rl_module_spec()
        # RLlib asks the env for them, and there is none.
        spec.observation_space, spec.action_space = spaces_of(self._world)
        self.module = spec.build()

    def sample(self, *, request: SampleRequest, **kwargs: Any) -> SampleResult:
        """Answers the units of a request."""
        started = perf_counter()
        try:
            weights = request.weights
            self.module.set_state(
                ray.get(weights) if isinstance(weights, ray.ObjectRef) else weights
            )
            self._weights_seq_no = request.version
            fetch_s = perf_counter() - started
            prepared = self.prepare(self.module.get_state())
            answers = {unit.index: self.answer(unit, prepared) for unit in request.units}
        except Exception:
            return SampleResult({}, request.version, 0.0, traceback.format_exc())
        took = perf_counter() - started
        return SampleResult(answers, request.version, took, fetch_s=fetch_s)

    def get_spaces(self) -> dict[str, tuple[gym.Space, gym.Space]]:
        """Spaces of the states and actions."""
        spaces = spaces_of(self._world)
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


def spaces_of(world: World) -> tuple[gym.Space, gym.Space]:
    """Spaces of the states and the actions of a world."""
    return world.state_space, gym.spaces.Discrete(world.num_actions)
