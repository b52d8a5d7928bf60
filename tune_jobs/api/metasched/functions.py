"""Public functions made of dataclasses of options, see `tune_jobs.commands`."""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, get_type_hints, overload

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.registry import unknown
from cluster_env.task import Task
from cluster_env.worlds import WORLDS
from rllib_configs.config.changes import Changes
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.commands.flags import Field, Flag, OptionValue, declared, split
from tune_jobs.terminal.progress import NoProgress, Progress

_TYPES = {
    "Changes": Changes,
    "ExperimentConfig": ExperimentConfig,
    "Path": Path,
    "Policy": Policy,
    "Sequence": Sequence,
    "Task": Task,
}
"""Types that fields of options name, without importing them."""

P = ParamSpec("P")
Options = TypeVar("Options")
Answer = TypeVar("Answer")
AnswerOf = TypeVar("AnswerOf", covariant=True)


class WorldFunction(Protocol[P, AnswerOf]):
    """A function that takes options of the world as further keywords: ``window=500``."""

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> AnswerOf: ...

    @overload
    def __call__(self, *args: Any, **options: Any) -> AnswerOf: ...


def takes(
    options: Callable[P, Options],
) -> Callable[[Callable[[Options], Answer]], Callable[P, Answer]]:
    """Makes a public function of one that takes a dataclass of options: it takes their fields.

    Its docstring lists them, each with the help that the command has.
    """

    def decorate(run: Callable[[Options], Answer]) -> Callable[P, Answer]:
        return _function(run, options, of_world=False)

    return decorate


def takes_with_world(
    options: Callable[P, Options],
) -> Callable[[Callable[[Options], Answer]], WorldFunction[P, Answer]]:
    """Makes a function like `takes`, which takes options of the world as further keywords."""

    def decorate(run: Callable[[Options], Answer]) -> WorldFunction[P, Answer]:
        return _function(run, options, of_world=True)

    return decorate


def _function(run: Callable[..., Any], options: Any, of_world: bool) -> Any:
    fields = {one.name: one for one in declared(options)}
    signature = _signature(run, options, fields, of_world)
    names = {one.option.replace("-", "_"): name for name, one in fields.items()}

    @wraps(run)
    def call(*args: Any, **given: Any) -> Any:
        bound = signature.bind(*args, **given).arguments
        if of_world:
            further = bound.pop(_FURTHER, {})
            for name in further:
                if name in names:
                    raise InputError(f"{run.__name__} calls this {names[name]}, not {name}")
            bound[_OF_WORLD] = task_options({**bound.get(_OF_WORLD, {}), **further})
        return run(options(**bound))

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = _documented(inspect.getdoc(run) or "", fields)
    return call


_FURTHER, _OF_WORLD = "options", "task_options"


def _signature(
    run: Callable[..., Any], options: Any, fields: Mapping[str, Field], of_world: bool
) -> inspect.Signature:
    """That of the dataclass' constructor, with types in place of their names."""
    types_of = get_type_hints(options, localns=_TYPES, include_extras=True)
    parameters = [
        one.replace(annotation=split(types_of[one.name])[0], default=_default(fields[one.name]))
        for one in inspect.signature(options).parameters.values()
        if one.name in fields
    ]
    if of_world:
        kind = inspect.Parameter.VAR_KEYWORD
        parameters.append(inspect.Parameter(_FURTHER, kind, annotation=OptionValue))
    answer = get_type_hints(run)["return"]
    return inspect.Signature(parameters, return_annotation=answer)


def _default(field: Field) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default


_SECTION = re.compile(r"^(?:Returns|Raises):$", re.MULTILINE)
_NAMED = re.compile(r"--([a-z][a-z-]*)")


def _documented(text: str, fields: Mapping[str, Field]) -> str:
    """A docstring with the fields, before what is returned and raised."""
    by_flag = {one.option: one for one in fields.values() if isinstance(one.declaration, Flag)}
    lines = ["Args:"]
    for name, one in fields.items():
        said = _NAMED.sub(
            lambda match: by_flag[match[1]].name if match[1] in by_flag else match[0],
            one.declaration.help,
        )
        said = f"if False: {said}" if one.default is True else said
        lines += textwrap.wrap(
            f"{name}: {said}", 96, initial_indent="    ", subsequent_indent=8 * " "
        )
    section = _SECTION.search(text)
    place = section.start() if section else len(text)
    head, tail = text[:place].rstrip(), text[place:]
    return "\n\n".join(part for part in (head, "\n".join(lines), tail) if part)


def task_options(options: Mapping[str, OptionValue]) -> dict[str, str]:
    """Options of a world as commands take them, ``max-wait`` for ``max_wait``.

    Raises:
        InputError: if no world has an option of that name.
    """
    load_extensions()
    specs = map(WORLDS.get, WORLDS.names())
    known = {name.replace("-", "_") for spec in specs for name in spec.presentation.options}
    for name in options:
        if name.replace("-", "_") not in known:
            raise unknown("option", name, known)
    return {name.replace("_", "-"): str(value) for name, value in options.items()}


def shown(progress: bool) -> Progress:
    """What shows how far a function is, on stderr, or nothing."""
    return Progress() if progress else NoProgress()
