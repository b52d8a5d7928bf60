"""How a long command shows where it is: a bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from tune_jobs.terminal.signals import heed

if TYPE_CHECKING:
    from tqdm import tqdm

LINE_EVERY_S = 10.0
ASIDE_S = 2.0
"""What takes less time between two steps is not shown."""
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
        self._bar: tqdm[None] | None = None
        self._aside: tqdm[None] | None = None
        self._aside_since = 0.0
        self._total = 0
        self._last_line = float("-inf")
        self._times: deque[tuple[float, int]] = deque(maxlen=_RECENT)

    def start(self, total: int, done: int = 0, unit: str = "iteration") -> None:
        """Begins to count.

        Args:
            total: where the count ends.
            done: where it begins.
            unit: what is counted.
        """
        self._total = total
        self._last_line = float("-inf")
        self._times.clear()
        if self._interactive:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                initial=done,
                unit=f" {unit}",
                file=self._stream,
                dynamic_ncols=True,
                bar_format="{percentage:3.0f}% |{bar:10}| {n_fmt}/{total_fmt}  {desc}",
            )

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
        eta = self._eta(done)
        if self._bar is not None:
            # The time left comes first, because a narrow terminal cuts off the end.
            self._bar.set_description_str(f"{eta:>12}  {text}".lstrip(), refresh=False)
            self._bar.update(done - self._bar.n)
        elif now - self._last_line >= self._line_every_s:
            self._last_line = now
            self._write("  ".join(part for part in (f"{done}/{self._total}", text, eta) if part))

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
            from tqdm import tqdm

            if self._aside is None:
                bar_format = "{desc}  {percentage:3.0f}% |{bar:10}| {n_fmt}/{total_fmt}"
                options = {"initial": done, "leave": False, "file": self._stream}
                self._aside = tqdm(None, text, total, bar_format=bar_format, **options)
            self._aside.n = done
            self._aside.refresh()
        if self._aside is not None and done == total:
            self._aside.close()
            self._aside = None

    def say(self, text: str) -> None:
        """Writes a line that stays."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            self._write(text)

    def close(self) -> None:
        """Ends the bar; `start` may follow."""
        if self._aside is not None:
            self._aside.close()
            self._aside = None
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _write(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def _eta(self, done: int) -> str:
        """Time left, from the pace of the latest iterations; empty before there is one."""
        (first, begun), (last, ended) = self._times[0], self._times[-1]
        if ended <= begun or done >= self._total:
            return ""
        return f"{duration((last - first) / (ended - begun) * (self._total - done))} left"


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
