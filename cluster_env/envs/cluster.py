"""DeepRM's cluster as a Gymnasium environment."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import spec_of
from cluster_env.envs.episodes import JobsetStream, require_one_agent
from cluster_env.envs.setup import (
    Setup,
    WorkloadOption,
    WorldOption,
    require_render_mode,
    require_seed,
)
from cluster_env.envs.view import one_of
from cluster_env.objectives import Objective


class ClusterEnv(gymnasium.Env[Any, np.int64]):
    """Which waiting job starts next, after DeepRM (Mao et al., HotNets 2016, section 3).

    Jobs arrive in the course of time, each with a duration and a demand of every resource. The
    first `num_slots` waiting jobs stand in slots that the agent sees; more wait in the backlog and
    move up in the order of their arrival.

    **Action.** ``Discrete(num_slots + 1)``. Action ``a < num_slots`` books the job of slot ``a`` at
    the earliest time step of the horizon from which all its demands fit until it is done. The last
    action, void, books nothing.

    **Clock.** A booking takes no time: the agent decides again in the same time step. Void, an
    empty slot, or a job that fits nowhere in the horizon lets one time step pass: finished jobs
    leave, then new jobs arrive, then the agent decides.

    **Observation.** Chosen by name; all are functions of the same state. ``image``: uint8
    ``(horizon, width)`` of zeros and ones, 20 x 223 by default, the paper's figure 2. ``compact``:
    float32 ``(71,)`` by default, free units, slots and backlog unscaled. ``slots``: a dict of
    ``slots``, float32 ``(num_slots, 11 + num_resources)``, and ``context``, float32
    ``(horizon * num_resources + 3,)``, all in [0, 1]. ``state``: uint8 ``(83,)`` by default, what
    the other three are computed from. Where the cluster has more than one class of jobs, ``slots``
    and ``state`` show the class of each, with `num_classes` numbers more or one byte more for each
    slot; ``image`` and ``compact`` do not show it. With `mask_in_observation`, a dict of
    ``observations`` and ``action_mask``.

    **Mask.** ``info["action_mask"]``, int8 ``(num_slots + 1,)`` of zeros and ones, as
    ``action_space.sample(mask)`` wants it. ``placeable``: the jobs that can be placed in the
    horizon, that is, exactly the slots whose action books something. ``start_now``: the jobs that
    would start in the present time step. ``live``: the same, but where nothing runs, something
    could and nothing has arrived for 10 steps, void is forbidden. It is allowed everywhere else.
    Actions outside the mask are carried out as described above. The same mask stands where other
    libraries look for it: in the observation (RLlib) and in `action_masks` (sb3-contrib).
    ``info["time"]`` is the clock.

    **Reward.** 0 for a booking. For a time step, with the default objective ``slowdown``, minus the
    sum of 1 / duration over all jobs in the system (booked, in a slot or in the backlog); it lies
    in [-jobs in the system, 0], and the undiscounted return of an episode that finishes all jobs
    is exactly minus the sum of their slowdowns (section 3.2). `cluster_env.objectives` has the
    other objectives with their identities; of them, ``utilization`` rewards in [0, 1], and all
    others at most 0. The released code's rules charge a step for the jobs
    in the system after it and let some finished jobs linger; the identity is theirs no more.

    **Episode.** One jobset. It is *terminated* when the arrival window is over and all jobs have
    finished (with the rule ``no_new_job``: when the window is over), and *truncated* when the
    clock passes `max_time`. Under the paper's rules no job is ever lost.

    **Seeding.** ``reset(seed=s)`` plays the first training jobset of run seed s, every further
    ``reset()`` the next one. ``reset(options={"jobset": jobset})`` plays a given one instead, and
    leaves the order of the others as it is. Nothing else is random.

    **Version history.** ``DeepRM-v0``: the paper's rules. ``DeepRMReleased-v0``: the released
    code's rules (`paper` and `released` in the world's folder), no arrival in step 0, `max_time`
    200.

    Args:
        world: what is acted in, or its options with ``kind``, or the name of its kind. What is said
            above of actions, observations, masks and rewards holds for a `DeepRM`; other worlds say
            it of theirs.
        workload: where jobsets come from, or options of the world's first workload such as
            ``{"load": 1.1}``, with ``kind`` of another one; the default one if not given.
        objective: name of an objective, or an `Objective`.
        observation: ``image``, ``compact``, ``slots`` or ``state``; by default the world's first.
        mask: ``placeable``, ``start_now`` or ``live``; by default the world's first.
        mask_in_observation: whether the mask is part of the observation too.
        render_mode: ``rgb_array`` or None.

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
        render_mode: str | None = None,
    ) -> None:
        self.setup = Setup.of(
            world=world,
            workload=workload,
            objective=objective,
            observation=observation,
            mask=mask,
            mask_in_observation=mask_in_observation,
        )
        self.world = self.setup.task.world
        self.simulator = self.world.simulator()
        self._row, self._rewards = np.zeros(1, np.int32), np.zeros(1)
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
        """Begins the next episode.

        Args:
            seed: run seed; the order of jobsets begins anew.
            options: ``{"jobset": jobset}`` plays that one.

        Returns:
            Observation and info.

        Raises:
            InputError: for an option that is unknown, or a job that cannot run on this cluster.
        """
        given = given_option(options, "jobset")
        super().reset(seed=None if seed is None else require_seed(seed))
        if seed is not None or self._stream is None:
            run_seed = int(seed if seed is not None else self.np_random.integers(2**31))
            self._stream = JobsetStream(self.setup.task.workload, run_seed)
        self.jobset = self._stream.draw() if given is None else given
        self.simulator.load([self.jobset], self.setup.task.objective)
        require_one_agent(self.simulator, 1)
        return self._look()

    def step(self, action: np.int64 | int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one decision.

        Args:
            action: a slot, or `num_slots` for void.

        Returns:
            Observation, reward, whether the episode is terminated, whether it is truncated, info.

        Raises:
            InputError: if there is no such action.
            ResetNeeded: if no episode is under way.
        """
        if self.jobset is None or not self.simulator.active[0]:
            raise ResetNeeded("no episode is under way; call reset first")
        if not 0 <= action < self.world.num_actions:
            last = self.world.num_actions - 1
            raise InputError(f"an action must lie in 0..{last}, but {action} was given")
        self.simulator.step(self._row, np.asarray([action], np.int32), self._rewards)
        ended, truncated = not self.simulator.active[0], bool(self.simulator.truncated[0])
        observation, info = self._look()
        return observation, float(self._rewards[0]), ended and not truncated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """Draws the state as in the paper's figure 2, uint8 ``(height, width, 3)``."""
        draw = spec_of(self.world).environments.draw
        if self.render_mode is None or draw is None:
            return None
        if self.jobset is None:
            raise ResetNeeded("there is nothing to draw yet; call reset first")
        return draw(self.simulator, 0)

    def action_masks(self) -> NDArray[np.bool_]:
        """The mask of the present state, bool ``(num_slots + 1,)``; the same as in the info.

        sb3-contrib's MaskablePPO calls this method, through wrappers and its own vector
        environments.
        """
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
            raise InputError(f"reset knows the options {', '.join(known)}, but '{key}' was given")
    return (options or {}).get(name)
