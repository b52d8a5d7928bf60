"""Whether all commands of an experiment can be given, before the first one is."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import click

from cluster_env.core.errors import InputError, shortened
from rllib_configs.loading import load_config, read_config
from tune_jobs.comparing.trained_runs import find_runs, is_heuristic
from tune_jobs.experiments.commands import Command

Parse = Callable[[Sequence[str]], object]
"""What reads a command line as the program would; it raises what the program reports."""

_SHOWN = 80  # characters of a command, so that what is wrong with it has room
_NOT_IN_OUT = ",[]*?"
_OF_POLICIES = ("--policies", "--runs")


def check_commands(commands: Sequence[Command], out: Path, parse: Parse) -> None:
    """Makes sure that each command, option, preset, setting, figure and policy exists.

    Presets are read with their settings once, whatever the seed. Policies that are paths may have
    to be made yet, and so may those that a command writes.

    Args:
        commands: all of the experiment.
        out: its folder.
        parse: reads a command line.

    Raises:
        InputError: if a command could not be given, or the folder's name has a character that
            separates or stands for names of runs.
    """
    wrong = next((sign for sign in _NOT_IN_OUT if sign in str(out)), None)
    if wrong is not None:
        raise InputError(
            f"the folder {out} has '{wrong}' in its name, which commands would read as part of a "
            f"list or a glob of runs; give another one with --out"
        )
    written = {text for command in commands for text in command.after("--out")}
    loaded: set[tuple[str, ...]] = set()
    for command in commands:
        try:
            parse(command.words)
            if command.run is not None:
                given = (command.words[1], *command.after("--set"))
                if given not in loaded:
                    load_config(given[0], given[1:])
                loaded.add(given)
            else:
                _check_names(command, written)
        except click.UsageError as error:
            problem = " ".join(error.format_message().split())
            raise _refusal(command, problem) from None
        except InputError as error:
            raise _refusal(command, str(error)) from None


def _refusal(command: Command, problem: str) -> InputError:
    return InputError(f"'{shortened(str(command), _SHOWN)}' cannot be given: {problem}")


def _check_names(command: Command, written: Collection[str]) -> None:
    """Those of presets and policies."""
    for source in command.after("--config"):
        if not source.endswith((".yaml", ".yml")):  # which a command before may write
            read_config(source)
    for text in (text for flag in _OF_POLICIES for text in command.after(flag)):
        for name in filter(None, text.split(",")):
            if "/" not in name and name not in written and not is_heuristic(name):
                find_runs([name])
