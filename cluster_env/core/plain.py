"""Frozen dataclasses from plain data, such as configs hold."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from cluster_env.core.registry import unknown

T = TypeVar("T")


def from_plain(made: type[T], data: Mapping[str, Any], what: str) -> T:
    """Builds a dataclass whose fields may be dataclasses themselves, from mappings.

    Raises:
        InputError: for an unknown name; it names the nearest, and ``what`` it would be the name of:
            ``option of the world``.
    """
    hints = get_type_hints(made)
    known = [entry.name for entry in fields(made)]  # type: ignore[arg-type]
    given = {}
    for name, value in data.items():
        if name not in known:
            raise unknown(what, name, known)
        inner = hints[name]
        nested = isinstance(value, Mapping) and is_dataclass(inner)
        listed = tuple(value) if isinstance(value, list) else value
        given[name] = from_plain(inner, value, what) if nested else listed
    return made(**given)
