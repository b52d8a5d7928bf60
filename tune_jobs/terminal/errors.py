"""What an error that ends a command comes to: one line on stderr, and an exit status."""

import errno
import traceback

import click

from cluster_env.core.errors import Failure, InputError, printable, shortened
from rllib_configs.config.secrets import hide_secrets
from tune_jobs.terminal.usage import explain_usage

_FAILED, _BAD_INPUT, _INTERRUPTED = 1, 2, 130

_LONGEST_LINE = 480  # characters of an error, of which somebody has to find the end


def report_error(error: BaseException, program: str, debugging: bool) -> int:
    """Writes the line, without secrets, and returns the status.

    Args:
        error: what a command has raised and is being handled.
        program: how the program is called, for errors that belong to no command.
        debugging: whether the traceback is shown, too.
    """
    message, status = _explained(error, program, debugging)
    if debugging:
        click.echo(hide_secrets(traceback.format_exc()), err=True, nl=False)
    line = " ".join(hide_secrets(f"metasched: {message}").split())
    click.echo(shortened(printable(line), _LONGEST_LINE), err=True)
    return status


def _explained(error: BaseException, program: str, debugging: bool) -> tuple[str, int]:
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return "interrupted", _INTERRUPTED
    if isinstance(error, click.ClickException):
        return explain_usage(error, program), error.exit_code
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"no file can have the name '{error.filename}'", _BAD_INPUT
    if isinstance(error, InputError):
        return str(error), _BAD_INPUT
    if isinstance(error, Failure):
        return str(error), _FAILED
    first_line = (str(error).strip() or "no message").splitlines()[0]
    hint = "" if debugging else " (--debug shows where)"
    return f"failed with {type(error).__name__}: {first_line}{hint}", _FAILED
