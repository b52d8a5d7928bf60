"""Ids of environments, which Gymnasium has as soon as both packages are imported.

The worlds register them, but importing these takes a second. So the ids stand here, too, and a
world is imported when one of its environments is made.
"""

import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_HPC = {"kind": "hpc", "time_step": 60}
_OF_64_JOBS = {"workload": {"jobs": 64}, "objective": "slowdown"}

IDS: Mapping[str, Mapping[str, Any]] = {
    "DeepRM-v0": {"world": {"kind": "deeprm"}},
    "DeepRMReleased-v0": {"world": {"kind": "deeprm", "rules": "released", "max_time": 200}},
    "HPC-v0": {"world": {"kind": "hpc"}, "objective": "bounded_slowdown"},
    "HPCBase-v0": {"world": {**_HPC, "reward": "base", "every_step": True}, **_OF_64_JOBS},
    "HPCSparse-v0": {"world": {**_HPC, "reward": "sparse"}, **_OF_64_JOBS},
    "HPCReduced-v0": {"world": {**_HPC, "reward": "reduced"}, **_OF_64_JOBS},
    "HPCOptions-v0": {"world": {**_HPC, "reward": "options"}, **_OF_64_JOBS},
    "Accrual-v0": {"world": {"kind": "accrual"}, "objective": "utility"},
    "Graphs-v0": {
        "world": {"kind": "graphs"},
        "workload": {"jobs": 50},
        "objective": "completion_time",
    },
}
"""Options of environments by their ids, as the worlds have them; a test compares the two."""


def register_when_imported() -> None:
    """Enters the ids into Gymnasium: now, or once somebody imports it."""
    if "gymnasium" in sys.modules:
        _register(sys.modules["gymnasium"])
    else:
        sys.meta_path.insert(0, _Waiting())


def _register(gymnasium: Any) -> None:
    for name, options in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="cluster_env.envs.cluster:ClusterEnv",
                vector_entry_point="cluster_env.envs.vector:ClusterVectorEnv",
                kwargs=dict(options),
            )


class _Waiting:
    """Sees one import, that of Gymnasium, and registers the ids behind it."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """The spec of Gymnasium, whose loader does more; none of all other modules."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _register(module)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
