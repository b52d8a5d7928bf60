"""A network switch in user space: hands Ethernet frames from tap to tap, after a delay.

    python switch.py PREFIX PORTS DELAY_S

creates the taps PREFIX0, PREFIX1, ... and says ``ready``. Moved to other network namespaces, they
stay its ports. Each frame is delayed alike, so that they leave in the order in which they came.
The same runs on kernels with and without netem.

It also tells what is not encrypted: for each TCP connection that does not begin with TLS it
writes ``plain SENDER RECEIVER``, each as ADDRESS:PORT.
"""

import fcntl
import os
import selectors
import socket
import struct
import sys
import time
from collections import deque

MTU = 9000
HEADER = 14  # bytes of Ethernet before the packet: receiver, sender, protocol

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
IPV4, TCP, SYN = b"\x08\x00", 6, 0x02
TLS_RECORDS = tuple(bytes([kind, 3]) for kind in range(20, 24))


def open_tap(name: str) -> int:
    """Creates a tap, which exists as long as its descriptor is open."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class Connections:
    """Tells of TCP connections what their first bytes are, in each direction."""

    def __init__(self) -> None:
        self._silent: set[bytes] = set()

    def look_at(self, frame: bytes) -> None:
        """Says if somebody sends first what TLS does not begin with."""
        if frame[12:14] != IPV4 or frame[HEADER + 9] != TCP:
            return
        segment = HEADER + 4 * (frame[HEADER] & 0x0F)
        ends = frame[HEADER + 12 : HEADER + 20] + frame[segment : segment + 4]
        if frame[segment + 13] & SYN:
            self._silent.add(ends)
            return
        data = frame[segment + 4 * (frame[segment + 12] >> 4) :]
        if data and ends in self._silent:
            self._silent.remove(ends)
            if not data.startswith(TLS_RECORDS):
                self._tell(ends)

    def _tell(self, ends: bytes) -> None:
        source, target, *ports = struct.unpack("!4s4sHH", ends)
        both = zip((source, target), ports, strict=True)
        print("plain", *(f"{socket.inet_ntoa(host)}:{port}" for host, port in both), flush=True)


class Switch:
    """Learns which address is behind which port, and floods what is for an unknown one.

    Args:
        ports: descriptors of the taps.
        delay_s: for which each frame is held.
    """

    def __init__(self, ports: list[int], delay_s: float) -> None:
        self._ports = ports
        self._delay_s = delay_s
        self._connections = Connections()
        self._behind: dict[bytes, int] = {}
        self._held: deque[tuple[float, int, bytes]] = deque()
        # Its timeout is exact, where that of epoll is rounded up to milliseconds.
        self._ready = selectors.SelectSelector()
        for port in ports:
            self._ready.register(port, selectors.EVENT_READ)

    def run(self) -> None:
        """Forwards frames until the process ends."""
        while True:
            wait = self._held[0][0] - time.monotonic() if self._held else None
            for key, _ in self._ready.select(None if wait is None else max(wait, 0.0)):
                self._take(key.fd)
            while self._held and self._held[0][0] <= time.monotonic():
                _, port, frame = self._held.popleft()
                self._deliver(port, frame)

    def _take(self, port: int) -> None:
        """Reads what waits at a port, as far as others need not wait for it."""
        for _ in range(64):
            try:
                frame = os.read(port, MTU + HEADER)
            except BlockingIOError:
                return
            except OSError:  # its namespace is gone
                self._ready.unregister(port)
                return
            self._behind[frame[6:12]] = port
            self._connections.look_at(frame)
            self._held.append((time.monotonic() + self._delay_s, port, frame))

    def _deliver(self, source: int, frame: bytes) -> None:
        known = self._behind.get(frame[:6])
        for port in self._ports if known is None else [known]:
            if port == source:
                continue
            try:
                os.write(port, frame)
            except OSError:  # nobody is there: its link is down, or its namespace is gone
                continue


def main(prefix: str, ports: str, delay_s: str) -> None:
    """Creates the taps and forwards between them."""
    taps = [open_tap(f"{prefix}{number}") for number in range(int(ports))]
    print("ready", flush=True)
    Switch(taps, float(delay_s)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
