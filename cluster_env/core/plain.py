"""Frozen dataclasses from plain data, such as configs hold."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from cluster_env.core.registry import unknown

T = TypeVar("T")


def from_plain(made: type[T], data: Mapping[str, Any], what: str) -> T:
    """Builds a dataclass whose fields may be dataclasses themselves.

    Args:
        made: the dataclass.
        data: values by the names of its fields; a mapping where a field is a dataclass.
        what: names a field in messages: ``option of the world``.

    Raises:
        InputError: for an unknown name; it names the nearest.
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
