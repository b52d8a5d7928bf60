"""Commands made of dataclasses, see `tune_jobs.commands`."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import click
from annotated_types import Interval

from tune_jobs.commands.flags import Argument, Field, Flag, ParamType, PythonOnly, declared, split
from tune_jobs.terminal.options import CONTEXT, POSITIVE, ZERO_OR_MORE, count
from tune_jobs.terminal.output import stdout_for_json

OPTIONS, OUTPUT = "Options", "Output"
_COMMON = ("debug", "help")
_NUMBERS = {int: "N", float: "NUMBER"}
"""What numbers are called."""


class OptionsCommand(click.Command):
    """A command whose --help lists options below the headings of what declares them.

    Attributes:
        taken: the dataclass of its options, if it has one.
        fields: what it takes, with what plans of ``metasched results`` say and nobody types.
        call: calls it with values by the names of fields.
    """

    taken: type | None = None
    fields: Sequence[Field]
    call: Callable[..., Any]

    def options_in(self, values: Mapping[str, Any]) -> Any:
        """The dataclass of values that the command line has, by name; others are left out."""
        assert self.taken is not None
        names = {one.name for one in fields(self.taken)}
        return self.taken(**{name: value for name, value in values.items() if name in names})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the options, each below its heading; those of all commands come last."""
        sections: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
        last = []
        for param in self.get_params(ctx):
            record = None if isinstance(param, click.Argument) else param.get_help_record(ctx)
            if record is not None and param.name in _COMMON:
                last.append(record)
            elif record is not None:
                heading = getattr(param, "heading", "") or OUTPUT
                sections.setdefault(heading, []).append(record)
        sections[OUTPUT] = [*sections.pop(OUTPUT, []), *last]
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def command(
    name: str, options: type | None = None, cls: type[OptionsCommand] = OptionsCommand
) -> Callable[[Callable[..., Any]], OptionsCommand]:
    """Makes a command of a function: it gets a dataclass of options, and what is its own.

    Args:
        name: of the command.
        options: the dataclass; without one all options are parameters of the function.
        cls: class of the command.
    """

    def decorate(run: Callable[..., Any]) -> OptionsCommand:
        own_heading = OPTIONS if options is None else OUTPUT
        own = _parameters(run, own_heading)
        taken = [*(() if options is None else declared(options)), *own]
        taken = [one for one in taken if not isinstance(one.declaration, PythonOnly)]

        def call(**values: Any) -> Any:
            with stdout_for_json() if values.get("as_json") else nullcontext():
                if options is None:
                    return run(**values)
                own = made.options_in(values)
                names = {one.name for one in fields(own)}
                rest = {name: value for name, value in values.items() if name not in names}
                return run(own, **rest)

        made = cls(
            name,
            callback=call,
            params=[parameter(one) for one in taken if one.is_typed],
            help=inspect.cleandoc(run.__doc__ or ""),
            context_settings=CONTEXT,
        )
        made.taken, made.fields, made.call = options, taken, call
        return made

    return decorate


def _parameters(run: Callable[..., Any], heading: str) -> Iterator[Field]:
    """The parameters of a function that are declared."""
    for one in inspect.signature(run).parameters.values():
        kind, declaration = split(one.annotation)
        if declaration is not None:
            default = MISSING if one.default is one.empty else one.default
            yield Field(one.name, kind, declaration, default, heading)


def parameter(field: Field) -> click.Parameter:
    """The option or argument of a field."""
    said, default, kind = field.declaration, field.default, field.kind_of_one
    several, required = field.is_several, default is MISSING
    # A default of None would stand for what is missing.
    chosen: dict[str, Any] = {} if required or several else {"default": default}
    if isinstance(said, Argument):
        return click.Argument(
            [field.name],
            type=said.type or _type_of(kind),
            metavar=said.metavar,
            required=required,
            nargs=-1 if several else 1,
            **chosen,
        )
    assert isinstance(said, Flag)
    name = field.option
    flags, is_flag = f"--{name}", kind is bool and said.type is None
    if is_flag and default is None:
        flags = f"--{name}/--no-{name}"
    option = click.Option(
        [flags, field.name],
        type=None if is_flag else said.type or _type_of(kind),
        is_flag=is_flag or None,  # with False, the last word may be an option without a value
        metavar=said.metavar or _NUMBERS.get(get_args(kind)[0] if get_args(kind) else kind),
        multiple=several,
        required=required,
        help=said.help,
        show_default=False if default == "" else None,
        callback=said.callback,
        is_eager=said.callback is not None,
        **chosen,
    )
    option.heading = field.heading or OPTIONS  # type: ignore[attr-defined]
    return option


def _type_of(kind: Any) -> ParamType:
    """How a text is read into a type."""
    kind, interval = kind, None
    if get_origin(kind) is Annotated:
        kind, interval = get_args(kind)[0], get_args(kind)[1]
    if isinstance(interval, Interval):
        return _number(kind, interval)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is Path or Path in get_args(kind):
        return click.Path(path_type=Path)
    return click.STRING


def _number(kind: type, interval: Interval) -> ParamType:
    if kind is float:
        return POSITIVE if interval.gt is not None else ZERO_OR_MORE
    most: Any = interval.le if interval.le is not None else interval.lt - 1  # type: ignore[operator]
    least: Any = interval.ge
    return count(least, most)
