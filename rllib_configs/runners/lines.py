"""Lines to those who work: open sockets, for rounds that follow each other and compute little.

A call of Ray passes through several threads and queues and takes 1 to 3 ms; a message on an open
socket takes a tenth of that, and many an update computes for 2 ms. A line holds nothing that
counts: where one breaks, its member is lost, just as when a call fails.

A line stays open from iteration to iteration. Nobody waits for one: a member is asked for it once,
opens it whenever it comes to that, and is called by Ray until then.
"""

import logging
import pickle
import secrets
import select
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any

import ray
from ray.exceptions import RayError

from rllib_configs.runners.crew import Crew
from rllib_configs.runners.requests import Answer, Meeting, Request
from rllib_configs.runners.wire import RequestReader, answer_message

logger = logging.getLogger(__name__)

CONNECT_S = 20.0
"""How long a member tries to connect, in a thread of its own."""
LATE_S = 60.0
"""When to say that somebody has not opened a line."""
GREETING_S = 1.0  # whoever connects has to say at once who it is
STALLED_S = 10.0  # in the middle of a message
_HEAD = struct.Struct("!qq")  # size of the pickle, number of arrays beside it
_NUMBER = struct.Struct("!q")
_TOKEN_BYTES = 32
_AT_ONCE = 64  # pieces that a call of the operating system takes
_LARGE_BYTES = 4096  # smaller arrays stay in the pickle


