"""Ports for servers that tests start."""

import random
import socket
from contextlib import suppress

RANGE = range(20_000, 32_000)
"""Above the ports of Ray's workers, and below those that the system gives to whoever asks.

One that the system gives may be somebody else's by the time that a server takes it.
"""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody has, all different."""
    chance = random.SystemRandom()  # processes of pytest-xdist share the seed of the common one
    found: list[int] = []
    for port in chance.sample(RANGE, 100 * count):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found[:count]
