"""The head of a Ray cluster that is gone: said before Ray ends this process without a word."""

import contextlib
import socket
import sys
import threading
from collections.abc import Callable, Iterator

EVERY_S = 5.0
_MISSES = 4  # of calls that the head has not answered, so that a busy one is let be
_ANSWER_S = 5.0


@contextlib.contextmanager
def watching_head(go_on: str) -> Iterator[None]:
    """Says once, while a ``with`` block lasts, that the head does not answer any more.

    A process that has lost its head for a minute is ended by Ray's core, where nothing can be done
    and nothing caught. The Ray that is watched is the one that this process is connected to.

    Args:
        go_on: the command that goes on with what is recorded.
    """
    import ray

    address = ray.get_runtime_context().gcs_address
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(address, go_on, over.wait), daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(address: str, go_on: str, is_over: Callable[[float], bool]) -> None:
    misses = 0
    while not is_over(EVERY_S):
        misses = 0 if _answers(address) else misses + 1
        if misses == _MISSES:
            sys.stderr.write(
                f"metasched: the head of Ray at {address} does not answer; if it does not come "
                f"back, Ray ends this command within a minute, and this goes on with what is "
                f"recorded: {go_on}\n"
            )
            sys.stderr.flush()
            return


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except OSError:
        return False
    return True
