"""What an annotation of a field says: the option, or the argument, that it is on a command line."""

import math
import types
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import click
from annotated_types import Interval

from tune_jobs.terminal.options import MOST, OutPath

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # which older versions of click do not subscript

Count = Annotated[int, Interval(ge=1, le=MOST)]
CountOrZero = Annotated[int, Interval(ge=0, le=MOST)]
Several = Annotated[int, Interval(ge=2, le=MOST)]
StepsOfAdaptation = Annotated[int, Interval(ge=0, le=1000)]
Moments = Annotated[int, Interval(ge=10, le=MOST)]
Seed = Annotated[int, Interval(ge=0, lt=2**63)]
Positive = Annotated[float, Interval(gt=0, lt=math.inf)]
ZeroOrMore = Annotated[float, Interval(ge=0, lt=math.inf)]
"""Numbers as options take them; others are refused, on a command line and from Python."""

OptionValue = str | float | bool
"""Of an option of a world, as commands have it: ``processors=256``, ``max_wait="x2"``."""


@dataclass(frozen=True)
class Flag:
    """An option of a command.

    Attributes:
        help: what it means; names of options in it are those of fields in Python.
        name: without dashes, if not that of the field without ``num_`` and ``_s``.
        metavar: what it takes.
        type: how a text is read, if not by the type of the field.
        several: whether it can be repeated, where the type of the field does not tell.
        callback: called with context, parameter and value before others are read.
        typed: whether a command line has it; else Python and plans of ``metasched results`` do.
    """

    help: str
    name: str = ""
    metavar: str | None = None
    type: ParamType | None = None
    several: bool = False
    callback: Any = None
    typed: bool = True


@dataclass(frozen=True)
class Argument:
    """An argument of a command.

    Attributes:
        help: what it means, for Python; a command says it in its own help.
        metavar: what --help calls it, if not by the name of the field.
        type: how a text is read, if not by the type of the field.
    """

    help: str
    metavar: str | None = None
    type: ParamType | None = None


@dataclass(frozen=True)
class PythonOnly:
    """A parameter of the Python function alone."""

    help: str


Declaration = Flag | Argument | PythonOnly


class Numbers(ParamType):
    """Numbers with commas between, ``0.7,1.1`` or ``70%,110%``, in one text.

    Args:
        kind: int, of numbers that are whole.
    """

    name = "text"
    reads_all = True

    def __init__(self, kind: type[int] | type[float] = float) -> None:
        self._kind = kind

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        """The numbers."""
        if not isinstance(value, str):
            return tuple(value)
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def read(self, text: str) -> tuple[float, ...]:
        """The numbers of a text; raises `ValueError` if it has others, or none."""
        try:
            numbers = tuple(self._number(part.strip()) for part in text.split(",") if part.strip())
        except ValueError:
            numbers = ()
        if not numbers or not all(map(math.isfinite, numbers)):
            some = (
                "whole numbers like 0,1,3" if self._kind is int else "numbers like 0.7,1.1 or 70%"
            )
            raise ValueError(f"values are {some}, not '{_shortened(text)}'")
        return numbers

    def _number(self, text: str) -> float:
        if self._kind is float and text.endswith("%"):
            return float(text[:-1]) / 100
        return self._kind(text)


class Time(ParamType):
    """A length of time, ``90s``, ``30m``, ``12h`` or ``5d``; a number is one of seconds."""

    name = "time"

    def __init__(self, least_s: float = 0) -> None:
        self._least_s = least_s

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Its seconds."""
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def read(self, text: str | float) -> float:
        """Its seconds; raises `ValueError` if it is no time, or too short a one."""
        from cluster_env.core.durations import seconds_of  # takes a second, so not for --help

        try:
            seconds = float(text)
        except ValueError:
            seconds = float(seconds_of(str(text)))
        if not self._least_s <= seconds < math.inf:
            raise ValueError(f"{text} is no time from {self._least_s:g} s")
        return seconds


def _shortened(text: str) -> str:
    from cluster_env.core.errors import shortened

    return shortened(text)


@dataclass(frozen=True)
class Field:
    """A field of a dataclass, or a parameter of a function, that is declared.

    Attributes:
        name: of the field.
        kind: its type, without what declares it.
        declaration: what declares it.
        default: its default; `MISSING` if it must be given.
        heading: what it stands below in --help.
    """

    name: str
    kind: Any
    declaration: Declaration
    default: Any
    heading: str = ""

    @property
    def option(self) -> str:
        """What it is called without dashes: ``jobsets`` of ``num_jobsets``."""
        said = self.declaration
        if isinstance(said, Argument):
            return self.name
        own = said.name if isinstance(said, Flag) else ""
        return own or self.name.removeprefix("num_").removesuffix("_s").replace("_", "-")

    @property
    def is_typed(self) -> bool:
        """Whether a command line has it."""
        return not isinstance(self.declaration, Flag) or self.declaration.typed

    @property
    def is_written(self) -> bool:
        """Whether it is a file or folder that the command writes."""
        return isinstance(getattr(self.declaration, "type", None), OutPath)

    @property
    def is_several(self) -> bool:
        """Whether it may be given more than once."""
        said = self.declaration
        return self._is_list or (isinstance(said, Flag) and said.several)

    @property
    def kind_of_one(self) -> Any:
        """The type of one value."""
        kind = _without_none(self.kind)
        return get_args(kind)[0] if self._is_list else kind

    @property
    def _is_list(self) -> bool:
        origin = get_origin(_without_none(self.kind))
        reads_all = getattr(getattr(self.declaration, "type", None), "reads_all", False)
        return isinstance(origin, type) and issubclass(origin, Sequence) and not reads_all


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    parts = [one for one in get_args(kind) if one is not types.NoneType]
    return Union[tuple(parts)]  # noqa: UP007 - of parts that are known here only


def split(annotation: Any) -> tuple[Any, Declaration | None]:
    """A type, and what declares it."""
    if get_origin(annotation) is not Annotated:
        return annotation, None
    kind, *said = get_args(annotation)
    declaration = next((one for one in said if isinstance(one, Declaration)), None)
    rest = tuple(one for one in said if not isinstance(one, Declaration))
    return (Annotated[(kind, *rest)] if rest else kind), declaration


def declared(options: type) -> Iterator[Field]:
    """The declared fields of a dataclass, in the order of its constructor."""
    owners = {
        name: owner
        for owner in reversed(options.__mro__)
        for name in vars(owner).get("__annotations__", ())
    }
    for one in fields(options):
        kind, declaration = split(one.type)
        if declaration is not None:
            default = one.default if one.default_factory is MISSING else one.default_factory()
            heading = vars(owners[one.name]).get("heading", "")
            yield Field(one.name, kind, declaration, default, heading)
