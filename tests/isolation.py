"""What tests share with those that come next in their process, and so have to leave as it was."""

import os
import signal
import sys
from typing import Any

from cluster_env.core.registry import Registry

MODULES = "modules"
PACKAGES = ("cluster_env", "rllib_configs", "meta", "tune_jobs")
# What libraries set when they are imported, and our tracking for the processes that it starts.
OF_LIBRARIES = (
    "CRC32C_",
    "CUBLAS_",
    "KMP_",
    "MLFLOW_",
    "PYTEST_",
    "RAY_",
    "SDL_",
    "TF_",
    "TORCH",
    "TUNE_",
)
# Set by the Ray that tests share, which starts in the first module that needs it and stays.
OF_RAY = ("$PYTHONBREAKPOINT", "SIGTERM")
RAY = "the shared Ray"


def shared_state() -> dict[str, Any]:
    """Folder, environment, search path, signals, registries and open figures."""
    state: dict[str, Any] = {
        "working folder": os.getcwd(),
        # Ray puts the libraries that it brings there when it is first imported.
        "search path": tuple(path for path in sys.path if f"{os.sep}ray{os.sep}" not in path),
        "SIGINT": signal.getsignal(signal.SIGINT),
        "SIGTERM": signal.getsignal(signal.SIGTERM),
        RAY: "ray" in sys.modules and sys.modules["ray"].is_initialized(),
    }
    for name, value in os.environ.items():
        if not name.startswith(OF_LIBRARIES):
            state[f"${name}"] = value
    modules = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    state[MODULES] = frozenset(modules)
    for module in modules:
        for name, thing in vars(sys.modules[module]).items():
            if isinstance(thing, Registry):
                state[f"{module}.{name}"] = thing.names()
    if "matplotlib.pyplot" in sys.modules:
        state["open figures"] = tuple(sys.modules["matplotlib.pyplot"].get_fignums())
    return state


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What is no longer as it was, with both; what was first imported meanwhile is let be."""
    imported = {name for name in after.keys() - before.keys() if not name.startswith("$")}
    if before[MODULES] != after[MODULES]:  # modules of ours, which may have registered something
        imported |= {name for name in after if name.partition(".")[0] in PACKAGES} | {MODULES}
    if after[RAY] and not before[RAY]:
        imported |= {RAY, *OF_RAY}
    return {
        name: (before.get(name), after.get(name))
        for name in sorted((before.keys() | after.keys()) - imported)
        if before.get(name) != after.get(name)
    }
