"""Values of options as plans of ``metasched results`` give them, by the types of the fields."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import click
from pydantic import TypeAdapter, ValidationError

from cluster_env.core.errors import shortened
from tune_jobs.commands.flags import Field, Numbers, Time

Scalar = bool | int | float | str


def value_of(field: Field, given: Scalar | Sequence[Scalar]) -> Any:
    """What a field holds, if a plan gives this.

    Raises:
        ValueError: if it is none of the field's type, or there are several and it takes one.
    """
    several = [given] if isinstance(given, Scalar) else list(given)
    if field.is_several:
        return tuple(_one(field, value) for value in several)
    if len(several) != 1:
        raise ValueError("it takes one value")
    return _one(field, several[0])


def _one(field: Field, value: Scalar) -> Any:
    kind, reader = field.kind_of_one, getattr(field.declaration, "type", None)
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(reader, Numbers | Time):
        return reader.read(text)
    if kind in (bool, int, float) or get_origin(kind) in (Annotated, Literal):
        return _checked(kind, value if kind is bool else text)
    is_path = kind is Path or Path in get_args(kind)
    return Path(text) if isinstance(reader, click.Path) or (is_path and reader is None) else text


def _checked(kind: Any, value: Scalar) -> Any:
    """A number, a choice, or true and false."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        raise ValueError(
            f"{message[:1].lower()}{message[1:]}, but {shortened(str(value))} was given"
        ) from None
