"""How a long command shows where it is: a bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from tune_jobs.terminal.signals import heed

if TYPE_CHECKING:
    from rich.live import Live

LINE_EVERY_S = 10.0
ASIDE_S = 2.0
"""What takes less time between two steps is not shown."""
_DRAW_EVERY_S = 0.1
_RECENT = 30


class Progress:
    """Shows iterations on a stream.

    On a terminal there is one bar, with the newest numbers behind it, and `say` writes above it.
    Elsewhere `step` writes a line for the first iteration and then at most every so often, so
    that a log stays readable; what is said with `say` always gets its line.

    Args:
        stream: where to write, by default the standard error.
        interactive: whether to draw a bar; by default if the stream is a terminal.
        line_every_s: seconds between two lines of a log.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        interactive: bool | None = None,
        line_every_s: float = LINE_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self._interactive = is_terminal(self._stream) if interactive is None else interactive
        self._line_every_s = line_every_s
        self._clock = clock
        self._live: Live | None = None
        self._bar: tuple[int, int, str] | None = None  # how many are done, of how many, what
        self._aside: tuple[int, int, str] | None = None
        self._aside_since = 0.0
        self._total = 0
        self._shown_at = float("-inf")
        self._times: deque[tuple[float, int]] = deque(maxlen=_RECENT)

    def start(self, total: int, done: int = 0, unit: str = "iteration") -> None:
        """Begins to count.

        Args:
            total: where the count ends.
            done: where it begins.
            unit: what is counted.
        """
        self._total = total
        self._shown_at = float("-inf")
        self._times.clear()
        if self._interactive:
            self._bar = done, total, f"{unit}s"
            self._draw()

    def step(self, done: int, text: str) -> None:
        """Shows that so many are done.

        Args:
            done: how many.
            text: the newest numbers, short.

        Raises:
            KeyboardInterrupt, SystemExit: where a signal has raised it earlier, and somebody has
                caught it.
        """
        heed()
        now = self._clock()
        self._times.append((now, done))
        # Time left, from the pace of the latest iterations.
        (first, begun), (last, ended) = self._times[0], self._times[-1]
        eta = ""
        if ended > begun and done < self._total:
            eta = f"{duration((last - first) / (ended - begun) * (self._total - done))} left"
        if self._bar is not None:
            # It comes first, because a narrow terminal cuts off the end.
            self._bar = done, self._total, f"{eta:>12}  {text}".lstrip()
            if now - self._shown_at >= _DRAW_EVERY_S or done == self._total:
                self._shown_at = now
                self._draw()
        elif now - self._shown_at >= self._line_every_s:
            self._shown_at = now
            self.say("  ".join(part for part in (f"{done}/{self._total}", text, eta) if part))

    def aside(self, done: int, total: int, text: str) -> None:
        """Shows how far something is between two steps, on a terminal and only if it takes long.

        Args:
            done: how many parts are done; 0 at its beginning.
            total: how many there are.
            text: what it is.
        """
        if done == 0:
            self._aside_since = self._clock()
        elif self._interactive and self._clock() - self._aside_since >= ASIDE_S:
            self._aside = done, total, text
            self._draw()
        if self._aside is not None and done == total:
            self._aside = None
            self._draw()

    def say(self, text: str) -> None:
        """Writes a line that stays."""
        if self._live is not None:
            self._live.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Ends the bar; `start` may follow."""
        if self._live is not None:
            self._aside = None
            self._draw()
            self._live.stop()
        self._live = self._bar = None

    def _draw(self) -> None:
        from tune_jobs.terminal import live  # rich, which takes a tenth of a second

        self._live = self._live or live.live_display(self._stream)
        live.show_bars(self._live, [bar for bar in (self._bar, self._aside) if bar is not None])


class NoProgress(Progress):
    """Shows nothing."""

    def __init__(self) -> None:
        super().__init__(interactive=False)

    def start(self, total: int, done: int = 0, unit: str = "iteration") -> None:
        """Does nothing."""

    def step(self, done: int, text: str) -> None:
        """Does nothing."""

    def say(self, text: str) -> None:
        """Does nothing."""


def is_terminal(stream: TextIO) -> bool:
    """Whether a bar can be drawn; a terminal that does not know its width has no room for one."""
    try:
        return stream.isatty() and os.get_terminal_size(stream.fileno()).columns > 0
    except (OSError, ValueError):
        return False


def duration(seconds: float) -> str:
    """Seconds as people say them: 45 s, 3:20 min, 2:05 h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
