"""Things that are chosen by name."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.removed import was_removed

T = TypeVar("T")
N = TypeVar("N", int, float)

ENTERED: list[str] = []
"""All that was registered, in order: ``heuristic sjf``."""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """What may have been meant: the name spelled most like it, else those with such a part.

    ``sfj`` and ``SJF`` give ``sjf``; ``fig4`` gives ``deeprm-fig4`` and ``utility-fig4``. A name
    that is known is itself no hint: it cannot be taken here.
    """
    names = sorted(set(known) - {name})
    if same := [other for other in names if other.lower() == name.lower()]:
        return same
    parts = [other for other in names if name in re.split(r"[-_.:]", other)]
    return get_close_matches(name, names, n=1) or parts[:3]


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Builds the error for a name that is not known; it names the nearest one and all others.

    For one that was removed, it says what to use instead.
    """
    if sentence := was_removed(kind, name):
        return InputError(sentence)
    names, said = sorted(set(known)), shortened(name)
    close = " or ".join(f"'{other}'" for other in nearest(said, names))
    hint = f"did you mean {close}? " if close else ""
    all_known = f"known are {', '.join(names)}" if names else "none is known"
    return InputError(f"unknown {kind} '{said}': {hint}{all_known}")


class Registry(Generic[T]):
    """A table from names to things of one kind, which messages name: ``heuristic``."""

    def __init__(self, kind: str, things: Mapping[str, T] | None = None) -> None:
        self.kind = kind
        self._things = dict(things or {})

    def register(self, name: str) -> Callable[[T], T]:
        """Returns a decorator that enters a thing under a name that is still free."""

        def enter(thing: T) -> T:
            if name in self._things:
                raise ValueError(f"{self.kind} '{name}' is registered twice")
            self._things[name] = thing
            ENTERED.append(f"{self.kind} {name}")
            return thing

        return enter

    def get(self, name: str) -> T:
        """Returns the thing of that name.

        Raises:
            InputError: if there is none; the message names the nearest.
        """
        if not isinstance(name, str):
            raise InputError(f"the name of a {self.kind} is text, but {name!r} was given")
        thing = self._things.get(name)
        if thing is None:
            raise unknown(self.kind, name, self._things)
        return thing

    def names(self) -> tuple[str, ...]:
        """All names, in the order of registration."""
        return tuple(self._things)


def imported(thing: Any) -> Any:
    """A thing itself, or what a text names: ``module:attribute``, or ``module``; imported now."""
    return resolve_name(thing) if isinstance(thing, str) else thing


def no_argument(name: str, argument: str) -> None:
    """Makes sure that a heuristic without a number was given none.

    Raises:
        InputError: if it was.
    """
    if argument:
        raise InputError(f"'{name}' takes no number, but '{name}:{argument}' was given")


def number_of(name: str, text: str, kind: type[N], default: N) -> N:
    """The number behind the colon of a heuristic's name.

    Raises:
        InputError: if the text is none.
    """
    try:
        return kind(text) if text else default
    except ValueError as error:
        raise InputError(
            f"'{name}:' needs a number after the colon, not '{shortened(text)}'"
        ) from error
