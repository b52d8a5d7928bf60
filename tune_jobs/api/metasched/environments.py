"""Gymnasium environments."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from cluster_env.core.registry import unknown
from cluster_env.envs import ClusterEnv, ClusterVectorEnv
from cluster_env.task import Task
from metasched.arguments import require_kind

DEFAULT_ENVIRONMENT = "DeepRM-v0"


def make_env(env: str | Task = DEFAULT_ENVIRONMENT, **options: object) -> gymnasium.Env[Any, Any]:
    """Makes an environment in which one episode is played at a time.

    >>> env = make_env("DeepRM-v0", workload={"load": 1.1}, objective="slowdown")
    >>> observation, info = env.reset(seed=0)

    Args:
        env: id of an environment (`cluster_env.envs.environment_ids` lists them), or a task, whose
            world, workload and objective it then has: ``load_config("deeprm-ppo").task.build()``.
        options: those of `cluster_env.envs.ClusterEnv`, whose docstring also says what actions,
            observations and rewards are: ``world``, ``workload``, ``objective``, ``observation``,
            ``mask``, ``mask_in_observation``, ``render_mode``.

    Returns:
        With the defaults, observations uint8 ``(20, 223)``, one of 11 actions, and rewards of at
        most 0. ``info["action_mask"]``, int8 ``(num_actions,)``, says which actions make sense.

    Raises:
        InputError: for an unknown option's name or value.
        gymnasium.error.Error: for an unknown id.
    """
    if isinstance(env, Task):
        return ClusterEnv(**{**_of_task(env), **_known(ClusterEnv, options)})
    return gymnasium.make(env, **_known(ClusterEnv, options, gymnasium.make))


def make_vec_env(
    env: str | Task = DEFAULT_ENVIRONMENT, num_envs: int = 8, **options: object
) -> VectorEnv[Any, Any, Any]:
    """Makes environments that are stepped together, by one compiled call.

    Args:
        env: as for `make_env`.
        num_envs: how many, at least 1.
        options: as for `make_env`.

    Returns:
        Observations, rewards, actions and masks have a first axis of `num_envs`. A new episode
        begins by itself in the step after the last one.

    Raises:
        InputError: for an unknown option's name or value.
        gymnasium.error.Error: for an unknown id.
    """
    if isinstance(env, Task):
        own = _known(ClusterVectorEnv, options)
        return ClusterVectorEnv(num_envs, **{**_of_task(env), **own})
    own = _known(ClusterVectorEnv, options, gymnasium.make_vec)
    return gymnasium.make_vec(env, num_envs=num_envs, **own)


def _known(
    environment: type[Any], options: Mapping[str, Any], made_by: Callable[..., Any] | None = None
) -> Mapping[str, Any]:
    """The options; refused are those of a wrong kind, or that nobody has who makes it."""
    own = signature(environment).parameters
    known = {*own}
    known |= {*signature(made_by).parameters} - {"id", "kwargs"} if made_by is not None else set()
    for name in options:
        if name not in known:
            raise unknown("option of the environment", name, known)
        if name in own:
            require_kind("the environment", own[name], options[name])
    return options


def _of_task(task: Task) -> Mapping[str, Any]:
    return {"world": task.world, "workload": task.workload, "objective": task.objective}
