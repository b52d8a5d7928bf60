"""The options that the environments share, resolved and validated."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.core.spec import build_world, spec_of
from cluster_env.core.world import World
from cluster_env.envs.view import View
from cluster_env.objectives import Objective, get_objective
from cluster_env.task import Task, build_workload
from cluster_env.workloads import Workload

WorldOption = World | str | Mapping[str, Any]
WorkloadOption = Workload | Mapping[str, Any] | None


@dataclass(frozen=True)
class Setup:
    """What an environment is made of; the options of `ClusterEnv` say the same in words."""

    task: Task
    view: View

    @classmethod
    def of(
        cls,
        world: WorldOption,
        workload: WorkloadOption,
        objective: str | Objective,
        observation: str | None,
        mask: str | None,
        *,
        mask_in_observation: bool,
    ) -> "Setup":
        """Resolves names and defaults.

        Raises:
            InputError: for an unknown name or a value out of range.
        """
        view = View(build_world(world), observation, mask, mask_in_observation)
        if workload is None or isinstance(workload, Mapping):
            options = dict(workload or {})
            name = str(options.pop("kind", spec_of(view.world).workloads.names()[0]))
            workload = build_workload(view.world, name, options)
        goal = get_objective(objective) if isinstance(objective, str) else objective
        return cls(Task(view.world, workload, goal), view)


def require_seed(seed: int) -> int:
    """Returns a seed as a Python integer.

    Raises:
        InputError: if it is no whole number, or negative.
    """
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"a seed must be a whole number of 0 or larger, but {seed!r} was given")
    return int(seed)


def require_reward_scale(scale: float) -> float:
    """Returns a number by which rewards are multiplied.

    Raises:
        InputError: if it is not above 0 and finite.
    """
    if not isinstance(scale, int | float) or not 0 < scale < math.inf:
        raise InputError(f"reward_scale must be a number above 0, but {scale!r} was given")
    return float(scale)


def require_render_mode(mode: str | None, known: list[str]) -> str | None:
    """Returns a render mode that is known, or None.

    Raises:
        InputError: if it is not known.
    """
    if mode is not None and mode not in known:
        raise unknown("render mode", mode, known)
    return mode
