"""RLlib env runner that does units of work where it is, and answers with sums."""

import traceback
from collections.abc import Collection
from time import perf_counter
from typing import Any

import gymnasium as gym
import ray
import torch
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from cluster_env.core.world import World
from rllib_configs.runners.sums import Part, merged
from rllib_configs.runners.units import (
    Answer,
    FunctionWork,
    Request,
    Round,
    UnitWork,
    WeightsMissingError,
)


class UnitEnvRunner(EnvRunner, Checkpointable):
    """What RLlib asks of an env runner, around an algorithm's `UnitWork`.

    It needs neither connectors nor episode objects. The rows that it keeps for an iteration can be
    had again anywhere, so it can be lost and replaced at any time.
    """

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        torch.set_num_threads(1)
        self.spaces = kwargs.get("spaces")
        self._world: World = config.experiment.task.world
        self._weights_seq_no = 0
        self.module: Any = None
        self.make_module()
        self._work: Any = config.make_work(self.module)  # an `UpdateWork`, where updates follow
        self._iteration: int | None = None
        self._current: UnitWork | FunctionWork = self._work  # of the iteration
        self._rows: dict[int, Any] = {}

    def make_module(self) -> None:
        """Builds the policy; its weights come with each request."""
        spec = self.config.get_default_rl_module_spec()
        # RLlib asks the env for them, and there is none.
        spec.observation_space, spec.action_space = spaces_of(self._world)
        self.module = spec.build()

    def sample(self, *, request: Request, **kwargs: Any) -> Answer:
        """Does the units of a request.

        Raises:
            WeightsMissingError: if it was not given the weights of the iteration.
        """
        started = perf_counter()
        if request.round.start is None and request.round.iteration != self._iteration:
            raise WeightsMissingError(f"env runner {self.worker_index} has started anew")
        try:
            self._prepare(request.round)
            if expect := getattr(self._current, "expect", None):
                expect([] if request.round.step is not None else list(request.units.values()))
            parts = {
                (0, place): self.run(unit, request.round.step)
                for place, unit in request.units.items()
            }
            parts = merged(parts, request.round.count)
        except Exception:
            self._iteration = None
            return Answer({}, 0.0, traceback.format_exc())
        return Answer(parts, perf_counter() - started)

    def run(self, unit: Any, step: Any) -> Part:
        """Plays a unit, or computes its part of an update."""
        if step is None or unit.index not in self._rows:
            part, self._rows[unit.index] = self._current.play(unit)
            if step is None:
                return part
        return self._work.gradient(self._rows[unit.index], step)

    def _prepare(self, given: Round) -> None:
        if given.iteration != self._iteration:
            self._rows.clear()
            start = _fetched(given.start)
            if isinstance(start, FunctionWork):
                self._current = start
            else:
                self._current = self._work
                self._work.set_weights(start)
            self._iteration = given.iteration
        if given.step is not None:
            self._work.set_parameters(_fetched(given.parameters))

    def get_spaces(self) -> dict[str, tuple[gym.Space, gym.Space]]:
        """Spaces of the states and actions."""
        spaces = spaces_of(self._world)
        return {
            INPUT_ENV_SPACES: spaces,
            INPUT_ENV_SINGLE_SPACES: spaces,
            DEFAULT_MODULE_ID: spaces,
        }

    def get_metrics(self) -> Any:
        """Metrics come with the answers; the algorithm logs them."""
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
        """The module's weights, for RLlib's tools; nothing that an answer depends on."""
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
        weights = _fetched(state[COMPONENT_RL_MODULE])
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


def _fetched(weights: Any) -> Any:
    return ray.get(weights) if isinstance(weights, ray.ObjectRef) else weights


def spaces_of(world: World) -> tuple[gym.Space, gym.Space]:
    """Spaces of the states and the actions of a world."""
    return world.state_space, gym.spaces.Discrete(world.num_actions)
