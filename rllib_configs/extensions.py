"""Code of a user's own that enters things into registries.

A heuristic, an objective, a workload, a network, an algorithm or a world of one's own is known
everywhere once its module has been imported. Every process that reads a config, or is sent one,
imports what the variable `IMPORTS` of the environment names, and what installed packages declare
as entry points of the group ``metasched``.
"""

import importlib
import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points

from cluster_env.core.errors import InputError

IMPORTS = "METASCHED_IMPORTS"
"""Variable of the environment: packages and modules, separated by commas, that may be imported."""
GROUP = "metasched"
"""Entry points whose modules are imported."""
# What stands above registers itself like any extension.
_OWN = (
    "rllib_configs.worlds",
    "meta.maml.options",
    "meta.panda.options",
)

_loaded: set[str] = set()


def load_extensions() -> None:
    """Imports all extensions that have not been imported yet.

    Raises:
        InputError: if one cannot be imported.
    """
    for name in (*_OWN, *allowed_imports()):
        _load(name, f"{IMPORTS} names {name}, which", partial(importlib.import_module, name))
    if GROUP not in _loaded:
        for entry in entry_points(group=GROUP):
            _load(
                entry.value, f"the entry point {entry.name} names {entry.value}, which", entry.load
            )
        _loaded.add(GROUP)


def allowed_imports() -> tuple[str, ...]:
    """The packages and modules that the environment names."""
    names = (name.strip() for name in os.environ.get(IMPORTS, "").split(","))
    return tuple(name for name in names if name)


def _load(name: str, where: str, load: Callable[[], object]) -> None:
    if name in _loaded:
        return
    _loaded.add(name)  # before, because a module may read a config itself
    try:
        load()
    except (Exception, SystemExit) as error:  # whatever the code of others raises
        _loaded.discard(name)
        what = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{where} cannot be imported: {what}") from error
