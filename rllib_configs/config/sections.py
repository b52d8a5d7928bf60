"""Parts of a config, and how a frozen dataclass becomes one."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast, get_args, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from cluster_env.core.checks import FromFile, converted
from cluster_env.core.errors import InputError
from cluster_env.workloads.shipped import is_shipped
from rllib_configs.config.extensions import load_extensions

Share = Annotated[float, Field(ge=0, le=1)]
MOST = 1_000_000_000
"""Of what can be counted; whoever asks for more has mistyped."""
Count = Annotated[int, Field(ge=1, le=MOST)]
WholeNumber = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Width = Annotated[int, Field(ge=1, le=4096)]
"""Units of a layer; the weights of a wider one fit into no memory."""
Positive = Annotated[float, Field(gt=0)]
ADJUSTABLE = "adjustable"
"""Mark of an option that may change in the middle of a run, as population based training does it:
``lr: Annotated[float, ADJUSTABLE]``. It has no say in shapes, jobs or the length of the run."""


class Section(BaseModel):
    """A part of the config: typed, immutable, and strict about its keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _unset(cls, value: Any, info: ValidationInfo) -> Any:
        """Lets null, which an empty ``--set KEY=`` is, unset a text that is unset when empty."""
        default = cls.model_fields[str(info.field_name)].default
        return "" if value is None and default == "" else value


class DerivedSection(Section):
    """The settings of a frozen dataclass; made by `section_of`."""

    # Their words come with the fields. Pydantic would look for them in the source of every caller.
    model_config = ConfigDict(use_attribute_docstrings=False)

    origin: ClassVar[tuple[type[Any], str, frozenset[str]]]
    """Arguments of `section_of`."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @field_validator("*")
    @classmethod
    def _make_paths_absolute(cls, value: Any) -> Any:
        """Lets a run be resumed from elsewhere; a name of a shipped log is one everywhere."""
        if not isinstance(value, Path) or is_shipped(value):
            return value
        return value.expanduser().absolute()

    def __reduce__(self) -> tuple[Any, ...]:
        """See `restored`."""
        return restored, (section_of, self.origin, self.__getstate__())

    def build(self, decided: Mapping[str, Any] | None = None) -> Any:
        """Builds the dataclass.

        Args:
            decided: fields that are no settings, by name.

        Raises:
            InputError: if it refuses its values.
        """
        values = {name: value for name, value in self if name != "kind"}
        return self.origin[0](**values, **(decided or {}))

    @classmethod
    def of(cls, thing: Any) -> Self:
        """The settings of a dataclass, from which `build` makes its equal."""
        names = [name for name in cls.model_fields if name != "kind"]
        return cls.model_validate({name: getattr(thing, name) for name in names})


def section_of(
    kind: type[Any], name: str = "", left_out: frozenset[str] = frozenset()
) -> type[DerivedSection]:
    """The section whose keys are the fields of a frozen dataclass.

    Paths become absolute, and what the docstring says under ``Attributes`` becomes the keys'
    description.

    Args:
        kind: the dataclass.
        name: by which a config chooses it, the key ``kind``; empty if it is no choice.
        left_out: fields that are not settings.

    Raises:
        TypeError: if it is no dataclass, or has a field that is called ``kind``.
    """
    return _section_of(cast("Any", kind), name, left_out)


@cache
def _section_of(kind: Any, name: str, left_out: frozenset[str]) -> type[DerivedSection]:
    known: bool = is_dataclass(kind)
    if not known:
        raise TypeError(f"the settings of {kind.__name__} are its fields, so it is a dataclass")
    hints, descriptions = get_type_hints(kind, include_extras=True), _descriptions(kind)
    keys: dict[str, Any] = {"kind": (str, name)} if name else {}
    for entry in fields(kind):
        if entry.name == "kind":
            raise TypeError(f"{kind.__name__} has a field 'kind', which configs use for its name")
        if entry.name in left_out or not entry.init:
            continue
        options: dict[str, Any] = {"description": descriptions.get(entry.name)}
        if entry.default is not MISSING:
            options["default"] = entry.default
        elif entry.default_factory is not MISSING:
            options["default_factory"] = entry.default_factory
        hint = hints[entry.name]
        if Path in get_args(hint):  # text is a path, too
            hint = Path | None if NoneType in get_args(hint) else Path
        for mark in get_args(hint):
            if isinstance(mark, FromFile):
                make = partial(converted, hint, what=f"option of {entry.name}")
                hint = Annotated[hint, BeforeValidator(make)]
        keys[entry.name] = (hint, Field(**options))
    section = create_model(
        f"{kind.__name__}Section", __base__=DerivedSection, __module__=__name__, **keys
    )
    section.origin = (kind, name, left_out)
    section.__doc__ = kind.__doc__
    return section


def _descriptions(kind: type[Any]) -> dict[str, str]:
    """What docstrings say of each field: of the class, before those that it inherits from."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        text = cleandoc(part.__doc__ or "").partition("Attributes:\n")[2]
        for name, words in re.findall(r"^ +(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE):
            found[name] = " ".join(words.split())
    return found


def restored(
    make: Callable[..., type[Section]], arguments: tuple[Any, ...], state: dict[Any, Any]
) -> Section:
    """A section from a pickle: its class is made anew, because no module holds it.

    Args:
        make: makes the class.
        arguments: of `make`.
        state: of the section.
    """
    load_extensions()  # in a new process
    kind = make(*arguments)
    section = kind.__new__(kind)
    section.__setstate__(state)
    return section


def validated(section: type[Section], data: Any) -> Any:
    """Checks a part inside a validator of the whole, so that errors name the key in the part."""
    try:
        return section.model_validate(data)
    except ValidationError as error:
        raise PydanticCustomError("nested", "", {"error": error, "model": section}) from None


@contextmanager
def refusing(key: str) -> Iterator[None]:
    """Errors of what is done inside begin with the key of the setting that is at fault.

    Raises:
        InputError: with the key.
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{key}: {error}") from None


@contextmanager
def refusing_choice(key: str) -> Iterator[None]:
    """Likewise inside a validator, of a key of its section that chooses something by name.

    Raises:
        PydanticCustomError: that names the key.
    """
    try:
        yield
    except InputError as error:
        context = {"error": str(error), "key": key}
        raise PydanticCustomError("choice", "{error}", context) from None
