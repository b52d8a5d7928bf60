"""Compiled functions that nobody has called after warming up, asked in a process of their own.

Elsewhere other tests have called some of them before, and what the warm-up forgets goes unnoticed.
"""

import importlib
import multiprocessing
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from inspect import isfunction, ismodule
from typing import Any

TIMEOUT_S = 400


def cold_functions(package: str, warm: str) -> tuple[set[str], int]:
    """Names of cold functions of a package, and how many compiled ones there are.

    Args:
        package: whose modules are searched, such as ``cluster_env``.
        warm: module whose ``warm`` warms them up.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(_cold_functions, package, warm).result(timeout=TIMEOUT_S)


def _cold_functions(package: str, warm: str) -> tuple[set[str], int]:
    importlib.import_module(warm).warm()
    root = importlib.import_module(package)
    things = [
        thing
        for module in pkgutil.walk_packages(root.__path__, f"{package}.")
        for thing in vars(importlib.import_module(module.name)).values()
    ]
    functions = {
        f"{thing.__module__}.{thing.__name__}": thing
        for thing in things
        if hasattr(thing, "targetoptions") and thing.__module__.startswith(f"{package}.")
    }
    parts = [part for one in things if isfunction(one) for part in getattr(one, "parts", ())]
    callers = [*functions.values(), *parts]
    called = {id(inner) for function in callers for inner in _compiled_inside(function)}
    cold = {
        name
        for name, function in functions.items()
        if not function.signatures and id(function) not in called and not _is_inlined(function)
    }
    return cold, len(functions)


def _compiled_inside(function: Any) -> list[Any]:
    """What compiled code calls is part of its callers, and of their files in the cache."""
    names, known = function.py_func.__code__.co_names, function.py_func.__globals__
    found = [known.get(name) for name in names]
    found += [getattr(one, name, None) for one in found if ismodule(one) for name in names]
    return found + [part for one in found for part in getattr(one, "parts", ())]


def _is_inlined(function: Any) -> bool:
    options = function.targetoptions
    return options.get("inline") == "always" or options.get("forceinline", False)
