"""Things that are chosen by name."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Generic, TypeVar

from cluster_env.core.errors import InputError, shortened

T = TypeVar("T")
N = TypeVar("N", int, float)

_ROLLOUTS = "'metasched compare --policies rollout:POLICY:FUTURES' plays what it was fitted to"
_LOGS = "the worlds hpc and deeprm read job logs, as the workload trace"
REMOVED = {
    "algorithm expert_iteration": _ROLLOUTS,
    "preset deeprm-expert": _ROLLOUTS,
    "experiment expert": _ROLLOUTS,
    "workload trace": _LOGS,
    "workload log": _LOGS,
    "option trace": _LOGS,
    "option shares": "all projects have the same share of the jobs",
    "option growth": "the squeezed job of the highest remaining utility grows first",
    "option grow_first": "squeezed jobs grow before waiting jobs start",
    "option on_loss": "a consumer that loses a node restarts",
    "option pace": "a run is as fast as the slowest of its nodes",
    "option strict": "a run outside of the preferred place takes longer",
    "option across_racks": "a run across racks takes 1.25 times as long",
    "option across_regions": "a run across regions takes 1.6 times as long",
    **dict.fromkeys(
        ("figure deeprm-fig6", *(f"figure cunha-fig5.{k}" for k in (2, 3, 4))),
        "the figure learning-curves draws the same",
    ),
    "command specialists": "'metasched study RUN --specialists N' trains them",
    "command record": "the function metasched.record of Python writes records of consumers",
    "function make_parallel_env": "tests/extensions/parallel_env.py is PettingZoo's environment",
}
"""What to use instead of names that went with release 0.3, by kind and name."""


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

    For a name in `REMOVED`, it names what took its place.
    """
    if instead := REMOVED.get(f"{kind} {name}"):
        return InputError(f"there is no {kind} '{name}' any more: {instead}")
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
            return thing

        return enter

    def get(self, name: str) -> T:
        """Returns the thing of that name.

        Raises:
            InputError: if there is none; the message names the nearest.
        """
        thing = self._things.get(name)
        if thing is None:
            raise unknown(self.kind, name, self._things)
        return thing

    def names(self) -> tuple[str, ...]:
        """All names, in the order of registration."""
        return tuple(self._things)


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
