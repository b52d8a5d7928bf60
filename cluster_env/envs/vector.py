"""Many copies of the cluster environment, stepped by one compiled call."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import spec_of
from cluster_env.envs.cluster import ClusterEnv, given_option
from cluster_env.envs.episodes import JobsetStream, RunningEpisodes
from cluster_env.envs.setup import (
    Setup,
    WorkloadOption,
    WorldOption,
    require_render_mode,
    require_reward_scale,
    require_seed,
)
from cluster_env.envs.view import followed, one_of
from cluster_env.objectives import Objective

Infos = dict[str, Any]
Step = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Infos]


class ClusterVectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """`num_envs` environments like `ClusterEnv`, which describes the decision problem.

    **Seeding.** ``reset(seed=[s, t, ...])`` gives each environment its own run seed: it plays what
    a `ClusterEnv` with that seed plays. ``reset(seed=s)`` lets all share the run seed s:
    environment i plays its training jobsets i, i + num_envs, i + 2 num_envs, and so on, so that
    together they play what one `ClusterEnv` plays one after the other, and no two play the same.
    This is not Gymnasium's usual ``s + i``, with which two vectors of neighboring seeds share most
    of their jobsets. Without a seed, the order goes on.

    **Reset options.** ``jobsets``: for each environment a jobset to play, or None for the next one.
    ``reset_mask``: bool ``(num_envs,)``, the environments to reset.

    **Autoreset.** ``NEXT_STEP``: the step after the last one of an episode ignores the action,
    begins the next episode and has reward 0. ``SAME_STEP``: the last step begins it, and
    ``info["final_obs"]`` and ``info["final_info"]`` hold what the episode ended with.
    ``DISABLED``: the caller resets with a ``reset_mask``.

    Args:
        num_envs: number of environments.
        copy: whether each step returns new arrays; otherwise observations are written into the
            same ones each time, which is faster.

    All others are those of `ClusterEnv`.

    Raises:
        InputError: for an unknown name or a value out of range.
    """

    metadata = {  # noqa: RUF012 - Gymnasium's way
        "render_modes": ClusterEnv.metadata["render_modes"],
        "render_fps": ClusterEnv.metadata["render_fps"],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        world: WorldOption = "deeprm",
        workload: WorkloadOption = None,
        objective: str | Objective = "slowdown",
        observation: str | None = None,
        mask: str | None = None,
        mask_in_observation: bool = False,
        reward_scale: float = 1.0,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
    ) -> None:
        if num_envs < 1:
            raise InputError(f"num_envs must be 1 or larger, but {num_envs} was given")
        self.setup = Setup.of(
            world, workload, objective, observation, mask, mask_in_observation=mask_in_observation
        )
        self.reward_scale = require_reward_scale(reward_scale)
        self.num_envs = num_envs
        if self.setup.task.spec.environments.draw is None:
            self.metadata = {**self.metadata, "render_modes": []}
        self.render_mode = require_render_mode(render_mode, self.metadata["render_modes"])
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self.setup.view.observation_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = self.setup.view.action_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._episodes = RunningEpisodes(self.setup, num_envs)
        self._buffer = None if copy else self.setup.view.buffer(num_envs)
        self._ended = np.zeros(num_envs, np.bool_)
        self._began = False
        self._masks = np.ones((num_envs, self.setup.task.world.num_actions), np.bool_)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Begins the next episodes; the class says what seeds and options mean.

        Raises:
            InputError: for an option or a number of seeds or jobsets that does not fit, or a job
                that cannot run on this cluster.
            ResetNeeded: if the first reset leaves out an environment.
        """
        jobsets: Sequence[JobSet | None] | None = given_option(options, "jobsets", "reset_mask")
        if jobsets is not None and len(jobsets) != self.num_envs:
            raise InputError(f"{self.num_envs} jobsets are needed, but {len(jobsets)} were given")
        places = self._places_to_reset((options or {}).get("reset_mask"))
        if seed is not None or not self._began:
            self._seed(seed, places)
        self._episodes.begin(places, jobsets)
        self._began = True
        self._ended[places] = False
        return self._look()

    def step(self, actions: Any) -> Step:
        """Takes one decision in each environment, by whole numbers ``(num_envs,)``.

        Returns observations; rewards, float64 ``(num_envs,)``; which episodes are terminated and
        which are truncated, bool ``(num_envs,)``; infos.

        Raises:
            InputError: if an action is out of range or their number is wrong.
            ResetNeeded: if an episode is not under way and does not begin by itself.
        """
        chosen = self._checked(actions)
        if not self._began or (self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any()):
            raise ResetNeeded("an episode is not under way; call reset first")
        episodes = self._episodes
        rewards = np.empty(self.num_envs, np.float64)
        episodes.simulator.step(episodes.rows, followed(chosen, self._masks), rewards)
        rewards *= self.reward_scale
        if self.autoreset_mode is AutoresetMode.NEXT_STEP and self._ended.any():
            episodes.advance(np.flatnonzero(self._ended))
        # Only now are rows and simulator those of this step: either may be new after `advance`.
        simulator = episodes.simulator
        self._ended = ~simulator.active[episodes.rows]
        truncated = simulator.truncated[episodes.rows]
        terminated = self._ended & ~truncated
        final: Infos = {}
        # What an episode ended with is written down before the next one takes its place.
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._ended.any():
            final = self._final_infos()
            episodes.advance(np.flatnonzero(self._ended))
        observations, infos = self._look()
        return observations, rewards, terminated, truncated, {**final, **infos}

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]
        """Draws the state of each environment, uint8 ``(height, width, 3)`` each."""
        draw = spec_of(self.setup.task.world).environments.draw
        if self.render_mode is None or draw is None:
            return None
        if not self._began:
            raise ResetNeeded("there is nothing to draw yet; call reset first")
        return tuple(draw(self._episodes.simulator, int(row)) for row in self._episodes.rows)

    def _places_to_reset(self, mask: Any) -> NDArray[np.intp]:
        if mask is None:
            return np.arange(self.num_envs)
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise InputError(
                f"reset_mask must be an array of {self.num_envs} bools, at least one of them true"
            )
        if not self._began and not mask.all():
            raise ResetNeeded("the first reset must be of all environments")
        return np.flatnonzero(mask)

    def _seed(self, seed: int | Sequence[int] | None, places: NDArray[np.intp]) -> None:
        if seed is None or isinstance(seed, int | np.integer):
            shared = None if seed is None else require_seed(int(seed))
            super().reset(seed=shared)
            run_seed = int(self.np_random.integers(2**31)) if shared is None else shared
            # Environments share one order of jobsets: each takes every num_envs-th.
            streams = [(run_seed, place, self.num_envs) for place in range(self.num_envs)]
        else:
            if len(seed) != self.num_envs:
                raise InputError(f"{self.num_envs} seeds are needed, but {len(seed)} were given")
            streams = [(require_seed(own), 0, 1) for own in seed]
        for place in places:
            run_seed, first, step = streams[place]
            stream = JobsetStream(self.setup.task.workload, run_seed, first, step)
            self._episodes.draw_from(place, stream)

    def _checked(self, actions: Any) -> NDArray[np.int32]:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or not np.issubdtype(chosen.dtype, np.integer):
            raise InputError(
                f"actions must be whole numbers of the shape ({self.num_envs},), but "
                f"{chosen.dtype} of the shape {chosen.shape} were given"
            )
        last = self.setup.task.world.num_actions - 1
        if chosen.min() < 0 or chosen.max() > last:
            raise InputError(f"every action must lie in 0..{last}, but {chosen} was given")
        return chosen.astype(np.int32)

    def _look(self) -> tuple[Any, Infos]:
        view, episodes = self.setup.view, self._episodes
        buffer = view.buffer(self.num_envs) if self._buffer is None else self._buffer
        mask = view.look(episodes.states, buffer)
        self._masks = mask.astype(np.bool_)  # a copy: a caller may write into the infos
        infos = {
            "action_mask": mask,
            "_action_mask": np.ones(self.num_envs, np.bool_),
            "time": episodes.simulator.time[episodes.rows].astype(np.int64),
            "_time": np.ones(self.num_envs, np.bool_),
        }
        return buffer, infos

    def _final_infos(self) -> Infos:
        """What the episodes that have just ended end with."""
        view, simulator = self.setup.view, self._episodes.simulator
        buffer = view.buffer(self.num_envs)
        mask = view.look(self._episodes.states, buffer)
        infos: Infos = {}
        for place in np.flatnonzero(self._ended).tolist():
            info = {
                "action_mask": mask[place],
                "time": int(simulator.time[self._episodes.rows[place]]),
            }
            final = {"final_obs": one_of(buffer, place), "final_info": info}
            infos = self._add_info(infos, final, place)
        return infos
