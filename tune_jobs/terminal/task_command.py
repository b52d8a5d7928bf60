"""Commands about a task: they take the options of its world beside their own."""

from collections import defaultdict
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from cluster_env.core.spec import CliOption, WorldSpec

_OPTIONS = "tune_jobs.options_of_worlds"  # where the context of a command keeps them


class TaskCommand(click.Command):
    """A command that takes the options of all worlds, such as ``--window 500``.

    What is given reaches the command as one argument, ``task_options``: texts by name. An option of
    the same name that the command has itself goes first. Importing the worlds takes a second; so
    they are asked for --help alone, and where an option is none of the command's own.
    """

    shown_worlds: tuple[str, ...] | None = None
    """Those whose options the command takes; all if None."""

    without: tuple[str, ...] = ()
    """Options of worlds that have no effect on the command, so that they are refused."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, and those of the worlds once these were asked."""
        return [*super().get_params(ctx), *ctx.meta.get(_OPTIONS, ())]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line; an option that is unknown may be one of a world."""
        try:
            rest = super().parse_args(ctx, list(args))
        except click.NoSuchOption:
            own = {option for param in self.params for option in param.opts}
            names = {option for _, spec in self._shown() for option, _, _ in self._entries(spec)}
            idle = {f"--{name}" for _, spec in _worlds() for name in spec.presentation.options}
            ctx.meta[_OPTIONS] = [
                click.Option(
                    [name],
                    hidden=True,
                    expose_value=False,
                    callback=_keep if name in names else _refuse,
                )
                for name in sorted((names | idle) - own)
            ]
            rest = super().parse_args(ctx, args)
            _move_values_of_axis(ctx)
        ctx.params.setdefault("task_options", {})
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the command's options, then those of each world; one of several worlds once."""
        super().format_options(ctx, formatter)
        own = {option for param in self.params for option in param.opts}
        worlds_of: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        for world, spec in self._shown():
            for option, metavar, about in self._entries(spec):
                if option not in own:
                    worlds_of[option][world] = metavar, about
        sections: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for option, entries in worlds_of.items():
            several = len(entries) > 1
            title = f"Options in the world{'s' if several else ''} {' and '.join(entries)}"
            metavars = "|".join(dict.fromkeys(metavar for metavar, _ in entries.values()))
            texts = [
                f"{world}: {text}" if several else text for world, (_, text) in entries.items()
            ]
            sections[title].append((f"{option} {metavars}", " ".join(texts)))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def options_of(self, spec: "WorldSpec") -> "dict[str, CliOption]":
        """Options of a world that have an effect on the command, by name."""
        options = spec.presentation.options
        return {name: options[name] for name in options if name not in self.without}

    def _shown(self) -> "list[tuple[str, WorldSpec]]":
        shown = self.shown_worlds
        return [(name, spec) for name, spec in _worlds() if shown is None or name in shown]

    def _entries(self, spec: "WorldSpec") -> list[tuple[str, str, str]]:
        """Options of a world, each with what it takes and a line about it."""
        options, axis = self.options_of(spec), spec.presentation.axis
        entries = [(f"--{name}", one.metavar, one.about) for name, one in options.items()]
        if axis is not None and axis.option and any(param.name == "at" for param in self.params):
            entries.append((f"--{axis.option}", "VALUE,...", f"The same as --at, for {axis.key}."))
        return entries


class LogCommand(TaskCommand):
    """A command about the log or the queue of a site, which only the world `hpc` describes."""

    shown_worlds = ("hpc",)

    def options_of(self, spec: "WorldSpec") -> "dict[str, CliOption]":
        """Those that have an effect on a whole log."""
        options = super().options_of(spec)
        return {name: one for name, one in options.items() if not one.draws_jobs}


def _worlds() -> "list[tuple[str, WorldSpec]]":
    from cluster_env.worlds import WORLDS
    from rllib_configs.extensions import load_extensions

    load_extensions()
    return [(name, WORLDS.get(name)) for name in WORLDS.names()]


def _keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.params.setdefault("task_options", {})[option.opts[0][2:]] = value


def _refuse(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"{option.opts[0]} has no effect here, so leave it out", context)


def _move_values_of_axis(context: click.Context) -> None:
    given = context.params.get("task_options", {})
    for _, spec in _worlds():
        axis = spec.presentation.axis
        if axis is not None and axis.option in given:
            context.params["at"] = given.pop(axis.option)
            context.set_parameter_source("at", ParameterSource.COMMANDLINE)
