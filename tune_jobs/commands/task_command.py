"""Commands about a task: they take the options of its world beside their own."""

import textwrap
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tune_jobs.commands.command_line import OptionsCommand

if TYPE_CHECKING:
    from cluster_env.core.spec import CliOption, WorldSpec

_OPTIONS = "tune_jobs.options_of_worlds"  # where the context of a command keeps them
_CONFIG = "tune_jobs.config"


class TaskCommand(OptionsCommand):
    """A command that takes the options of all worlds, such as ``--window 500``.

    What is given reaches the command as one argument, ``task_options``: texts by name. An option of
    the same name that the command has itself goes first. Importing the worlds takes a second; so
    they are asked for where an option is none of the command's own, and for --help beside a
    ``--config``, whose world's options it lists.
    """

    worlds: tuple[str, ...] | None = None
    """Those whose options the command takes; all if None."""

    lists_world = True
    """Whether --help lists them."""

    explained_by = ""
    """The command whose --help explains them, where this one's only names them."""

    without: tuple[str, ...] = ()
    """Options of worlds that have no effect on the command, so that they are refused."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, and those of the worlds once these were asked."""
        return [*super().get_params(ctx), *ctx.meta.get(_OPTIONS, ())]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line; an option that is unknown may be one of a world."""
        if "--config" in args[:-1]:
            ctx.meta[_CONFIG] = args[args.index("--config") + 1]
        try:
            rest = super().parse_args(ctx, list(args))
        except click.NoSuchOption:
            own = {option for param in self.params for option in param.opts}
            taken = [(name, spec) for name, spec in _worlds() if name in (self.worlds or (name,))]
            names = {option for _, spec in taken for option, _, _ in self._entries(spec)}
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
        """Lists the command's options, then those of the world at hand."""
        super().format_options(ctx, formatter)
        if not self.lists_world:
            return
        own = {option for param in self.params for option in param.opts}
        world = self._world(ctx)
        if world is None:
            with formatter.section("Options of a world"):
                formatter.write_text(
                    f"metasched {self.name} --config PRESET --help lists those of the world of "
                    "PRESET."
                )
            return
        spec = dict(_worlds())[world]
        entries = [entry for entry in self._entries(spec) if entry[0] not in own]
        with formatter.section(f"Options in the world {world}"):
            if self.explained_by in ("", self.name):
                formatter.write_dl([(f"{name} {takes}", about) for name, takes, about in entries])
                return
            names = ", ".join(name for name, _, _ in entries)
            text = f"{names}; metasched {self.explained_by} --help explains them"
            indent = " " * formatter.current_indent
            for line in textwrap.wrap(text, formatter.width, break_on_hyphens=False):
                formatter.write(f"{indent}{line}\n")

    def _world(self, ctx: click.Context) -> str | None:
        """The world at hand: the only one of the command, or that of the config."""
        if self.worlds is not None:
            return self.worlds[0]
        default = next((one.default for one in self.params if "--config" in one.opts), None)
        config = ctx.meta.get(_CONFIG, default)
        if config is None:
            return None
        from rllib_configs.config.loading import load_config

        return load_config(config).task.world.kind

    def options_of(self, spec: "WorldSpec") -> "dict[str, CliOption]":
        """Options of a world that have an effect on the command, by name."""
        options = spec.presentation.options
        return {name: options[name] for name in options if name not in self.without}

    def _entries(self, spec: "WorldSpec") -> list[tuple[str, str, str]]:
        """Options of a world, each with what it takes and a line about it."""
        options, axis = self.options_of(spec), spec.presentation.axis
        entries = [(f"--{name}", one.metavar, one.about) for name, one in options.items()]
        if axis is not None and axis.option and any(param.name == "at" for param in self.params):
            entries.append((f"--{axis.option}", "VALUE,...", f"The same as --at, for {axis.key}."))
        return entries


class LogCommand(TaskCommand):
    """A command about the log or the queue of a site, which only the world `hpc` describes."""

    worlds = ("hpc",)
    explained_by = "replay"

    def options_of(self, spec: "WorldSpec") -> "dict[str, CliOption]":
        """Those that have an effect on a whole log."""
        options = super().options_of(spec)
        return {name: one for name, one in options.items() if not one.draws_jobs}


class LiveCommand(LogCommand):
    """A command at a live site: options of the world are those of a simulated one, as of replay."""

    lists_world = False


def _worlds() -> "list[tuple[str, WorldSpec]]":
    from cluster_env.worlds import WORLDS
    from rllib_configs.config.extensions import load_extensions

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
            at = next(param for param in context.command.params if param.name == "at")
            context.params["at"] = at.type.convert(given.pop(axis.option), at, context)
            context.set_parameter_source("at", ParameterSource.COMMANDLINE)
