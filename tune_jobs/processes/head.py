"""A head or a raylet of Ray that is gone: said before Ray ends this process without a word."""

import contextlib
import os
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator

EVERY_S = 5.0
_MISSES = 4  # of calls that the head has not answered, so that a busy one is let be
_ANSWER_S = 5.0
_LOOK_S = 0.2


@contextlib.contextmanager
def watching_head(go_on: str) -> Iterator[None]:
    """Says once, while a ``with`` block lasts, that the head does not answer or the raylet is gone.

    A process that has lost its head for a minute is ended by Ray's core, where nothing can be done
    and nothing caught; half a second after its raylet, too. The Ray that is watched is the one that
    this process is connected to.

    Args:
        go_on: the command that goes on with what is recorded.
    """
    import ray

    address = ray.get_runtime_context().gcs_address
    over = threading.Event()
    raylet = ray._private.worker._global_node.raylet_socket_name
    for watch, *what in ((_watch, address, go_on, over.wait), (_watch_raylet, raylet, go_on, over)):
        threading.Thread(target=watch, args=what, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _watch(address: str, go_on: str, is_over: Callable[[float], bool]) -> None:
    misses = 0
    while not is_over(EVERY_S):
        misses = 0 if _answers(address) else misses + 1
        if misses == _MISSES:
            _say(
                f"the head of Ray at {address} does not answer; if it does not come back, Ray "
                f"ends this command within a minute, and this goes on with what is recorded: "
                f"{go_on}"
            )
            return


def _watch_raylet(path: str, go_on: str, over: threading.Event) -> None:
    """The raylet is the process that listens at a socket of this machine, by its path."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            owner = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            raylet = os.pidfd_open(struct.unpack("3i", owner)[0])
    except OSError:  # it cannot be seen from here, as from another container
        return
    try:
        while not over.is_set():
            if select.select([raylet], [], [], _LOOK_S)[0] and not over.is_set():
                _say(
                    "the raylet of Ray on this machine has ended, perhaps because memory ran out, "
                    f"so Ray ends this command; this goes on with what is recorded: {go_on}"
                )
                return
    finally:
        os.close(raylet)


def _say(sentence: str) -> None:
    sys.stderr.write(f"metasched: {sentence}\n")
    sys.stderr.flush()


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except OSError:
        return False
    return True
