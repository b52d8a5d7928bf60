"""Compiles everything that is compiled, once: ``python -m cluster_env.warm``.

Numba keeps what it has compiled, so that later commands and every worker only load it. Run after
an installation; it takes a minute the first time and seconds after that.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.spec import WORLDS, WorldSpec
from cluster_env.core.task import Task, build_workload
from cluster_env.envs.view import View
from cluster_env.evaluation import evaluate, summarize
from cluster_env.evaluation.withholding import find_withheld
from cluster_env.objectives import OBJECTIVES, get_objective
from cluster_env.workloads.histories import histories


def warm(worlds: Sequence[str] = ()) -> None:
    """Plays what is registered of each world once: rules, steps, observations and masks.

    Args:
        worlds: names, in the order in which they are compiled; all, if none is named.
    """
    for name in worlds or WORLDS.names():
        spec = WORLDS.get(name)
        world = spec.world()
        jobsets = _few_jobs(spec, world)
