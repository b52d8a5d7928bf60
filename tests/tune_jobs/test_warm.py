"""Warming up leaves nothing to compile for training."""

import importlib
import pkgutil

import pytest

import rllib_configs
from tune_jobs import warm


@pytest.mark.slow
def test_every_compiled_function_of_training_is_called():
    warm.main()
    names = [
        module.name for module in pkgutil.walk_packages(rllib_configs.__path__, "rllib_configs.")
    ]
    functions = {
        f"{thing.__module__}.{thing.__name__}": thing
        for name in names
        for thing in vars(importlib.import_module(name)).values()
        if hasattr(thing, "targetoptions") and thing.__module__.startswith("rllib_configs.")
    }
    assert functions
    # What only compiled code calls is part of its callers, and of their files in the cache.
    inner = {name for function in functions.values() for name in function.py_func.__code__.co_names}
    cold = [name for name, function in functions.items() if not function.signatures]
    assert [name for name in cold if name.rpartition(".")[2] not in inner] == []
    assert len(cold) < len(functions)