class Line:
    """Messages over a socket.

    Arrays travel beside the pickle, from where they are to where they stay.

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
        """Sends a message, in one piece: a second write would wake the other side twice.

        Raises:
            OSError: if the line is broken.
        """
        views: list[memoryview] = []

        def stays(array: pickle.PickleBuffer) -> bool:
            view = array.raw()
            if view.nbytes >= _LARGE_BYTES:
                views.append(view)
            return view.nbytes < _LARGE_BYTES

        data = pickle.dumps(message, protocol=5, buffer_callback=stays)
        sizes = b"".join(_NUMBER.pack(view.nbytes) for view in views)
        pieces: list[Any] = [_HEAD.pack(len(data), len(views)) + sizes + data, *views]
        while pieces:
            sent = self._socket.sendmsg(pieces[:_AT_ONCE])
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            if sent:
                pieces[0] = memoryview(pieces[0])[sent:]

    def receive(self) -> Any:
        """Waits for a message.

        Raises:
            EOFError: if the line has ended.
            OSError: if it is broken.
        """
        size, count = _HEAD.unpack(self._read(_HEAD.size))
        width = _NUMBER.size * count
        data = memoryview(self._read(width + size))
        sizes = [given for (given,) in _NUMBER.iter_unpack(data[:width])]
        return pickle.loads(data[width:], buffers=[self._read(each) for each in sizes])

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


@dataclass
class _Asked:
    """A member who is to open a line.

    Attributes:
        reference: of the call.
        since: on the monotonic clock.
    """

    reference: Any
    since: float


class Lines:
    """Open lines by the numbers of members, kept from iteration to iteration.

    Only processes that Ray has told a secret are listened to, because messages are pickled.
    """

    def __init__(self) -> None:
        self._open: dict[int, Line] = {}
        self._asked: dict[int, _Asked] = {}
        self._door: _Door | None = None
        self._warned = False

    def begin(self, crew: Crew) -> None:
        """Asks members for lines that have none, and forgets those that have ended."""
        self.admit()
        # Nobody has asked for anything: what comes is the end, or nothing that is still wanted.
        said = answered(self._open.values(), 0.0)
        for member in [each for each, line in self._open.items() if line in said]:
            self.drop(member)
        late = {each: asked for each, asked in self._asked.items() if each not in self._open}
        for member in [each for each, asked in late.items() if _failed(asked.reference)]:
            self.drop(member)
        self._say_if_late([asked for each, asked in late.items() if each in self._asked])
        if members := [each for each in crew.healthy() if each not in self._asked]:
            with suppress(OSError):  # a machine that lets nobody listen has no lines
                self._door = self._door or _Door()
                for member in members:
                    meeting = self._door.meeting(member)
                    self._asked[member] = _Asked(crew.serve(member, meeting), monotonic())

    def admit(self) -> None:
        """Takes the lines that have come meanwhile."""
        while self._door is not None and not self._door.came.empty():
            member, line = self._door.came.get()
            if member in self._asked:
                self._open[member] = line
            else:
                line.close()

    def get(self, member: int) -> Line | None:
        """The line to a member, if it has come."""
        return self._open.get(member)

    def drop(self, member: int) -> None:
        """Ends a line to somebody; who is there in a later iteration is asked for a new one."""
        self._asked.pop(member, None)
        if member in self._open:
            self._open.pop(member).close()

    def close(self) -> None:
        """Ends all."""
        for member in list(self._asked):
            self.drop(member)
        if self._door is not None:
            self._door.close()
            self._door = None

    def _say_if_late(self, late: list[_Asked]) -> None:
        if not self._warned and any(asked.since < monotonic() - LATE_S for asked in late):
            self._warned = True
            logger.warning(
                "some runners open no lines to %s, so their rounds go by calls of Ray, which take "
                "longer; a firewall may be in the way",
                ray.util.get_node_ip_address(),
            )


def _failed(reference: Any) -> bool:
    """Whether a call has come back with a fault."""
    if not ray.wait([reference], num_returns=1, timeout=0)[0]:
        return False
    try:
        ray.get(reference)
    except RayError:
        return True
    return False


class _Door:
    """Where members come to, in a thread that does nothing but wait for them.

    Attributes:
        came: who has come, and its line.
    """

    def __init__(self) -> None:
        self.came: SimpleQueue[tuple[int, Line]] = SimpleQueue()
        self._host, self._token = ray.util.get_node_ip_address(), secrets.token_bytes(_TOKEN_BYTES)
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._server = socket.create_server((self._host, 0), family=family, backlog=1024)
        Thread(target=self._listen, name="lines", daemon=True).start()

    def meeting(self, member: int) -> Meeting:
        """What a member has to know."""
        return Meeting(self._host, self._server.getsockname()[1], self._token, member)

    def close(self) -> None:
        """Lets nobody in any more."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # else the thread would go on waiting
        self._server.close()

    def _listen(self) -> None:
        with suppress(OSError):  # it has been closed
            while True:
                found, _ = self._server.accept()
                member = _greeting(found, self._token)
                if member is None:
                    found.close()
                else:
                    self.came.put((member, Line(found, STALLED_S)))


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


def answered(lines: Iterable[Line], limit_s: float) -> list[Line]:
    """Those on which something has come; waits for the first one, and not beyond a limit."""
    by_number = {line.fileno(): line for line in lines}
    poll = select.poll()
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(1e3 * limit_s)]


def answer_in_thread(meeting: Meeting, do: Callable[[Request], Answer]) -> None:
    """What a member does: it answers on a line, and to calls of Ray as well.

    Args:
        meeting: see `Crew.serve`.
        do: the work; an exception of it ends the line.
    """
    Thread(target=_answer, args=(meeting, do), name="line", daemon=True).start()


def _answer(meeting: Meeting, do: Callable[[Request], Answer]) -> None:
    try:
        found = socket.create_connection((meeting.host, meeting.port), timeout=CONNECT_S)
        found.sendall(meeting.token + _NUMBER.pack(meeting.member))
    except OSError:  # nobody waits any longer, or a firewall is in the way
        return
    reader = RequestReader()
    with Line(found) as line, suppress(EOFError, OSError):
        while True:
            request = reader.request(line.receive())
            try:
                answer = do(request)
            except Exception:
                logger.info("the line ends", exc_info=True)
                return
            line.send(answer_message(answer))
