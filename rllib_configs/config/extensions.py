"""Code of a user's own that enters things into registries.

A heuristic, an objective, a workload, a network, an algorithm or a world of one's own is known
everywhere once its module has been imported. Every process that reads a config, or is sent one,
imports what the variable `IMPORTS` of the environment names, and what installed packages declare
as entry points of the group ``metasched``.
"""

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.registry import ENTERED, Registry

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


@dataclass(frozen=True)
class Extension:
    """A module that was imported because somebody named it.

    Attributes:
        module: its name.
        source: the variable, or the installed package, that names it.
        things: what it has registered: ``heuristic lcfs``.
        file: that it was imported from; empty where there is none.
    """

    module: str
    source: str
    things: tuple[str, ...]
    file: str = ""

    def files(self) -> list[Path]:
        """Its own file, or all files of its package but compiled ones."""
        path = Path(self.file)
        if not path.is_file():
            return []
        if path.name != "__init__.py":
            return [path]
        parts = sorted(path.parent.rglob("*"))
        return [one for one in parts if one.is_file() and "__pycache__" not in one.parts]


found: list[Extension] = []
"""All that `load_extensions` has imported so far, without what comes with metasched."""


def entered(registry: Registry[Any]) -> dict[str, Extension]:
    """What extensions have entered in a registry, by name; they come after all of metasched's."""
    load_extensions()
    by_thing = {thing: one for one in found for thing in one.things}
    names = []
    for name in reversed(registry.names()):
        if f"{registry.kind} {name}" not in by_thing:
            break
        names.append(name)
    return {name: by_thing[f"{registry.kind} {name}"] for name in reversed(names)}


def load_extensions() -> None:
    """Imports all extensions that have not been imported yet.

    Raises:
        InputError: if one cannot be imported.
    """
    for name in (*_OWN, *allowed_imports()):
        where = f"{IMPORTS} names {name}, which"
        source = "" if name in _OWN else IMPORTS
        _load(name, where, partial(importlib.import_module, name), source)
    if GROUP not in _loaded:
        for entry in entry_points(group=GROUP):
            where = f"the entry point {entry.name} names {entry.value}, which"
            package = "" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
            _load(entry.value, where, entry.load, package or GROUP)
        _loaded.add(GROUP)


def allowed_imports() -> tuple[str, ...]:
    """The packages and modules that the environment names."""
    names = (name.strip() for name in os.environ.get(IMPORTS, "").split(","))
    return tuple(name for name in names if name)


def _load(name: str, where: str, load: Callable[[], object], source: str) -> None:
    if name in _loaded:
        return
    before, extensions = len(ENTERED), len(found)
    _loaded.add(name)  # before, because a module may read a config itself
    try:
        load()
    except (Exception, SystemExit) as error:  # whatever the code of others raises
        _loaded.discard(name)
        what = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{where} cannot be imported: {what}") from error
    if source:
        # It may have had others imported, by reading a config.
        others = {thing for one in found[extensions:] for thing in one.things}
        things = tuple(thing for thing in ENTERED[before:] if thing not in others)
        module = sys.modules.get(name.partition(":")[0])
        file = getattr(module, "__file__", None) or ""
        found.append(Extension(name, source, things, file))
