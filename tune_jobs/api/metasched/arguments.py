"""Arguments of public functions: what they are checked for."""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial, wraps
from pathlib import Path
from typing import (
    Annotated,
    Any,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import numpy as np
from annotated_types import Interval
from pydantic import AfterValidator, TypeAdapter, ValidationError

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown

Function = TypeVar("Function", bound=Callable[..., Any])


def new_file(path: str | Path, force: bool) -> Path:
    """The path of a file that is to be written.

    Raises:
        InputError: if there is one already that is not to be replaced.
    """
    if Path(path).exists() and not force:
        raise InputError(f"{path} is there already; force=True replaces it")
    return Path(path)


_NO_KIND = (inspect.Parameter.empty, Any)


def checked(function: Function) -> Function:
    """The function, which refuses arguments of a wrong kind before it begins.

    Each must have the type that the signature says; nothing is converted. Pydantic decides, so that
    one rule holds for all functions: a text is no list, and a number is no list of numbers.
    """
    signature = inspect.signature(function)
    name = function.__name__

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            if surplus := [one for one in options if one not in signature.parameters]:
                raise unknown(f"argument of {name}", surplus[0], signature.parameters) from None
            raise InputError(f"{name}: {error}") from None
        for key, value in bound.arguments.items():
            parameter = signature.parameters[key]
            if parameter.annotation not in _NO_KIND:
                require_kind(name, parameter, value)
        return function(*args, **options)

    call.__module__ = "metasched"  # where it is found again, as by pickle
    return call  # type: ignore[return-value]


def require_kind(function: str, parameter: inspect.Parameter, value: Any) -> None:
    """Makes sure that an argument has the type of its parameter.

    Raises:
        InputError: if it has not.
    """
    several = parameter.kind is inspect.Parameter.VAR_KEYWORD
    for name, one in value.items() if several else [(parameter.name, value)]:
        plain = one.tolist() if isinstance(one, np.ndarray | np.generic) else one
        try:
            _adapter(parameter.annotation).validate_python(plain, strict=True)
        except ValidationError:
            raise InputError(
                f"{function} takes for '{name}' {_words(parameter.annotation)}, but "
                f"{shortened(repr(one))} was given"
            ) from None


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(_by_class(annotation))


_PLAIN = (str, int, float, bool, types.NoneType, list, tuple, dict)


def _by_class(annotation: Any) -> Any:
    """The annotation, in which classes of ours stand for their instances and not their fields."""
    if get_origin(annotation) is Annotated:
        return annotation
    origin, parts = get_origin(annotation), tuple(map(_by_class, get_args(annotation)))
    if origin in (Union, types.UnionType):
        return Union[parts]  # noqa: UP007 - of parts that are known here only
    if origin is Iterable:  # pydantic takes a text for one
        return Annotated[Any, AfterValidator(partial(_require, _is_list))]
    if isinstance(origin, type):
        return annotation if origin in _PLAIN else cast("Any", origin)[parts]
    if isinstance(annotation, type) and annotation not in (*_PLAIN, Any):
        return Annotated[Any, AfterValidator(partial(_require, partial(_is_a, annotation)))]
    return annotation


def _require(is_right: Callable[[Any], bool], value: Any) -> Any:
    if not is_right(value):
        raise ValueError
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _is_a(kind: type[Any], value: Any) -> bool:
    """Whether a value is of a class, or has all that a protocol names that Python cannot ask."""
    try:
        return isinstance(value, kind)
    except TypeError:
        names = [name for name in {**vars(kind), **kind.__annotations__} if name[0] != "_"]
        return all(
            hasattr(type(value), one) or one in getattr(value, "__dict__", ()) for one in names
        )


_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    types.NoneType: "None",
}


def _words(annotation: Any) -> str:
    """A type for people: ``a list of str or None``."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, parts)))
    if origin is Annotated:
        interval: Interval = parts[1]
        least = f"above {interval.gt}" if interval.gt is not None else f"from {interval.ge}"
        return f"{_words(parts[0])} {least}"
    if origin is None:
        return _NAMES.get(annotation) or str(getattr(annotation, "__name__", "a value"))
    if not isinstance(origin, type):  # a literal
        return " or ".join(map(repr, parts))
    if issubclass(origin, Mapping):
        return "a mapping"
    return f"a list ({_words(parts[0])})" if parts else "a list"
