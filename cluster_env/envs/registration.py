"""Ids under which Gymnasium finds the environments."""

import gymnasium

from cluster_env.worlds import WORLDS


def environment_ids() -> tuple[str, ...]:
    """The ids of all environments of all registered worlds."""
    return tuple(name for kind in WORLDS.names() for name in WORLDS.get(kind).environments)


def register_environments() -> None:
    """Enters the environments of all registered worlds in Gymnasium, each once."""
    for kind in WORLDS.names():
        for name, options in WORLDS.get(kind).environments.items():
            if name not in gymnasium.registry:
                gymnasium.register(
                    id=name,
                    entry_point="cluster_env.envs.cluster:ClusterEnv",
                    vector_entry_point="cluster_env.envs.vector:ClusterVectorEnv",
                    kwargs=dict(options),
                )
