"""JSON on stdout, with nothing beside it. Imports nothing heavy, so that --help is quick."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

import click

_STDOUT, _STDERR = 1, 2

_kept: TextIO | None = None  # where JSON goes, while stdout is kept for it


def print_json(data: Any) -> None:
    """Prints what a command answers a program."""
    click.echo(json.dumps(data, indent=1), file=_kept)


def show(text: str, *, bold: bool = False, err: bool = False) -> None:
    """Prints a line, or writes it to stderr."""
    click.secho(text, bold=bold, err=err)


def silent(text: str) -> None:
    """Stands for `click.echo` where a program asks."""


@contextmanager
def stdout_for_json() -> Iterator[None]:
    """Sends all else that is written to stdout in a ``with`` block to stderr.

    That holds for what Python prints, what libraries in C++ write, as Ray's core, and what
    processes write that are started meanwhile.
    """
    global _kept
    if _kept is not None:
        yield
        return
    sys.stdout.flush()
    with _copied(sys.stdout) as _kept, redirect_stdout(sys.stderr):
        try:
            yield
        finally:
            _kept = None


@contextmanager
def _copied(stream: TextIO) -> Iterator[TextIO]:
    """What leads to where a stream leads; if it is the process's stdout, that leads to stderr."""
    try:
        is_of_process = stream.fileno() == _STDOUT
    except (OSError, ValueError):  # it stands in its place, as in tests
        is_of_process = False
    if not is_of_process:
        yield stream
        return
    number = os.dup(_STDOUT)
    try:
        with suppress(OSError):  # there is no stderr
            os.dup2(_STDERR, _STDOUT)
        with open(number, "w", encoding=stream.encoding, closefd=False) as copy:
            yield copy
    finally:
        os.dup2(number, _STDOUT)
        os.close(number)
