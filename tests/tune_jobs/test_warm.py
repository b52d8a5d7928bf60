"""Warming up leaves nothing to compile for training."""

import importlib
import multiprocessing
import pkgutil
from concurrent.futures import ProcessPoolExecutor

import pytest

import rllib_configs
from tune_jobs import warm


def cold_functions() -> tuple[list[str], int]:
    """The compiled functions that nobody has called after warming up, and how many there are."""
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
    # What only compiled code calls is part of its callers, and of their files in the cache.
    inner = {name for function in functions.values() for name in function.py_func.__code__.co_names}
    cold = [name for name, function in functions.items() if not function.signatures]
    return [name for name in cold if name.rpartition(".")[2] not in inner], len(functions)


@pytest.mark.slow
def test_every_compiled_function_of_training_is_called() -> None:
    """In a process of its own: elsewhere other tests have called some of them before."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        cold, how_many = process.submit(cold_functions).result(timeout=300)
    assert cold == []
    assert how_many > 20
