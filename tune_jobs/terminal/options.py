"""Types of options, and options that list something. It imports nothing heavy: --help is quick."""

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.files import try_writing

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}

COMPARISON_TABLE, COMPARISON_FIGURE = "comparison.csv", "comparison.png"
ADAPTATION_TABLE = "adaptation.csv"
DECISION = "decision.json"
SPECIALISTS_TABLE = "specialists.csv"

MOST = 1_000_000
"""Of what can be counted on a command line: of jobsets, more fit into no memory."""


class _Count(click.IntRange):
    """A whole number; only the least one is a part of the help.

    Args:
        least: the least one.
        most: the largest one.
    """

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least)
        self._most = most

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """The number."""
        number: int = super().convert(value, param, ctx)
        if number > self._most:
            self.fail(f"{value} is more than {self._most}", param, ctx)
        return number


class _FiniteRange(click.FloatRange):
    """NaN lies in every range, because no comparison with it holds."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


POSITIVE = _FiniteRange(min=0, min_open=True)
ZERO_OR_MORE = _FiniteRange(min=0)


def count(least: int = 1, most: int = MOST) -> click.IntRange:
    """A whole number from the least one to the largest."""
    return _Count(least, most)


_FORCE = "tune_jobs.force"  # where the context of a command keeps it


class OutPath(click.Path):
    """A file or folder that a command writes when its work is done; that it can is tried before.

    A single file must not be there, unless ``--force`` is given (`keep_force`), and its folder
    must be there, so that a typing error neither costs a file nor hides one. Folders are made, and
    a command refreshes what it wrote there.
    """

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            try_writing(path, folder=not self.file_okay)
        except OSError as error:
            self.fail(f"cannot write to {path}: {error.strerror or error}", param, ctx)
        if not self.dir_okay:
            if not path.absolute().parent.is_dir():
                self.fail(f"cannot write {path}: there is no folder {path.parent}", param, ctx)
            if path.exists() and not (ctx and ctx.meta.get(_FORCE)):
                self.fail(f"{path} is there already; --force replaces it", param, ctx)
        return path


Decorator = Callable[[Any], Any]


def keep_force(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Remembers ``--force`` before an `OutPath` is read."""
    ctx.meta[_FORCE] = value
    return value


def print_list(entries: Iterable[tuple[str, str]]) -> None:
    """Prints names, each with a line about it."""
    formatter = click.HelpFormatter(width=100)
    formatter.write_dl(list(entries))
    click.echo(formatter.getvalue(), nl=False)


def first_comment(path: Path) -> str:
    """The first paragraph of the comment at the top of a YAML file, as one line."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)
