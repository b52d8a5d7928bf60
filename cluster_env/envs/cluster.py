"""Worlds with one decider as Gymnasium environments."""

from collections.abc import Mapping
from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from cluster_env.core.batch import served
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy, choose
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import spec_of
from cluster_env.envs.episodes import JobsetStream, require_jobs, require_one_agent
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


class ClusterEnv(gymnasium.Env[Any, np.int64]):
    """Which waiting job starts next, in any world whose episodes have one decider.

    This says what holds in all worlds. The class of a world says the rest of its decision process:
    what a state holds, what an action does and when time passes, the bounds of rewards, and how an
    episode ends; see `DeepRM`, `HPC` and `Accrual` in `cluster_env.worlds`.

    **Action.** ``Discrete(num_actions)``: one for each item that the agent sees, a slot or a place
    in the queue. The last action, void, takes none.

    **Observation.** Chosen by name; each is a function of the same state. ``state``: the integers
    of the state itself. ``features``: a dict of what networks see, see `Features`. ``flat``: the
    same in one row, float32. Worlds add their own, such as DeepRM's ``image``. With
    `mask_in_observation`, a dict of ``observations`` and ``action_mask``.

    **Mask.** ``info["action_mask"]``, int8 ``(num_actions,)`` of zeros and ones, as
    ``action_space.sample(mask)`` takes it. ``allowed``: the actions that do something, and void
    where it is possible; worlds have others by name. The same mask stands where other libraries
    look for it: in the observation (RLlib) and in `action_masks` (sb3-contrib). A world says what
    an action outside the mask does; but where the mask forbids void, the first action inside it is
    taken instead. So algorithms without masks cannot stall an episode, either.

    **Reward.** The undiscounted return of an episode that finishes all jobs is minus what its
    schedule costs under the objective, `Objective.cost_of_episodes`, times `reward_scale`. Costs
    make rewards negative; an objective with a gain, such as ``utility`` or ``utilization``, makes
    them positive.

    **Episode.** One jobset with at least one job; a workload's empty jobsets are passed over. It is
    *terminated* when all is decided and done, and *truncated* when the clock passes the world's
    ``max_time``. ``info["time"]`` is the clock.

    **Seeding.** ``reset(seed=s)`` plays the first training jobset of run seed s, every further
    ``reset()`` the next one. ``reset(options={"jobset": jobset})`` plays a given one instead, and
    leaves the order of the others as it is. Nothing else is random.

    **Versions.** An environment whose behavior changes gets a new id: ``DeepRM-v0``, ``HPC-v0``.

    Args:
        world: what is acted in, or its options with ``kind``, or the name of its kind.
        workload: where jobsets come from, or options of the world's first workload such as
            ``{"load": 1.1}``, with ``kind`` of another one; the default one if not given.
        objective: name of an objective, or an `Objective`.
        observation: name of an observation of the world; by default its first.
        mask: name of a mask of the world; by default its first.
        mask_in_observation: whether the mask is part of the observation too.
        reward_scale: factor of all rewards, above 0.
        render_mode: ``rgb_array`` or None; not all worlds have pictures.

    Raises:
        InputError: for an unknown name or a value out of range.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's way

    def __init__(
        self,
        *,
        world: WorldOption = "deeprm",
        workload: WorkloadOption = None,
        objective: str | Objective = "slowdown",
        observation: str | None = None,
        mask: str | None = None,
        mask_in_observation: bool = False,
        reward_scale: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        self.setup = Setup.of(
            world, workload, objective, observation, mask, mask_in_observation=mask_in_observation
        )
        self.reward_scale = require_reward_scale(reward_scale)
        self.world = self.setup.task.world
        self.simulator = self.world.simulator()
        self._row, self._rewards = np.zeros(1, np.int32), np.zeros(1)
        self._masks = np.ones((1, self.world.num_actions), np.bool_)
        self.observation_space = self.setup.view.observation_space
        self.action_space = self.setup.view.action_space
        if self.setup.task.spec.environments.draw is None:  # a world without pictures says so
            self.metadata = {**self.metadata, "render_modes": []}
        self.render_mode = require_render_mode(render_mode, self.metadata["render_modes"])
        self.jobset: JobSet | None = None
        self._stream: JobsetStream | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins the next episode; the class says what seed and options mean.

        Raises:
            InputError: for an unknown option, or a given jobset without a job, or with one that
                cannot run in this world.
        """
        given = given_option(options, "jobset")
        if given is not None:
            require_jobs(self.world, given)
        super().reset(seed=None if seed is None else require_seed(seed))
        if seed is not None or self._stream is None:
            run_seed = int(seed if seed is not None else self.np_random.integers(2**31))
            self._stream = JobsetStream(self.setup.task.workload, run_seed)
        self.jobset = served(self.world, self._stream.draw() if given is None else given)
        self.simulator.load([self.jobset], self.setup.task.objective)
        require_one_agent(self.simulator, 1)
        return self._look()

    def step(self, action: np.int64 | int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one decision: an item, or the last action for void.

        Returns observation, reward, whether the episode is terminated, whether it is truncated,
        and info.

        Raises:
            InputError: if there is no such action.
            ResetNeeded: if no episode is under way.
        """
        if self.jobset is None or not self.simulator.active[0]:
            raise ResetNeeded("no episode is under way; call reset first")
        last = self.world.num_actions - 1
        try:
            chosen = index(action)  # also a numpy array without a dimension, as policies return it
        except TypeError as error:
            wrong = shortened(repr(action))
            raise InputError(
                f"an action must be a whole number in 0..{last}, but {wrong} was given"
            ) from error
        if not 0 <= chosen <= last:
            raise InputError(f"an action must lie in 0..{last}, but {chosen} was given")
        taken = followed(np.asarray([chosen], np.int32), self._masks)
        self.simulator.step(self._row, taken, self._rewards)
        ended, truncated = not self.simulator.active[0], bool(self.simulator.truncated[0])
        observation, info = self._look()
        reward = self.reward_scale * float(self._rewards[0])
        return observation, reward, ended and not truncated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """Draws the state, uint8 ``(height, width, 3)``."""
        draw = spec_of(self.world).environments.draw
        if self.render_mode is None or draw is None:
            return None
        if self.jobset is None:
            raise ResetNeeded("there is nothing to draw yet; call reset first")
        return draw(self.simulator, 0)

    def choose(self, policy: Policy) -> np.int64:
        """The action of a policy in the present state; a rule may look at the whole queue.

        Random numbers, if the policy needs any, come from the environment's own generator.

        Raises:
            ResetNeeded: if no episode is under way.
        """
        if self.jobset is None or not self.simulator.active[0]:
            raise ResetNeeded("no episode is under way; call reset first")
        uniforms = self.np_random.random(1)
        return np.int64(choose(policy, self.simulator, self._row, uniforms)[0])

    def action_masks(self) -> NDArray[np.bool_]:
        """The mask of the info, bool ``(num_actions,)``, for sb3-contrib's MaskablePPO."""
        if self.jobset is None:
            raise ResetNeeded("there is no mask yet; call reset first")
        return self.setup.view.masks(self.simulator.states)[0]

    def schedule(self) -> Schedule:
        """What has become of the jobs that have arrived in this episode."""
        if self.jobset is None:
            raise ResetNeeded("there is no schedule yet; call reset first")
        return self.simulator.schedule()

    def _look(self) -> tuple[Any, dict[str, Any]]:
        buffer = self.setup.view.buffer(1)
        mask = self.setup.view.look(self.simulator.states, buffer)
        self._masks = mask.astype(np.bool_)  # a copy: a caller may write into the info
        info = {"action_mask": mask[0], "time": int(self.simulator.time[0])}
        return one_of(buffer, 0), info


def given_option(options: Mapping[str, Any] | None, name: str, *others: str) -> Any:
    """Returns the option of a name, or None; no options but the named ones may be there.

    Raises:
        InputError: if there is another one.
    """
    known = (name, *others)
    for key in options or {}:
        if key not in known:
            raise InputError(f"reset takes the options {', '.join(known)}, but '{key}' was given")
    return (options or {}).get(name)
