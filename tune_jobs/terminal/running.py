"""How a command runs: what it logs, what its exit status is, and one line for what goes wrong.

Exit status: 0 done, 1 something failed, 2 the user's input is at fault, 130 Ctrl-C, 143 SIGTERM.
"""

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from rllib_configs.config.secrets import hide_secrets
from tune_jobs.terminal.signals import heard

PACKAGES = ("cluster_env", "rllib_configs", "meta", "tune_jobs")

_OK, _FAILED = 0, 1

_RAY_READS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Despite its name this makes a local Ray talk over the loopback address only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}

_debug = False


def prepare_environment() -> None:
    """Sets what Ray reads from the environment when it is imported, where the user has not."""
    for name, value in _RAY_READS.items():
        os.environ.setdefault(name, value)


def num_local_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


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


def compare_command(policies: Iterable[str | Path]) -> str:
    """How the user can compare policies, as a line for a shell.

    Names stand in one option with commas between; one that has a comma itself has its own.
    """
    names = [str(policy) for policy in policies]
    apart = [name for name in names if "," in name or name != name.strip()]
    together = ",".join(name for name in names if name not in apart)
    options = [f"--policies {shlex.quote(text)}" for text in (together, *apart) if text]
    return f"{program()} compare {' '.join(options)}"


def _start_debugging(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    global _debug
    if value:
        _debug = True
        for package in PACKAGES:
            logging.getLogger(package).setLevel(logging.DEBUG)


def add_debug_option(command: click.Command) -> click.Command:
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


def run_command(command: click.Command) -> NoReturn:
    """Runs one command by itself, for ``python -m tune_jobs.NAME``."""
    sys.exit(run(add_debug_option(command), prog_name=f"metasched {command.name}"))


def run(
    command: click.Command, args: Sequence[str] | None = None, prog_name: str = "metasched"
) -> int:
    """Runs a command, see `run_call`.

    Args:
        command: the command or group.
        args: the command line; by default that of the process.
        prog_name: what usage texts call the program.
    """

    def call() -> Any:
        _refuse_empty_texts(sys.argv[1:] if args is None else args)
        return command.main(args=args, prog_name=prog_name, standalone_mode=False)

    return run_call(call, prog_name)


def run_call(call: Callable[[], Any], prog_name: str) -> int:
    """Calls a command and turns what happens into an exit status and at most one line.

    Args:
        call: what is done; it may return an exit status.
        prog_name: what errors call the program.
    """
    global _debug
    _debug = False
    prepare_environment()
    logs = logging.StreamHandler()  # our own warnings, in the manner of the error messages
    logs.setFormatter(_Discreet("metasched: %(message)s"))
    for package in PACKAGES:
        logging.getLogger(package).addHandler(logs)
    try:
        with heard():
            status: Any = call()
        if sys.stdout is not None:  # which a shell may have closed
            sys.stdout.flush()
        return status if isinstance(status, int) else _OK
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else _FAILED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        return _FAILED
    except (Exception, KeyboardInterrupt) as error:
        from tune_jobs.terminal.errors import report_error  # takes a second, so not for --help

        return report_error(error, prog_name, debugging=_debug)
    finally:
        for package in PACKAGES:
            logging.getLogger(package).removeHandler(logs)
            if _debug:
                logging.getLogger(package).setLevel(logging.NOTSET)


def _refuse_empty_texts(args: Sequence[str]) -> None:
    """Refuses what a variable of a shell leaves that is not set.

    It would count as not given, and a command would do what it does by default.

    Raises:
        UsageError: if an argument, or the value of an option, is empty.
    """
    for before, text in zip(["", *args], args, strict=False):
        name, is_option, value = text.partition("=")
        if text == "":
            where = f"behind '{before}'" if before else "as the first argument"
        elif name.startswith("--") and is_option and not value:
            where = f"as the value of '{name}'"
        else:
            continue
        raise click.UsageError(f"an empty value was given {where}; give a value or leave it out")


class _Discreet(logging.Formatter):
    """Shows no secrets, and nothing that a terminal obeys."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, without what must not be seen."""
        from cluster_env.core.errors import printable

        return printable(hide_secrets(super().format(record)))
