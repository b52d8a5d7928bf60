"""Lines to those who work: open sockets, for rounds that follow each other and compute little.

A call of Ray passes through several threads and queues and takes 1 to 3 ms; a message on an open
socket takes a tenth of that, and many an update computes for 2 ms. A line holds nothing that
counts: where one breaks, its member is lost, just as when a call fails.
"""

import pickle
import secrets
import selectors
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import ray

from rllib_configs.runners.crew import Crew
from rllib_configs.runners.requests import Answer, Meeting, Request

OPEN_S = 5.0
"""How long to wait for a member; who has not come by then is called as ever."""
GREETING_S = 1.0  # whoever connects has to say at once who it is
STALLED_S = 10.0  # in the middle of a message
POLL_S = 0.1
_NUMBER = struct.Struct("!q")
_TOKEN_BYTES = 32


class Line:
    """Messages over a socket, each in one piece: a second write would wake the other side twice.

    Args:
        found: the socket; it is the line's from now on.
        stalled_s: seconds after which a message that has come or gone in part is a fault; by
            default never.
    """

    def __init__(self, found: socket.socket, stalled_s: float | None = None) -> None:
        found.settimeout(stalled_s)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = found

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def fileno(self) -> int:
        """What can be waited for."""
        return self._socket.fileno()

    def send(self, message: Any) -> None:
        """Sends a message.

        Raises:
            OSError: if the line is broken.
        """
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._socket.sendall(_NUMBER.pack(len(data)) + data)

    def receive(self) -> Any:
        """Waits for a message.

        Raises:
            EOFError: if the line has ended.
            OSError: if it is broken.
        """
        (size,) = _NUMBER.unpack(self._read(_NUMBER.size))
        return pickle.loads(self._read(size))

    def close(self) -> None:
        """Ends the line."""
        self._socket.close()

    def _read(self, size: int) -> bytearray:
        data, done = bytearray(size), 0
        with memoryview(data) as view:
            while done < size:
                count = self._socket.recv_into(view[done:])
                if not count:
                    raise EOFError
                done += count
        return data


@contextmanager
def open_lines(crew: Crew, members: Sequence[int]) -> Iterator[dict[int, Line]]:
    """Lines to members, for the time of a ``with`` block; they answer nothing else meanwhile.

    Only processes that Ray has told a secret are listened to, because messages are pickled.

    Args:
        crew: whose.
        members: who is wanted.

    Yields:
        A line for each member that has come in time, by its number; whoever sees one break is to
        take it out.
    """
    lines: dict[int, Line] = {}
    try:
        with suppress(OSError):  # a machine that lets nobody listen has no lines
            _meet(crew, members, lines)
        yield lines
    finally:
        for line in lines.values():
            with line, suppress(OSError):
                line.send(None)
        lines.clear()


def answered(lines: Sequence[Line], limit_s: float) -> list[Line]:
    """Those on which something has come; waits for the first one, and not beyond a limit."""
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line, selectors.EVENT_READ, line)
        return [key.data for key, _ in selector.select(limit_s)]


def answer_on_line(meeting: Meeting, do: Callable[[Request], Answer]) -> None:
    """What a member does: it comes to a meeting, and answers until the line ends.

    Args:
        meeting: see `Crew.serve`.
        do: the work; an exception of it ends the line.
    """
    try:
        found = socket.create_connection((meeting.host, meeting.port), timeout=OPEN_S)
        found.sendall(meeting.token + _NUMBER.pack(meeting.member))
    except OSError:  # nobody waits any longer
        return
    with Line(found) as line, suppress(EOFError, OSError):
        while (request := line.receive()) is not None:
            line.send(do(request))


def _meet(crew: Crew, members: Sequence[int], lines: dict[int, Line]) -> None:
    host, token = ray.util.get_node_ip_address(), secrets.token_bytes(_TOKEN_BYTES)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, backlog=len(members) + 1) as server:
        port, deadline = server.getsockname()[1], monotonic() + OPEN_S
        calls = [crew.serve(each, Meeting(host, port, token, each)) for each in members]
        server.settimeout(POLL_S)
        while len(lines) < len(members) and monotonic() < deadline:
            try:
                found, _ = server.accept()
            except TimeoutError:
                if ray.wait(calls, num_returns=1, timeout=0)[0]:
                    return  # one of them is lost
                continue
            member = _greeting(found, token)
            if member is not None and member in members:
                lines[member] = Line(found, STALLED_S)
            else:
                found.close()


def _greeting(found: socket.socket, token: bytes) -> int | None:
    """Who has come; None for a stranger."""
    found.settimeout(GREETING_S)
    try:
        said = found.recv(_TOKEN_BYTES + _NUMBER.size, socket.MSG_WAITALL)
    except OSError:
        return None
    if len(said) != _TOKEN_BYTES + _NUMBER.size:
        return None
    if not secrets.compare_digest(said[:_TOKEN_BYTES], token):
        return None
    (member,) = _NUMBER.unpack(said[_TOKEN_BYTES:])
    return int(member)
