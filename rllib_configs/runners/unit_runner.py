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
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from cluster_env.core.world import World
from rllib_configs.runners.episodes import EpisodePlayer, episodes_of, log_episodes, spaces_of
from rllib_configs.runners.rollout import Rollouts
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
        self._player: EpisodePlayer | None = None
        self._at_end = config.callback("on_episode_end")
        if self._at_end and not config.in_evaluation:
            self._work.sampler.on_rollouts = self._end_episodes_of

    def make_module(self) -> None:
        """Builds the policy; its weights come with each request."""
        spec = self.config.get_default_rl_module_spec()
        # RLlib asks the env for them, and there is none.
        spec.observation_space, spec.action_space = spaces_of(self._world)
        self.module = spec.build()

    def sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool | None = None,
        force_reset: bool = False,
        **kwargs: Any,
    ) -> list[SingleAgentEpisode]:
        """Plays whole episodes of validation jobsets, one after the other, as RLlib's runners do.

        Training does not need it: there, runners answer requests. Where several agents decide in an
        episode, each gets an episode of its own. See `rllib_configs.runners.episodes`.

        Args:
            num_timesteps: how many decisions at least, if no number of episodes is given.
            num_episodes: how many; by default one.
            explore: whether actions are drawn; else the likeliest is taken. By default as the
                config says. Policies that were found by a search always take the best.
            force_reset: whether to begin again with the runner's first jobset.
            kwargs: of RLlib's, which have no effect.
        """
        if force_reset:
            self.start_over()
        if self._player is None:
            self._player = EpisodePlayer(self.config, self.worker_index, self.num_workers)
        explore = self.config.explore if explore is None else explore
        num_steps = 0 if num_episodes is not None else num_timesteps
        episodes = self._player.play(self.module.get_state(), explore, num_episodes, num_steps)
        for episode in episodes:
            self.end_episode(episode)
        log_episodes(self.metrics, episodes)
        return episodes

    def start_over(self) -> None:
        """Has the next episodes begin with the runner's first jobset."""
        self._player = None

    def end_episode(self, episode: SingleAgentEpisode) -> None:
        """Calls what RLlib's users have do something at the end of each episode."""
        for callback in self._at_end:
            callback(
                episode=episode,
                prev_episode_chunks=[],
                env_runner=self,
                metrics_logger=self.metrics,
                env=None,
                env_index=0,
                rl_module=self.module,
            )

    def answer(self, request: Request) -> Answer:
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

    def _end_episodes_of(self, rollouts: Rollouts) -> None:
        for episode in episodes_of(rollouts, self._world):
            self.end_episode(episode)

    def get_spaces(self) -> dict[str, tuple[gym.Space[Any], gym.Space[Any]]]:
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
