"""Parts of a config, and how a frozen dataclass becomes one."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import Field as DataclassField
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Self,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError

Share = Annotated[float, Field(ge=0, le=1)]
MOST = 1_000_000_000
"""Of what can be counted; whoever asks for more has mistyped."""
Count = Annotated[int, Field(ge=1, le=MOST)]
WholeNumber = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Width = Annotated[int, Field(ge=1, le=4096)]
"""Units of a layer; the weights of a wider one fit into no memory."""
Positive = Annotated[float, Field(gt=0)]

_ABSOLUTE = AfterValidator(lambda path: path.expanduser().absolute())


class Section(BaseModel):
    """A part of the config: typed, immutable, and strict about its keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_for_numbers(cls, given: Any, info: ValidationInfo) -> Any:
        """To Python, true is a 1."""
        hint = cls.model_fields[str(info.field_name)].annotation
        if _holds_truth(given) and _is_of_numbers(hint):
            raise PydanticCustomError("number", "input should be a number, not true or false")
        return given


class DerivedSection(Section):
    """The settings of a frozen dataclass; made by `section_of`."""

    # Their words come with the fields. Pydantic would look for them in the source of every caller.
    model_config = ConfigDict(use_attribute_docstrings=False)

    origin: ClassVar[tuple[type[Any], str, frozenset[str]]]
    """Arguments of `section_of`."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by what the class was made from, because no module holds the class itself."""
        return _restored, (self.origin, self.__getstate__())

    def build(self, given: Mapping[str, Any] | None = None) -> Any:
        """Builds the dataclass.

        Args:
            given: fields that are no settings, by name.

        Raises:
            SectionError: if it refuses its values.
        """
        values = {name: _built(value, (name,)) for name, value in self if name not in ("kind",)}
        try:
            return self.origin[0](**{**values, **(given or {})})
        except InputError as error:
            raise SectionError((), str(error)) from None

    @classmethod
    def of(cls, thing: Any) -> Self:
        """The settings of a dataclass, from which `build` makes its equal."""
        names = [name for name in cls.model_fields if name != "kind"]
        return cls.model_validate({name: _plain(getattr(thing, name)) for name in names})


class SectionError(InputError):
    """A part of a config that is well-formed but cannot be built.

    Attributes:
        path: keys from the section that was built to the one that is wrong.
        text: what is wrong with it.
    """

    def __init__(self, path: tuple[str, ...], text: str) -> None:
        super().__init__(f"{'.'.join(path)}: {text}" if path else text)
        self.path, self.text = path, text

    def __reduce__(self) -> tuple[Any, ...]:
        """Exceptions pickle by their message alone."""
        return SectionError, (self.path, self.text)

    def inside(self, *keys: str) -> "SectionError":
        """The same error, seen from further outside."""
        return SectionError((*keys, *self.path), self.text)


def section_of(
    kind: type[Any], name: str = "", left_out: frozenset[str] = frozenset()
) -> type[DerivedSection]:
    """The section whose keys are the fields of a frozen dataclass.

    Fields that are dataclasses become sections in turn, paths become absolute, and what the
    docstring says under ``Attributes`` becomes the keys' description.

    Args:
        kind: the dataclass.
        name: by which a config chooses it, the key ``kind``; empty if it is no choice.
        left_out: fields that are not settings.

    Raises:
        TypeError: if it is no dataclass, or has a field that is called ``kind``.
    """
    return _made(cast("Any", kind), name, left_out)


@cache
def _made(kind: Any, name: str, left_out: frozenset[str]) -> type[DerivedSection]:
    known: bool = is_dataclass(kind)
    if not known:
        raise TypeError(f"the settings of {kind.__name__} are its fields, so it is a dataclass")
    hints = get_type_hints(kind, include_extras=True)
    words = _described(kind)
    keys: dict[str, Any] = {"kind": (str, name)} if name else {}
    for entry in fields(kind):
        if entry.name == "kind":
            raise TypeError(f"{kind.__name__} has a field 'kind', which configs use for its name")
        if entry.name in left_out or not entry.init:
            continue
        options: dict[str, Any] = {"description": words.get(entry.name), **_default(entry)}
        keys[entry.name] = (_converted(hints[entry.name]), Field(**options))
    made = create_model(
        f"{kind.__name__}Section", __base__=DerivedSection, __module__=__name__, **keys
    )
    made.origin = (kind, name, left_out)
    made.__doc__ = kind.__doc__
    return made


