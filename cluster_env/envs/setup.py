"""The options that the environments share, resolved and validated."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.envs.view import View
from cluster_env.objectives import Objective, get_objective
from cluster_env.workloads import Workload
from cluster_env.worlds.deeprm.bimodal import BimodalWorkload
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RULES, Rules
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
from cluster_env.worlds.deeprm.state import StateLayout

WorkloadOption = Workload | Mapping[str, Any] | None


@dataclass(frozen=True)
class Setup:
    """What an environment is made of; the options of `ClusterEnv` say the same in words.

    Attributes:
        workload: where jobsets come from.
        cluster: resources, horizon and slots.
        rules: of the simulator.
        objective: what the reward is.
        max_time: clock after which an episode is truncated.
        view: what a policy sees.
    """

    workload: Workload
    cluster: Cluster
    rules: Rules
    objective: Objective
    max_time: int
    view: View

    @classmethod
    def of(
        cls,
        *,
        workload: WorkloadOption,
        cluster: Cluster | None,
        rules: str | Rules,
        objective: str | Objective,
        max_time: int,
        observation: str,
        mask: str,
        mask_in_observation: bool,
    ) -> "Setup":
        """Resolves names and defaults.

        Raises:
            InputError: for an unknown name or a value out of range.
        """
        source = _workload_of(workload, cluster)
        machine = cluster or getattr(source, "cluster", None) or Cluster()
        kept = RULES.get(rules) if isinstance(rules, str) else rules
        return cls(
            workload=source,
            cluster=machine,
            rules=kept,
            objective=get_objective(objective) if isinstance(objective, str) else objective,
            max_time=max_time,
            view=View(StateLayout(machine), kept, observation, mask, mask_in_observation),
        )

    def simulator(self) -> DeepRMSimulator:
        """A new simulator, with nothing loaded.

        Raises:
            InputError: if `max_time` is below 1.
        """
        return DeepRMSimulator(self.cluster, self.rules, self.max_time)


def require_seed(seed: int) -> int:
    """Returns a seed as a Python integer.

    Raises:
        InputError: if it is no whole number, or negative.
    """
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"a seed must be a whole number of 0 or larger, but {seed!r} was given")
    return int(seed)


def require_render_mode(mode: str | None, known: list[str]) -> str | None:
    """Returns a render mode that is known, or None.

    Raises:
        InputError: if it is not known.
    """
    if mode is not None and mode not in known:
        raise unknown("render mode", mode, known)
    return mode


def _workload_of(option: WorkloadOption, cluster: Cluster | None) -> Workload:
    if option is not None and not isinstance(option, Mapping):
        return option
    options = dict(option or {})
    known = [entry.name for entry in fields(BimodalWorkload)]
    for name in options:
        if name not in known:
            raise unknown("option of the workload", name, known)
    if cluster is not None:
        options.setdefault("cluster", cluster)
    return BimodalWorkload(**options)
