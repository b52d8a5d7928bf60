"""Registrations of tests, which no other test is to see."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from cluster_env.core.registry import Registry
from cluster_env.core.spec import WORLDS
from cluster_env.objectives import OBJECTIVES
from rllib_configs.config import extensions
from rllib_configs.config.registries import ALGORITHMS, HOOKS, NETWORKS
from tests.conftest import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "tests" / "extensions").glob("own_*.py"))
_DEEPRM = WORLDS.get("deeprm")
OF_EXTENSIONS = (
    *(OBJECTIVES, ALGORITHMS, NETWORKS, WORLDS, HOOKS),
    *(_DEEPRM.heuristics, _DEEPRM.workloads, _DEEPRM.environments.observations),
    WORLDS.get("hpc").heuristics,
)
"""Where the examples of extensions enter things."""


@contextmanager
def own_registrations(
    registries: Iterable[Registry], modules: Iterable[str] = ()
) -> Iterator[pytest.MonkeyPatch]:
    """What is registered inside is gone afterwards, with the modules that have registered it."""
    extensions.load_extensions()  # ours stay entered when the registries are put back
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extensions, "_loaded", set(extensions._loaded))
        patch.setattr(extensions, "found", list(extensions.found))
        for registry in registries:
            patch.setattr(registry, "_things", dict(registry._things))
        for module in modules:
            sys.modules.pop(module, None)
        try:
            yield patch
        finally:
            for module in modules:
                sys.modules.pop(module, None)
