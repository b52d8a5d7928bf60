"""What ends a command from outside: Ctrl-C, SIGTERM, a lost terminal, and limits of time.

These signals raise an exception, so that files and processes are cleaned up. Two things can come
between. A library that is just being imported may catch everything (``except:``). And Ray, while
it starts, has a handler in C++ for SIGTERM, which writes a report, and crashes or never returns.

Outside of the main thread nothing here does anything, because Python delivers no signals there.
"""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, Self

import click

_POLL_S = 0.1
HOLD_S = 20.0
"""How long SIGTERM is held back. Kubernetes kills what has not ended 30 s after it."""
GRACE_S = 20.0
"""From a deadline to the end of the process, where compiled code does not hear it."""

_noted: signal.Signals | None = None
_holding = False


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def heard() -> Iterator[None]:
    """Has the first signals in a ``with`` block raise `KeyboardInterrupt` or `SystemExit`."""
    global _noted
    if not _in_main_thread():
        yield
        return
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, _raise)}
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # else nohup or somebody ignores it
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, _raise)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody ignores it
        before[signal.SIGINT] = signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        _noted = None
        for number, handler in before.items():
            _restore(number, handler)


def heed() -> None:
    """Raises again what a signal has raised earlier, and somebody has caught."""
    if _noted is not None:
        _end(_noted)


class StopRequest:
    """Notes the first signal in a ``with`` block, and lets the second one interrupt at once.

    Where a signal has come before, and what it raised was caught, it is raised again.

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
            _end(signal.Signals(number))
        self.signal = signal.Signals(number)
        self._announce(self.signal.name)

    def __enter__(self) -> Self:
        heed()
        if _in_main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                    continue  # nohup
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextmanager
def sigterm_held_back() -> Iterator[None]:
    """Delivers a SIGTERM only when a ``with`` block is over, to the handler that was set before.

    After `HOLD_S` it interrupts the block, but through no handler in C. Processes that are started
    with a function to call before they execute, as Ray's are, hear SIGTERM as ever.
    """
    global _holding
    if not _in_main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    # Threads that are started meanwhile never hear it, and so leave it to this one.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    _holding, over = True, threading.Event()

    def interrupt_once() -> None:
        """Ray crashes at the end of the process where it was interrupted while it started."""
        while signal.SIGTERM not in signal.sigpending():
            if over.wait(_POLL_S):
                return
        if not over.wait(HOLD_S):
            _thread.interrupt_main(signal.SIGTERM)

    try:
        threading.Thread(target=interrupt_once, daemon=True).start()
        yield
    except SystemExit:  # of a handler that was set meanwhile, with a status of its own
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        _holding = False
        over.set()
        _restore(signal.SIGTERM, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _let_through() -> None:
    """A new process begins with the signals that are held back here."""
    if _holding:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


os.register_at_fork(after_in_child=_let_through)


class _TooLate(BaseException):
    """No `Exception`, so that nothing that is interrupted by it goes on."""


@contextmanager
def deadline(seconds: float, what: str, grace_s: float = GRACE_S) -> Iterator[None]:
    """Ends a ``with`` block that takes too long.

    An alarm interrupts Python. What waits in compiled code and never hears it ends the process,
    with the same sentence and exit status 1.

    Args:
        seconds: limit.
        what: says what has not happened and what to do; begins the sentence.
        grace_s: seconds after the alarm until the process ends.

    Raises:
        Failure: if the block took too long.
    """
    if not _in_main_thread():
        yield
        return
    sentence = f"{what} within {seconds:g} s"

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _TooLate

    def give_up() -> None:
        sys.stderr.write(f"metasched: {sentence}\n")
        sys.stderr.flush()
        os._exit(1)

    last = threading.Timer(seconds + grace_s, give_up)
    last.daemon = True
    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, interrupt)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    last.start()
    try:
        yield
    except _TooLate:
        from cluster_env.core.errors import Failure  # takes a second, so not for --help

        raise Failure(sentence) from None
    finally:
        last.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        _restore(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
        if remaining:  # somebody else's alarm goes on
            left = remaining - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), interval)


def _restore(number: signal.Signals, handler: Any) -> None:
    if handler is not None:  # it was set from Python
        signal.signal(number, handler)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    global _noted
    if number == signal.SIGTERM and _noted is None:
        click.echo("metasched: terminated", err=True)
    _noted = signal.Signals(number)
    _end(_noted)


def _end(number: signal.Signals) -> NoReturn:
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
