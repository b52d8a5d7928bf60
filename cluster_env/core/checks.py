"""What compiled code asks of the arrays and options that it is given, in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike, NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown

T = TypeVar("T")


def require_states(states: NDArray[Any], space: spaces.Box) -> None:
    """Makes sure that states are of a world: compiled code would read wrong ones past their ends.

    Raises:
        InputError: for another shape than ``(n, state_size)`` of the `World.state_space` that is
            given, or another type.
    """
    (size,) = space.shape
    if states.ndim != 2 or states.shape[1] != size or states.dtype != space.dtype:
        raise InputError(
            f"states of this world have the shape (n, {size}) and the type {space.dtype}, but "
            f"{states.shape} and {states.dtype} were given"
        )


def output(out: NDArray[Any] | None, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Returns the array to write to: the given one, or a new one.

    Raises:
        InputError: if the given one has another shape or type.
    """
    if out is None:
        return np.empty(shape, dtype)
    if out.shape != shape or out.dtype != np.dtype(dtype):
        raise InputError(
            f"out must have the shape {shape} and the type {np.dtype(dtype)}, but {out.shape} and "
            f"{out.dtype} were given"
        )
    return out


def outputs(
    out: Sequence[NDArray[Any]] | None, *forms: tuple[tuple[int, ...], DTypeLike]
) -> tuple[NDArray[Any], ...]:
    """The same for several arrays with their shapes and types, such as those of `Features`.

    Raises:
        InputError: if one of them has another shape or type.
    """
    if out is None:
        return tuple([np.empty(shape, dtype) for shape, dtype in forms])
    return tuple(output(one, *form) for one, form in zip(out, forms, strict=True))


@dataclass(frozen=True)
class FromFile:
    """Mark of an option that may be the path of a file: ``Annotated[Site, FromFile(read_site)]``.

    Attributes:
        read: the value of the option, from the path or paths that a user wrote.
    """

    read: Callable[[str], Any]

    def value(self, given: Any) -> Any:
        """What a file says, if the option is a text; else the option as it is."""
        return self.read(given) if isinstance(given, str) and given else given


def from_plain(made: type[T], data: Mapping[str, Any], what: str) -> T:
    """Builds a dataclass whose fields may be dataclasses themselves, from mappings.

    Raises:
        InputError: for an unknown name; it names the nearest, and ``what`` it would be the name of:
            ``option of the world``.
    """
    hints = get_type_hints(made, include_extras=True)
    known = [entry.name for entry in fields(made)]  # type: ignore[arg-type]
    given = {}
    for name, value in data.items():
        if name not in known:
            raise unknown(what, str(name), known)
        given[name] = converted(hints[name], value, what)
    missing = [entry.name for entry in _required(made) if entry.name not in given]
    if missing:
        raise InputError(f"a {made.__name__.lower()} needs {' and '.join(missing)}")
    return made(**given)


def _required(made: Any) -> list[Any]:
    return [
        entry
        for entry in fields(made)
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING
    ]


def converted(hint: Any, value: Any, what: str) -> Any:
    """The value of a field of a type, from plain data: `from_plain` of all that is in it.

    Raises:
        InputError: as `from_plain`, and if a file cannot be read.
    """
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
        for mark in marks:
            value = mark.value(value) if isinstance(mark, FromFile) else value
    inner = [part for part in get_args(hint) if is_dataclass(part)]
    table = hint if is_dataclass(hint) else inner[0] if inner else None
    if isinstance(value, Mapping) and table is not None and get_origin(hint) is not tuple:
        return from_plain(table, value, what)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        return tuple(
            from_plain(table, one, what) if isinstance(one, Mapping) and table else one  # type: ignore[arg-type]
            for one in value
        )
    return value


def require_option_types(options: Any) -> None:
    """Makes sure that the numbers, words and switches of a dataclass are of their types.

    Whole numbers of numpy are integers, and integers are numbers; nothing else is converted. Fields
    of other types are left to the dataclass.

    Raises:
        InputError: if one is not; it names the field.
    """
    hints = get_type_hints(type(options))
    for entry in fields(options):
        kind, value = hints[entry.name], getattr(options, entry.name)
        expected = _EXPECTED.get(kind)
        if expected is None:
            continue
        types, name = expected
        is_switch = isinstance(value, bool | np.bool_)
        if not isinstance(value, types) or (is_switch and kind is not bool):
            raise InputError(f"{entry.name} must be {name}, but {shortened(repr(value))} was given")


def require_ranges(options: Any, **ranges: tuple[float, float]) -> None:
    """Makes sure that numbers of a dataclass are in their ranges, whose ends are allowed.

    Raises:
        InputError: if one is not; it names the field.
    """
    for name, (least, most) in ranges.items():
        value = getattr(options, name)
        if not least <= value <= most:
            raise InputError(f"{name} must be {least:,} to {most:,}, but {value} was given")


_EXPECTED: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int, np.integer), "a whole number"),
    float: ((int, float, np.integer, np.floating), "a number"),
    str: ((str,), "a word"),
    bool: ((bool, np.bool_), "true or false"),
}
