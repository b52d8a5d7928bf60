"""Types of the public Python API: each says something, and a strict type checker agrees."""

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin

import numpy as np

import metasched

OURS = ("metasched", "cluster_env", "rllib_configs", "meta", "tune_jobs")
BARE = (dict, list, tuple, set, frozenset)
REASONS = {
    "make_env: return": "what is observed depends on options",
    "make_vec_env: return": "what is observed depends on options",
    "Heuristic: make": "a rule takes its own world's class",
    "Heuristic.unnumbered: make": "a rule takes its own world's class",
    "ExperimentConfig.to_dict: return": "plain data, as pydantic's model_dump has it",
}


def says_nothing(annotation: Any) -> bool:
    """Whether a type is or has a part that stands for anything; arrays are arrays."""
    if isinstance(annotation, str):
        return "Any" in annotation or annotation in [one.__name__ for one in BARE]
    origin = get_origin(annotation)
    if origin is np.ndarray or getattr(origin or annotation, "__module__", "").startswith("numpy"):
        return False
    parts = [one for one in get_args(annotation) if one is not Ellipsis]
    flat = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    return annotation in (Any, inspect.Parameter.empty, *BARE) or any(map(says_nothing, flat))


def functions_of(name: str) -> Iterator[tuple[str, Any]]:
    """A public function, or the public methods and properties of a class, by their names."""
    thing = getattr(metasched, name)
    if not inspect.isclass(thing):
        yield name, thing
        return
    for member in dir(thing):
        value = inspect.getattr_static(thing, member)
        value = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        is_ours = str(getattr(value, "__module__", "")).split(".")[0] in OURS
        is_shown = member[0] != "_" or (member == "__init__" and not is_dataclass(thing))
        if inspect.isfunction(value) and is_ours and is_shown:
            yield f"{name}.{member}", value


def types_of(name: str) -> Iterator[tuple[str, Any]]:
    """All types in signatures and fields of a public name, with what they are of."""
    thing = getattr(metasched, name)
    for cls in thing.__mro__ if inspect.isclass(thing) else ():
        if cls.__module__.split(".")[0] in OURS:
            for field, kind in inspect.get_annotations(cls).items():
                if field[0] != "_":
                    yield f"{name}: {field}", kind
    for place, function in functions_of(name):
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.name not in ("self", "cls"):
                yield f"{place}: {parameter.name}", parameter.annotation
        if not place.endswith("__init__"):
            yield f"{place}: return", signature.return_annotation


def test_every_public_type_says_something() -> None:
    names = [name for name in metasched.__all__ if name != "__version__"]
    found = {place: kind for name in names for place, kind in types_of(name)}
    assert len(found) > 400
    unclear = {place for place, kind in found.items() if says_nothing(kind)}
    assert unclear == set(REASONS)
