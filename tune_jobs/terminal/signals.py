"""Ctrl-C and SIGTERM that end a command, wherever they find it.

Both raise an exception, so that files and processes are cleaned up. Two things can come between. A
library that is just being imported may catch everything (``except:``). And Ray, while it starts,
has a handler in C++ for SIGTERM, which writes a report, and crashes or never returns.
"""

import _thread
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click

_POLL_S = 0.1
HOLD_S = 20.0
"""How long SIGTERM is held back. Kubernetes kills what has not ended 30 s after it."""

_noted: signal.Signals | None = None
_holding = False


@contextmanager
def heard() -> Iterator[None]:
    """Has the first signals in a ``with`` block raise `KeyboardInterrupt` or `SystemExit`.

    In a thread that is not the main one nothing changes, because Python delivers no signals there.
    """
    global _noted
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, _raise)}
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


@contextmanager
def sigterm_held_back() -> Iterator[None]:
    """Delivers a SIGTERM only when a ``with`` block is over, to the handler that was set before.

    After `HOLD_S` it interrupts the block, but through no handler in C. Processes that are started
    with a function to call before they execute, as Ray's are, hear SIGTERM as ever.
    """
    global _holding
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    # Threads that are started meanwhile never hear it, and so leave it to this one.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    _holding, over = True, threading.Event()
    watcher = threading.Thread(target=_interrupt_once, args=(over,), daemon=True)
    try:
        watcher.start()
        yield
    except SystemExit:  # of a handler that was set meanwhile, with a status of its own
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        _holding = False
        over.set()
        _restore(signal.SIGTERM, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _interrupt_once(over: threading.Event) -> None:
    """Waits for a SIGTERM that is held back, and then for the end of the block, but not for long.

    Ray crashes at the end of the process where it was interrupted in the midst of its start.
    """
    while signal.SIGTERM not in signal.sigpending():
        if over.wait(_POLL_S):
            return
    if not over.wait(HOLD_S):
        _thread.interrupt_main(signal.SIGTERM)


def _let_through() -> None:
    """A new process begins with the signals that are held back here."""
    if _holding:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


os.register_at_fork(after_in_child=_let_through)


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
