"""What is wrong with a command line that click refuses, as one sentence with what was meant."""

import re
import shlex

import click

from cluster_env.core.registry import nearest
from cluster_env.core.removed import was_removed
from cluster_env.worlds import WORLDS, get_spec, shipped_policies
from rllib_configs.config.explaining import settings_named
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.schema import ExperimentConfig

_EXTRA = re.compile(r"unexpected extra arguments? \((.+)\)")
_TAKE_POLICIES = ("--policies", "--policy")


def explain_usage(error: click.ClickException, program: str) -> str:
    """The sentence for the user.

    An option or argument that is the name of a setting is answered with ``--set``, where the
    command has it; one of the function in Python with that; another unknown option with the one
    that is spelled most like it.

    Args:
        error: what click found.
        program: how the program is called, for errors that belong to no command.
    """
    context = getattr(error, "ctx", None)
    message, hint = error.format_message(), ""
    if context is not None and isinstance(error, click.UsageError):
        params = context.command.get_params(context)
        options = [name for each in params for name in each.opts]
        extra = _EXTRA.search(message)
        if isinstance(error, click.NoSuchOption):
            name = error.option_name
            gone = was_removed(f"option of {context.command.name}", name.lstrip("-"))
            message = gone or f"no such option '{name}'"
            longer = [option for option in options if option.startswith(name)]
            if not gone and not longer:
                hint = _as_setting(name.lstrip("-"), "VALUE", options)
                hint = hint or _as_argument(name, context.command)
            hint = hint if gone or hint else _as_option(name, longer or options)
        elif extra:
            words = extra[1].split()
            name, is_setting, value = words[0].partition("=")
            hint = _as_setting(name, value, options) if is_setting else _as_policies(words, options)
    message = " ".join(message.split()).rstrip(".")
    path = program if context is None else context.command_path
    return f"{message[:1].lower()}{message[1:]}{hint} ({path} --help says what there is)"


def _as_setting(name: str, value: str, options: list[str]) -> str:
    """Asks whether a setting was meant; empty where none has the name, or none can be given."""
    if "--set" not in options:
        return ""
    name = name.replace("-", "_")
    keys = [name] if "." in name else settings_named(name, ExperimentConfig)
    shown = " or ".join(f"--set {key}={value}" for key in keys)
    return f": did you mean {shown}?" if shown else ""


def _as_argument(name: str, command: click.Command) -> str:
    """Asks whether the function in Python was meant; empty where it has no such argument."""
    fields = getattr(command, "fields", ())
    untyped = {f"--{one.option}": one.name for one in fields if not one.is_typed}
    said = untyped.get(name)
    return f": did you mean metasched.{command.name}({said}=VALUE)?" if said else ""


def _as_policies(words: list[str], options: list[str]) -> str:
    """Asks whether policies were meant; empty unless all are, and there is an option for them."""
    option = next((one for one in _TAKE_POLICIES if one in options), "")
    load_extensions()
    known = {
        *shipped_policies(),
        *(rule for world in WORLDS.names() for rule in get_spec(world).heuristics.names()),
    }
    names = {name.partition(":")[0] for word in words for name in word.split(",")}
    if not option or not names <= known:
        return ""
    return f": did you mean {shlex.join([option, ','.join(words)])}?"


def _as_option(name: str, options: list[str]) -> str:
    near = [option for option in nearest(name, options) if option != "--help"]
    return f": did you mean '{near[0]}'?" if near else ""
