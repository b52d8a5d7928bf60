"""Ids under which Gymnasium finds the environments."""

from collections.abc import Mapping
from typing import Any

import gymnasium

# An environment that changes its behavior gets a new id, so that published results stay comparable.
ENVIRONMENTS: Mapping[str, Mapping[str, Any]] = {
    "DeepRM-v0": {},
    "DeepRMReleased-v0": {
        "rules": "released",
        "workload": {"first_step": 1},
        "max_time": 200,
    },
}


def register_environments() -> None:
    """Enters all environments in Gymnasium (once)."""
    for name, options in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="cluster_env.envs.cluster:ClusterEnv",
                vector_entry_point="cluster_env.envs.vector:ClusterVectorEnv",
                kwargs=dict(options),
            )
