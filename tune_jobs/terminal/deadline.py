"""A limit for what may never come back."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cluster_env.core.errors import Failure

GRACE_S = 20.0


class _TooLate(BaseException):
    """No `Exception`, so that nothing that is interrupted by it goes on."""


@contextmanager
def deadline(seconds: float, what: str, grace_s: float = GRACE_S) -> Iterator[None]:
    """Ends a ``with`` block that takes too long.

    An alarm interrupts Python. What waits in compiled code and never hears it ends the process,
    with the same sentence and exit status 1. Outside of the main thread there is no limit,
    because Python delivers no signals there.

    Args:
        seconds: limit.
        what: says what has not happened and what to do; begins the sentence.
        grace_s: seconds after the alarm until the process ends.

    Raises:
        Failure: if the block took too long.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    sentence = f"{what} within {seconds:g} s"
    last = threading.Timer(seconds + grace_s, _give_up, [sentence])
    last.daemon = True
    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, _interrupt)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    last.start()
    try:
        yield
    except _TooLate:
        raise Failure(sentence) from None
    finally:
        last.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
        if remaining:  # somebody else's alarm goes on
            left = remaining - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), interval)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _TooLate


def _give_up(sentence: str) -> None:
    sys.stderr.write(f"metasched: {sentence}\n")
    sys.stderr.flush()
    os._exit(1)
