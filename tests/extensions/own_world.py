"""A world of one's own: DeepRM's cluster, on which nothing that can start is ever held back.

Known to every command with METASCHED_IMPORTS=own_world in the environment:
metasched train deeprm-ppo --set task.world.kind=work_conserving
`tests/toy_world.py` is a whole one, with a simulator, workload and heuristics of its own.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from cluster_env.core.spec import WORLDS
from cluster_env.core.world import Features
from cluster_env.worlds import get_spec
from cluster_env.worlds.deeprm import DeepRM


@dataclass(frozen=True)
class WorkConserving(DeepRM):
    """A network may wait only where no job in the slots could start."""

    kind: ClassVar[str] = "work_conserving"

    def features(self, states, out: Features | None = None) -> Features:
        seen = super().features(states, out)
        seen.allowed[:, -1] &= ~seen.allowed[:, :-1].any(axis=1)
        return seen


# All else is DeepRM's: workloads, heuristics, baselines, metrics, tables.
DEEPRM = get_spec("deeprm")
IDS = {"WorkConserving-v0": {"world": {"kind": "work_conserving"}}}
WORLDS.register("work_conserving")(
    replace(DEEPRM, world=WorkConserving, environments=replace(DEEPRM.environments, ids=IDS))
)
