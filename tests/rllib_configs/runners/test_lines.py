"""Rounds over open lines come to the same sums, whoever is lost on the way; without Ray."""

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import pytest
import ray

from rllib_configs.runners import lines
from rllib_configs.runners.gathering import Gatherer
from rllib_configs.runners.iteration import Iteration
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


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")
    monkeypatch.setattr(lines, "OPEN_S", 60.0)


class LostError(Exception):
    """The process of a runner ends."""


@dataclass
class Connected(Crew):
    """Runners in threads; those of `dying` and `hanging` are lost at their n-th request."""

    absent: tuple[int, ...] = ()
    strangers: bool = False
    called: list[int] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def ask(self, runner: int, request: Request) -> Any:
        self.called.append(runner)
        return super().ask(runner, request)

    def serve(self, runner: int, meeting: Meeting) -> Any:
        worker = self.runners[runner]

        def do(request: Request) -> Answer:
            if self.dying.get(runner) == len(worker.asked) + 1:
                raise LostError
            if self.hanging.get(runner) == len(worker.asked) + 1:
                self.over.wait(60)
            return worker.sample(request=request)

        def work() -> None:
            if self.strangers:
                stranger = socket.create_connection((meeting.host, meeting.port))
                stranger.sendall(bytes(len(meeting.token)) + runner.to_bytes(8))
            with suppress(LostError):
                lines.answer_on_line(meeting, do)

        if runner not in self.absent:
            Thread(target=work, daemon=True).start()
        return ("hangs", runner)


def sums_on_lines(crew: Connected, timeout_s: float = 60.0) -> list[float]:
    """What the three rounds of `sums_of` come to."""
    with Iteration(crew, UNITS, {"w": PARAMETERS}, Patience(timeout_s)) as iteration:
        rounds = [
            iteration.play(),
            iteration.step("a", PARAMETERS),
            iteration.step("b", PARAMETERS, (2, 7)),
        ]
    meanwhile = list(crew.called)
    again = iteration.step("b", PARAMETERS, (2, 7))  # by calls, because the lines have ended
    crew.called[:] = meanwhile
    assert again.part.gradient == rounds[-1].part.gradient
    crew.over.set()
    return [float(each.part.gradient[0]) for each in rounds]


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


def test_who_does_not_come_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "OPEN_S", 0.3)
    crew = Connected({1: Runner(), 2: Runner()}, absent=(2,))
    assert sums_on_lines(crew) == sums_of(Crew({}, size=0))
    assert crew.lost == []
    assert 2 in crew.called


def test_lines_that_never_come_are_not_waited_for_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[int] = []
    monkeypatch.setattr(lines, "OPEN_S", 0.05)
    monkeypatch.setattr(Connected, "serve", lambda crew, runner, meeting: tried.append(runner))
    monkeypatch.setattr(ray, "wait", lambda calls, **options: ([], calls))
    patience = Patience(60.0)
    for _ in range(5):
        crew = Connected({1: Runner(), 2: Runner()})
        gatherer = Gatherer(crew, patience)
        with gatherer.connected():
            pass
    assert tried == [1, 2] * Patience.ABSENT
    assert caplog.text.count("open no lines") == 1
