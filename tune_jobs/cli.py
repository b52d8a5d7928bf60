"""The command line: ``metasched COMMAND``, or ``python -m tune_jobs.COMMAND``.

Exit status: 0 done, 1 something failed, 2 the user's input is at fault, 130 Ctrl-C, 143 SIGTERM.
"""

import importlib
import logging
import shutil
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

PACKAGES = ("cluster_env", "rllib_configs", "meta", "tune_jobs")

# Said here and not only in the modules, so that --help imports none of them.
COMMANDS = {
    "train": "Train a scheduler on Ray.",
    "tune": "Try many settings, on Ray Tune.",
    "compare": "Compare learned policies and heuristics on unseen jobsets.",
    "guard": "Decide between a learned policy and the best heuristic.",
    "adapt": "Adapt a trained policy to a task, in seconds.",
    "study": "Measure how runs adapt to unseen tasks, for figures.",
    "specialists": "Train for held-out tasks, one by one.",
    "figure": "Draw a figure of a paper, or of ours.",
    "demo": "Train, compare and draw, in a few minutes.",
    "bench": "Measure throughput against a reference.",
    "ui": "Open the MLflow page of the local store.",
    "sync": "Send MLflow what it missed while it was away.",
}

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}

_OK, _FAILED, _BAD_INPUT, _INTERRUPTED, _TERMINATED = 0, 1, 2, 130, 143

_debug = False


def debugging() -> bool:
    """Whether the user asked for --debug."""
    return _debug


def program() -> str:
    """How the user can call this program from the present folder, for hints."""
    if shutil.which("metasched"):
        return "metasched"
    script = Path(sys.executable).with_name("metasched")
    if not script.exists():
        return "metasched"
    inside = script.is_relative_to(Path.cwd())
    return str(script.relative_to(Path.cwd()) if inside else script)


def _start_debugging(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    global _debug
    if value:
        _debug = True
        for package in PACKAGES:
            logging.getLogger(package).setLevel(logging.DEBUG)


def _add_debug_option(command: click.Command) -> click.Command:
    """Lets ``--debug`` stand behind a command as well as in front of it."""
    if not any(parameter.name == "debug" for parameter in command.params):
        command.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_start_debugging,
                help="Show tracebacks and what the libraries say.",
            )
        )
    return command


class LazyGroup(click.Group):
    """A group that imports the module of a command when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tune_jobs.{cmd_name}")
        return _add_debug_option(module.command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command; an unknown one is answered with the nearest name."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from cluster_env.core.registry import unknown

            raise unknown("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands from `COMMANDS`, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("metasched")
    except PackageNotFoundError:
        number = "(not installed; run make install)"
    click.echo(f"metasched {number}")
    context.exit()


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def metasched() -> None:
    """Trains cluster schedulers on Ray, and compares them with those that people use today.

    \b
    Examples:
      metasched demo                               train, compare and draw, in a few minutes
      metasched train deeprm --set task.workload.load=1.1
      metasched tune learning-rate                 which settings are best
      metasched compare --policies sjf,tetris,runs/MY_RUN --loads 0.7,1.1
      metasched adapt runs/MY_RUN --task objective=makespan --steps 3
      metasched ui                                 what was recorded, in the browser

    'metasched COMMAND --help' says more about a command.
    """


_add_debug_option(metasched)


def main() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(run(metasched))


def run_command(command: click.Command) -> NoReturn:
    """Runs one command by itself, for ``python -m tune_jobs.NAME``."""
    sys.exit(run(_add_debug_option(command), prog_name=f"metasched {command.name}"))


def run(
    command: click.Command, args: Sequence[str] | None = None, prog_name: str = "metasched"
) -> int:
    """Runs a command and turns what happens into an exit status and at most one line.

    Args:
        command: the command or group.
        args: the command line; by default that of the process.
        prog_name: what usage texts call the program.
    """
    from tune_jobs.terminal.ray_environment import prepare_environment

    global _debug
    _debug = False
    prepare_environment()
    logs = _log_to_stderr()
    previous = _catch_sigterm()
    try:
        status: Any = command.main(args=args, prog_name=prog_name, standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else _OK
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else _FAILED
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", _INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return _BAD_INPUT
    except click.ClickException as error:
        return _complain(_usage(error, prog_name), error.exit_code)
    except BrokenPipeError:
        return _FAILED
    except Exception as error:
        if (known := _known_status(error)) is not None:
            return _complain(str(error), known)
        first_line = (str(error).strip() or "no message").splitlines()[0]
        hint = "" if _debug else " (--debug shows where)"
        return _complain(f"failed with {type(error).__name__}: {first_line}{hint}", _FAILED)
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)
        for package in PACKAGES:
            logging.getLogger(package).removeHandler(logs)


def _known_status(error: Exception) -> int | None:
    """Exit status of an error whose message says all; None of any other."""
    from cluster_env.core.errors import Failure, InputError  # takes a second, so not for --help

    if isinstance(error, InputError):
        return _BAD_INPUT
    return _FAILED if isinstance(error, Failure) else None


def _complain(message: str, status: int) -> int:
    from cluster_env.core.secrets import hide_secrets

    if _debug:
        click.echo(hide_secrets(traceback.format_exc()), err=True, nl=False)
    click.echo(hide_secrets(f"metasched: {message}"), err=True)
    return status


def _usage(error: click.ClickException, prog_name: str) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else prog_name
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message[:1].lower()}{message[1:]} ({path} --help says what there is)"


class _Discreet(logging.Formatter):
    """Shows no secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, without what must not be seen."""
        from cluster_env.core.secrets import hide_secrets

        return hide_secrets(super().format(record))


def _log_to_stderr() -> logging.Handler:
    """Shows our own warnings on stderr, in the manner of the error messages."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Discreet("metasched: %(message)s"))
    for package in PACKAGES:
        logging.getLogger(package).addHandler(handler)
    return handler


def _catch_sigterm() -> Any:
    """Makes SIGTERM unwind the program, so that files and processes are cleaned up."""

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        click.echo("metasched: terminated", err=True)
        raise SystemExit(_TERMINATED)

    try:
        return signal.signal(signal.SIGTERM, terminate)
    except ValueError:  # not the main thread
        return None


if __name__ == "__main__":
    from tune_jobs import cli

    cli.main()
