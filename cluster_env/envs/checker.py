"""Checks that a cluster environment keeps its promises."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import data_equivalence
from numpy.typing import NDArray

from cluster_env.core.invariants import ScheduleFault, check_schedule
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Purpose, generator
from cluster_env.core.world import World
from cluster_env.envs.cluster import ClusterEnv

# How often an allowed action is chosen rather than any, one episode after the other.
_EAGERNESS = (0.8, 0.3, 0.0, 1.0)


class CheckError(AssertionError):
    """An environment breaks a promise; the message says which, and when."""


def require(promise: bool, message: str) -> None:
    """Raises `CheckError` with the message unless a promise is kept."""
    if not promise:
        raise CheckError(message)


@dataclass(frozen=True)
class Moment:
    """What is known between two decisions; the schedule is that of the jobs that have arrived."""

    mask: NDArray[np.int8]  # (num_actions,)
    time: int
    schedule: Schedule
    terminated: bool = False
    truncated: bool = False

    @property
    def num_placed(self) -> int:
        """Number of jobs that have a start."""
        return int((self.schedule.start >= 0).sum())


StepRule = Callable[[Any, Moment, Moment, int, float, str], None]
"""Raises `CheckError` where a step breaks a rule of its world; called with the environment, the
moments before and after the step, the action, the reward, and words that say where."""


def check_cluster_env(
    env: gymnasium.Env[Any, Any],
    num_episodes: int = 4,
    seed: int = 0,
    step_rule: StepRule | None = None,
) -> None:
    """Plays some episodes and checks what `ClusterEnv` promises, whatever the world.

    * The same seed gives the same episode, observation by observation.
    * Every observation lies in the observation space, and a mask in it is that of the info, as is
      that of `action_masks`.
    * The clock never goes back, and rewards are finite.
    * A job that has arrived stays, and one that has a start keeps it. The schedule of an ended
      episode could have happened (`cluster_env.core.invariants`); so no more is in use than there
      is.
    * An episode that ends by itself has finished all jobs, unless the world may lose some
      (`Environments.loses_jobs`).
    * In a world with a `max_time`, an episode is truncated if and only if the clock has passed it.
    * The return of an episode that finishes all jobs is what the objective promises, unless the
      world says otherwise (`Environments.returns_cost`).

    Args:
        env: a `ClusterEnv`, or wrappers around one that change neither action nor reward.
        num_episodes: episodes to play.
        seed: run seed of the jobsets and of the actions.
        step_rule: checks what a step of this world promises beside.

    Raises:
        CheckError: at the first promise that is broken.
    """
    core = env.unwrapped
    if not isinstance(core, ClusterEnv):
        raise CheckError(f"a ClusterEnv is expected, but {type(core).__name__} was given")
    _check_repeats(env, seed)
    rng = generator(seed, Purpose.POLICY)
    observation, info = env.reset(seed=seed)
    for episode in range(num_episodes):
        if episode:
            observation, info = env.reset()
        _check_view(env, observation, info)
        eagerness = _EAGERNESS[episode % len(_EAGERNESS)]
        _play(env, core, info, rng, eagerness, step_rule)


def _play(
    env: gymnasium.Env[Any, Any],
    core: ClusterEnv,
    info: dict[str, Any],
    rng: np.random.Generator,
    eagerness: float,
    step_rule: StepRule | None,
) -> None:
    """Plays one episode and checks every step of it."""
    before = _moment(core, info)
    total = 0.0
    while True:
        action = _choose(before.mask, rng, eagerness)
        observation, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        after = replace(_moment(core, info), terminated=terminated, truncated=truncated)
        where = f"(action {action} at time {before.time})"
        _check_view(env, observation, info)
        # What has happened stays: jobs that have arrived, and their starts.
        known = before.schedule.start
        require(after.schedule.start.size >= known.size, f"a job that had arrived is gone {where}")
        kept = (known < 0) | (known == after.schedule.start[: known.size])
        require(bool(kept.all()), f"a job that was booked is booked anew {where}")
        require(bool(np.isfinite(float(reward))), f"the reward is {reward} {where}")
        _check_clock(core.world, before, after, where)
        if step_rule is not None:
            step_rule(core, before, after, action, float(reward), where)
        if terminated or truncated:
            break
        before = after
    _check_outcome(core, after, total)


def _moment(core: ClusterEnv, info: dict[str, Any]) -> Moment:
    require("action_mask" in info and "time" in info, "info lacks 'action_mask' or 'time'")
    mask = np.asarray(info["action_mask"])
    num_actions = core.world.num_actions
    if mask.shape != (num_actions,) or mask.dtype != np.int8 or not np.isin(mask, (0, 1)).all():
        # Not by `require`: to write a mask out takes longer than to play the step.
        raise CheckError(
            f"the mask must be int8 ({num_actions},) of zeros and ones, but it is {mask!r}"
        )
    require(
        np.array_equal(core.action_masks(), mask == 1),
        "the mask of action_masks() is not the one in the info",
    )
    return Moment(mask.copy(), int(info["time"]), core.schedule())


def _choose(mask: NDArray[np.int8], rng: np.random.Generator, eagerness: float) -> int:
    allowed = np.flatnonzero(mask[:-1])
    if allowed.size and rng.random() < eagerness:
        return int(rng.choice(allowed))
    return int(rng.integers(mask.size))


def _check_view(env: gymnasium.Env[Any, Any], observation: Any, info: dict[str, Any]) -> None:
    require(
        env.observation_space.contains(observation),
        "an observation lies outside the observation space",
    )
    if isinstance(observation, dict) and "action_mask" in observation:
        require(
            np.array_equal(observation["action_mask"], info["action_mask"]),
            "the mask in the observation is not the one in the info",
        )


def _check_clock(world: World, before: Moment, after: Moment, where: str) -> None:
    require(after.time >= before.time, f"the clock goes back {where}")
    both = after.terminated and after.truncated
    require(not both, f"an episode is terminated and truncated {where}")
    max_time = getattr(world, "max_time", None)
    if max_time is not None:
        early = after.truncated and after.time < max_time
        require(not early, f"an episode is truncated before max_time {where}")
        ended = after.terminated or after.truncated
        require(ended or after.time <= max_time, f"max_time is ignored {where}")


def _check_outcome(core: ClusterEnv, last: Moment, total: float) -> None:
    """Checks the schedule of an ended episode, and its return against what the schedule costs."""
    jobset, environments = core.jobset, core.setup.task.spec.environments
    assert jobset is not None
    may_lose = last.truncated or environments.loses_jobs(core.world)
    complete_until = None if may_lose else int(last.schedule.end[0])
    try:
        check_schedule(last.schedule, [jobset], complete_until)
    except ScheduleFault as fault:
        raise CheckError(f"the schedule of an ended episode is wrong: {fault}") from fault
    all_done = last.schedule.finished.sum() == jobset.num_jobs
    if all_done and environments.returns_cost(core.world):
        cost = float(core.setup.task.objective.cost_of_episodes(last.schedule)[0])
        expected = -core.reward_scale * cost
        require(
            abs(total - expected) <= 1e-9 * max(1.0, abs(expected)),
            f"the return is {total!r}, but the schedule is worth {expected!r}",
        )


def _check_repeats(env: gymnasium.Env[Any, Any], seed: int) -> None:
    """Plays the beginning of an episode twice."""
    first, second = (_beginning(env, seed) for _ in range(2))
    for step, (one, other) in enumerate(zip(first, second, strict=True)):
        require(
            data_equivalence(one, other, exact=True),
            f"the same seed and actions give something else at step {step}",
        )


def _beginning(env: gymnasium.Env[Any, Any], seed: int, num_steps: int = 40) -> list[Any]:
    rng = generator(seed, Purpose.POLICY)
    observation, info = env.reset(seed=seed)
    seen: list[Any] = [(deepcopy(observation), deepcopy(info))]
    for _ in range(num_steps):
        action = _choose(info["action_mask"], rng, eagerness=0.5)
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((deepcopy(observation), reward, terminated, truncated, deepcopy(info)))
        if terminated or truncated:
            break
    return seen