def validated(section: type[Section], data: Any) -> Any:
    """Checks a part inside a validator of the whole, so that errors name the key in the part."""
    try:
        return section.model_validate(data)
    except ValidationError as error:
        raise PydanticCustomError("nested", "", {"error": error, "model": section}) from None


def refused(error: InputError) -> PydanticCustomError:
    """An error of ours inside a validator."""
    path, text = (error.path, error.text) if isinstance(error, SectionError) else ((), str(error))
    return PydanticCustomError("refused", "{text}", {"path": path, "text": text})


def _holds_truth(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_truth, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_truth, value))
    return isinstance(value, bool)


def _is_of_numbers(hint: Any) -> bool:
    """Whether a type has numbers in it, and nothing that may be true."""
    return _mentions(hint, int, float) and not _mentions(hint, bool, BaseModel, Any)


def _mentions(hint: Any, *kinds: Any) -> bool:
    if get_args(hint):
        return any(_mentions(part, *kinds) for part in get_args(hint))
    return hint in kinds or (
        isinstance(hint, type) and BaseModel in kinds and issubclass(hint, BaseModel)
    )


def _restored(origin: tuple[Any, ...], state: dict[Any, Any]) -> DerivedSection:
    kind = section_of(*origin)
    made = kind.__new__(kind)
    made.__setstate__(state)
    return made


def _converted(hint: Any) -> Any:
    """A field's type with sections in place of dataclasses."""
    if hint is Path or (_is_union(hint) and Path in get_args(hint)):
        absolute = Annotated[Path, _ABSOLUTE]
        return absolute | None if type(None) in get_args(hint) else absolute
    if isinstance(hint, type) and is_dataclass(hint):
        return section_of(hint)
    if _is_union(hint):
        return reduce(or_, (_converted(part) for part in get_args(hint)))
    if get_origin(hint) in (tuple, list, dict):
        parts = tuple(part if part is ... else _converted(part) for part in get_args(hint))
        return get_origin(hint)[parts]
    return hint


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _default(entry: "DataclassField[Any]") -> dict[str, Any]:
    if entry.default is not MISSING:
        return {"default": _sections(entry.default)}
    if entry.default_factory is not MISSING:
        return {"default": _sections(entry.default_factory())}
    return {}


def _sections(value: Any) -> Any:
    """A value with sections in place of dataclasses."""
    if is_dataclass(value) and not isinstance(value, type):
        return section_of(type(value)).of(value)
    return value


def _plain(value: Any) -> Any:
    """A value with tables in place of dataclasses."""
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value


def _built(value: Any, path: tuple[str, ...]) -> Any:
    """A value with dataclasses in place of sections."""
    if isinstance(value, DerivedSection):
        try:
            return value.build()
        except SectionError as error:
            raise error.inside(*path) from None
    if isinstance(value, tuple | list):
        return type(value)(_built(part, path) for part in value)
    return value


def _described(kind: type[Any]) -> dict[str, str]:
    """What docstrings say of each field: of the class, before those that it inherits from."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        found |= _described_in(part.__doc__ or "")
    return found


def _described_in(text: str) -> dict[str, str]:
    """What one docstring says under ``Attributes``, by name."""
    lines = text.partition("Attributes:\n")[2].splitlines()
    found: dict[str, str] = {}
    name, inner = "", None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip() or (inner is not None and indent < inner):
            break
        inner = indent if inner is None else inner
        if indent == inner:
            name, _, text = line.strip().partition(": ")
            found[name] = text
        else:
            found[name] += f" {line.strip()}"
    return found
