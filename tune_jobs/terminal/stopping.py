"""Ctrl-C and SIGTERM, turned into a stop between two iterations."""

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from tune_jobs.terminal.signals import heed

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Notes the first signal, and lets the second one interrupt at once.

    In a thread that is not the main one it notes nothing, because Python delivers no signals
    there. Where a signal has come before, and what it raised was caught, it is raised again.

    Args:
        announce: called with the name of the first signal.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self.signal: signal.Signals | None = None
        self._announce = announce
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def exit_status(self) -> int:
        """What a shell expects of a process that a signal has ended; 0 without one."""
        return 128 + self.signal if self.signal else 0

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        self.signal = signal.Signals(number)
        self._announce(self.signal.name)

    def __enter__(self) -> Self:
        heed()
        try:
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        except ValueError:
            self._before.clear()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
