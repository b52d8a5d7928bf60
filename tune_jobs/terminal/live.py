"""What is rewritten in place on a terminal, with rich."""

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_BAR_WIDTH = 10


def live_display(stream: TextIO) -> Live:
    """What is rewritten in place on a terminal, each time that it is updated."""
    console = Console(file=stream, force_terminal=True, highlight=False)
    live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    live.start()
    console.show_cursor(True)  # also where nobody comes to end it
    return live


def show_bars(live: Live, bars: Iterable[tuple[int, int, str]]) -> None:
    """Shows bars below each other, instead of what was shown.

    Args:
        live: see `live_display`.
        bars: how many are done, of how many, and the text behind.
    """
    live.update(Group(*(_line(*bar) for bar in bars)), refresh=True)


def _line(done: int, total: int, text: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    grid.add_row(
        f"{done / total if total else 1:4.0%}",
        ProgressBar(total, done, width=_BAR_WIDTH),
        f"{done}/{total}",
        Text(text, no_wrap=True, overflow="ellipsis"),
    )
    return grid
