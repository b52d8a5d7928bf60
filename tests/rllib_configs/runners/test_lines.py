"""Rounds over open lines come to the same sums, whoever is lost on the way; without Ray."""

import os
import socket
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import numpy as np
import pytest

from rllib_configs.runners import lines
from rllib_configs.runners.iteration import Iteration
from rllib_configs.runners.lines import Line, Lines
from rllib_configs.runners.patience import Patience
from rllib_configs.runners.requests import Answer, Meeting, Request
from tests.rllib_configs.runners.test_gathering import (
    PARAMETERS,
    UNITS,
    Crew,
    Runner,
    _no_ray,  # noqa: F401 - no call of Ray leaves this process
    sums_of,
)
from tests.waiting import PATIENCE_S, wait_for


@pytest.fixture
def found() -> Iterator[Lines]:
    lines = Lines()
    yield lines
    lines.close()


class LostError(Exception):
    """The process of a runner ends."""


@dataclass
class Connected(Crew):
    """Runners in threads; those of `dying` and `hanging` are lost at their n-th request."""

    absent: tuple[int, ...] = ()
    strangers: bool = False
    called: list[int] = field(default_factory=list)
    invited: list[int] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def ask(self, runner: int, request: Request) -> Any:
        self.called.append(runner)
        return super().ask(runner, request)

    def serve(self, runner: int, meeting: Meeting) -> Any:
        self.invited.append(runner)
        worker = self.runners[runner]

        def do(request: Request) -> Answer:
            if self.dying.get(runner) == len(worker.asked) + 1:
                raise LostError
            if self.hanging.get(runner) == len(worker.asked) + 1:
                self.over.wait(60)
            return worker.sample(request=request)

        if self.strangers:
            stranger = socket.create_connection((meeting.host, meeting.port))
            stranger.sendall(bytes(len(meeting.token)) + runner.to_bytes(8))
        if runner not in self.absent:
            lines.answer_in_thread(meeting, do)
        return ("hangs", runner)


def begun(crew: Connected, found: Lines, timeout_s: float = PATIENCE_S) -> Iteration:
    """An iteration to which everybody has come who comes."""
    iteration = Iteration(crew, UNITS, {"w": PARAMETERS}, Patience(timeout_s), found)
    await_lines(found, set(crew.runners) - set(crew.absent))
    return iteration


def await_lines(found: Lines, members: Collection[int]) -> None:
    def there() -> bool:
        found.admit()
        return all(map(found.get, members))

    if not there():
        wait_for(there, "opening lines")


def sums_on_lines(crew: Connected, timeout_s: float = PATIENCE_S) -> list[float]:
    """What the three rounds of `sums_of` come to."""
    found = Lines()
    try:
        iteration = begun(crew, found, timeout_s)
        rounds = [
            iteration.play(),
            iteration.step("a", PARAMETERS),
            iteration.step("b", PARAMETERS, (2, 7)),
        ]
        return [float(each.part.gradient[0]) for each in rounds]
    finally:
        found.close()
        crew.over.set()


def test_sums_have_the_same_bits_on_lines_also_where_runners_are_lost() -> None:
    alone = sums_of(Crew({}, size=0))
    for crew in (
        Connected({1: Runner()}, strangers=True),
        Connected({k: Runner() for k in range(20)}),
        Connected({1: Runner(), 2: Runner(), 3: Runner()}, dying={2: 1}),
        Connected({1: Runner(), 2: Runner()}, dying={1: 3}),
        Connected({1: Runner(), 2: Runner()}, dying={1: 1, 2: 2}),
    ):
        wanted = [(runner, False) for runner in crew.dying]
        assert sums_on_lines(crew) == alone
        assert sorted(crew.lost) == wanted
        assert crew.called == []


def test_a_runner_that_hangs_on_its_line_is_replaced() -> None:
    crew = Connected({1: Runner(), 2: Runner()}, hanging={2: 1})
    assert sums_on_lines(crew, 0.3) == sums_of(Crew({}, size=0))
    assert (2, True) in crew.lost


def test_nobody_waits_for_a_line_and_who_opens_none_is_called() -> None:
    crew = Connected({1: Runner(), 2: Runner()}, absent=(2,))
    assert sums_on_lines(crew) == sums_of(Crew({}, size=0))
    assert crew.lost == []
    assert set(crew.called) == {2}


def test_a_line_lasts_from_iteration_to_iteration_until_it_breaks(found: Lines) -> None:
    crew = Connected({1: Runner(), 2: Runner()})
    wanted = begun(crew, found).play().part.gradient
    kept = [found.get(1), found.get(2)]
    assert begun(crew, found).play().part.gradient == wanted
    assert [found.get(1), found.get(2)] == kept
    assert crew.invited == [1, 2]
    with socket.socket(fileno=os.dup(found.get(2).fileno())) as broken:
        broken.shutdown(socket.SHUT_RDWR)
    assert begun(crew, found).play().part.gradient == wanted
    assert [found.get(1) == kept[0], found.get(2) == kept[1]] == [True, False]
    assert crew.invited == [1, 2, 2]
    assert crew.lost == crew.called == []


def test_what_nobody_waits_for_any_longer_is_no_answer_to_another_round(found: Lines) -> None:
    crew = Connected({1: Runner("Traceback: no such slot"), 2: Runner()}, hanging={2: 1})
    with pytest.raises(RuntimeError, match="no such slot"):
        begun(crew, found).play()
    crew.runners[1].error = None
    later = begun(crew, found)
    crew.over.set()
    wait_for(lambda: crew.runners[2].asked, "the answer that nobody waits for")
    alone = Iteration(Crew({}, size=0), UNITS, {"w": PARAMETERS}, Patience())
    assert later.play().part.gradient == alone.play().part.gradient


def test_who_has_no_line_for_long_is_spoken_of_once(
    found: Lines, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lines, "LATE_S", -1.0)
    crew = Connected({1: Runner(), 2: Runner()}, absent=(1, 2))
    for _ in range(3):
        found.begin(crew)
    assert crew.invited == [1, 2]
    assert caplog.text.count("open no lines") == 1


def test_arrays_of_any_size_and_number_come_as_they_were_sent() -> None:
    sizes = (0, 1, 1023, 1024, 50_000, *[600] * 70)
    message = [*(np.arange(size, dtype=np.float64) for size in sizes), {"name": (1, None)}]
    with socket.create_server(("127.0.0.1", 0)) as server:
        near, (far, _) = socket.create_connection(server.getsockname()), server.accept()
    with Line(near) as sender, Line(far) as receiver, ThreadPoolExecutor(1) as other:
        for _ in range(2):
            sending = other.submit(sender.send, message)
            *came, rest = receiver.receive()
            sending.result()
            assert rest == message[-1]
            for one, sent in zip(came, message[:-1], strict=True):
                assert one.dtype == sent.dtype
                assert np.array_equal(one, sent)
                one += 1  # it belongs to whoever has received it
