"""Sums come back whole and the same, whoever is lost on the way; without Ray."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import ray
from ray.exceptions import RayActorError

from rllib_configs.runners.iteration import Iteration
from rllib_configs.runners.patience import Patience
from rllib_configs.runners.requests import Answer, Request
from rllib_configs.runners.stations import Station, StationCrew, Stationed
from rllib_configs.runners.sums import Part, merged

PARAMETERS = np.ones(3, np.float32)


@dataclass(frozen=True)
class Numbered:
    index: int


@dataclass
class Runner:
    """Says of each unit a number whose sums depend on the order of the additions."""

    error: str | None = None
    asked: list[Request] = field(default_factory=list)

    def sample(self, *, request: Request) -> Answer:
        self.asked.append(request)
        parts = {(0, place): part_of(unit, request) for place, unit in request.units.items()}
        return Answer(merged(parts, request.round.count), 0.5, 0.1, self.error)

    def units(self, step: Any = None) -> list[int]:
        """Indices of the units that it was asked for in a round."""
        return [
            unit.index
            for request in self.asked
            if request.round.step == step
            for unit in request.units.values()
        ]


def part_of(unit: Numbered, request: Request) -> Part:
    value = np.float32(10.0 ** (unit.index % 7) / 3) * (1 if request.round.step is None else -2)
    return Part(np.array([value], np.float32), {"units": 1.0})


@dataclass
class Crew:
    """Runners that answer at once; those of `dying` and `hanging` are lost at their n-th call."""

    runners: dict[int, Runner]
    dying: dict[int, int] = field(default_factory=dict)
    hanging: dict[int, int] = field(default_factory=dict)
    here: Runner = field(default_factory=Runner)
    lost: list[tuple[int, bool]] = field(default_factory=list)
    size: int = 3

    def healthy(self) -> list[int]:
        return list(self.runners)

    def ask(self, runner: int, request: Request) -> Any:
        call = len(self.runners[runner].asked) + 1
        if self.hanging.get(runner) == call:
            return ("hangs", runner)
        if self.dying.get(runner) == call:
            return ("dies", runner)
        answer = self.runners[runner].sample(request=request)
        return ("answers", runner, lambda: answer)

    def team(self, runner: int) -> tuple[int, ...]:
        return (runner,)

    def name(self, runner: int) -> str:
        return f"env runner {runner}"

    def lose(self, runner: int, *, hangs: bool) -> None:
        self.lost.append((runner, hangs))
        del self.runners[runner]

    def do_here(self, request: Request) -> Answer:
        return self.here.sample(request=request)


@pytest.fixture(autouse=True)
def _no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], None]:
        return [each for each in references if each[0] != "hangs"][:num_returns], None

    def get(reference: tuple[str, int, Callable[[], Answer]]) -> Answer:
        if reference[0] == "dies":
            raise RayActorError
        return reference[2]()

    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")
    monkeypatch.setattr(ray, "put", lambda value: ("reference", value))
    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(ray, "get", get)


UNITS = [Numbered(index) for index in range(11)]


def iteration_of(crew: Crew, units: list[Numbered] = UNITS) -> Iteration:
    return Iteration(crew, units, {"w": PARAMETERS}, Patience(0.01))


def sums_of(crew: Crew) -> list[float]:
    """What three rounds come to."""
    iteration = iteration_of(crew)
    rounds = [
        iteration.play(),
        iteration.step("a", PARAMETERS),
        iteration.step("b", PARAMETERS, (2, 7)),
    ]
    assert [each.part.sums["units"] for each in rounds] == [11, 11, 2]
    return [float(each.part.gradient[0]) for each in rounds]


def test_the_bits_do_not_depend_on_who_does_the_work() -> None:
    alone = sums_of(Crew({}, size=0))
    disturbed = [
        Crew({1: Runner()}),
        Crew({1: Runner(), 2: Runner(), 4: Runner()}),
        Crew({k: Runner() for k in range(40)}),
        Crew({1: Runner(), 2: Runner(), 3: Runner()}, dying={2: 1}),
        Crew({1: Runner(), 2: Runner(), 3: Runner()}, dying={1: 2, 3: 4}),
        Crew({1: Runner(), 2: Runner()}, hanging={1: 1}),
        Crew({1: Runner(), 2: Runner()}, dying={1: 1, 2: 1}),
    ]
    for crew in disturbed:
        assert sums_of(crew) == alone


def test_each_unit_is_asked_for_once_and_learned_from_where_it_was_played() -> None:
    crew = Crew({1: Runner(), 2: Runner(), 4: Runner()})
    iteration = iteration_of(crew)
    done: list[int] = []
    iteration.play(done.append)
    assert done == sorted(set(done))
    assert len(done) > 3
    assert done[-1] == 11
    iteration.step("a", PARAMETERS)
    played = [runner.units() for runner in crew.runners.values()]
    assert sorted(index for each in played for index in each) == list(range(11))
    assert [sorted(each) for each in played] == [
        sorted(runner.units("a")) for runner in crew.runners.values()
    ]
    assert min(map(len, played)) >= 3
    for runner in crew.runners.values():
        starts = [request.round.start for request in runner.asked]
        assert starts[0][0] == "reference"
        assert not any(starts[1:])  # it has them
    assert crew.here.asked == []


def test_of_a_lost_runner_its_units_alone_are_done_again() -> None:
    crew = Crew({1: Runner(), 2: Runner()})
    iteration = iteration_of(crew)
    iteration.play()
    others, dying = crew.runners[2].units(), crew.runners[1]
    crew.dying = {1: len(dying.asked) + 1}
    iteration.step("a", PARAMETERS)
    assert crew.lost == [(1, False)]
    again = crew.runners[2].units("a")
    assert sorted(again) == list(range(11))
    assert again[: len(others)] == others
    iteration.step("b", PARAMETERS)
    assert sorted(crew.runners[2].units("b")) == list(range(11))


def test_units_that_a_lost_runner_had_beside_those_of_that_update_go_to_the_others() -> None:
    crew = Crew({1: Runner(), 2: Runner()})
    iteration = iteration_of(crew)
    iteration.play()
    dying = crew.runners[1]
    crew.dying = {1: len(dying.asked) + 1}
    iteration.step("a", PARAMETERS, dying.units()[:1])
    assert crew.lost == [(1, False)]
    iteration.step("b", PARAMETERS)
    assert sorted(crew.runners[2].units("b")) == list(range(11))
    assert crew.here.asked == []


def test_a_runner_that_hangs_is_replaced_and_named(caplog: pytest.LogCaptureFixture) -> None:
    crew = Crew({1: Runner(), 2: Runner()}, hanging={2: 1})
    iteration_of(crew).play()
    assert crew.lost == [(2, True)]
    assert "env runner 2 has not answered for 0 s (resources.runner_timeout_s)" in caplog.text
    assert "it was to play 3 of 11 units" in caplog.text


def test_the_driver_does_what_is_left_where_no_runner_is() -> None:
    crew = Crew({1: Runner(), 2: Runner()}, dying={1: 1, 2: 2})
    iteration_of(crew).play()
    done = 11 - len(crew.here.units())
    assert 0 < done < 11
    (request,) = crew.here.asked
    assert len(request.units) == 11 - done


def test_more_runners_than_units_leaves_some_alone() -> None:
    crew = Crew({who: Runner() for who in range(1, 5)})
    iteration_of(crew, UNITS[:2]).play()
    assert [len(runner.asked) for runner in crew.runners.values()] == [1, 1, 0, 0]


def test_a_fault_in_the_program_is_shown_and_not_tried_again() -> None:
    crew = Crew({1: Runner(), 2: Runner("Traceback: no such slot")})
    faulty = crew.runners[2]
    with pytest.raises(RuntimeError, match="no such slot"):
        iteration_of(crew).play()
    assert len(faulty.asked) == 1


def test_patience_grows_with_the_slowest_unit() -> None:
    patience = Patience()
    for seconds in (40.0, 20.0):
        patience.observe(Answer({}, seconds=seconds, unit_s=seconds / 2))
    assert patience.limit_s(3) == 10 * 20 * 3


@dataclass
class Remote:
    """A method of an actor: it answers at once, or never."""

    method: Callable[..., Answer]
    fate: str = "answers"

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        try:
            answer = self.method(*args, **kwargs) if self.fate == "answers" else None
        except RuntimeError:
            return ("dies", id(self))
        return (self.fate, object(), lambda: answer)


class RunnerActor:
    """A runner behind a station; it may be lost at its n-th call."""

    def __init__(self, runner: Runner, fate: str = "answers", call: int = 0) -> None:
        self.runner, self.fate, self.call = runner, fate, call

    @property
    def sample(self) -> Remote:
        lost = len(self.runner.asked) + 1 == self.call
        return Remote(self.runner.sample, self.fate if lost else "answers")

    @property
    def serve(self) -> Remote:
        return Remote(lambda meeting: None)  # no line ever comes


class StationActor:
    """A station; it may be lost at its n-th call."""

    def __init__(self, runners: dict[int, RunnerActor], fate: str = "answers", call: int = 0):
        self.station, self.fate, self.call = Station(runners, 0.01), fate, call
        self.calls = 0

    @property
    def work(self) -> Remote:
        self.calls += 1
        return Remote(self.station.work, self.fate if self.calls == self.call else "answers")


def stationed(
    fates: dict[int, tuple[str, int]] | None = None,
    station: tuple[str, int] = ("answers", 0),
    alone: int = 1,
) -> tuple[Crew, StationCrew, list[StationActor]]:
    """Seven runners: three and three behind stations, and one alone, unless there is none."""
    base = Crew({k: Runner() for k in range(1, 7 + alone)}, size=6 + alone)
    actors = {
        k: RunnerActor(base.runners[k], *(fates or {}).get(k, ("answers", 0))) for k in range(1, 7)
    }
    groups = {-1: (1, 2, 3), -2: (4, 5, 6)}
    stations = {
        -1: StationActor({k: actors[k] for k in groups[-1]}, *station),
        -2: StationActor({k: actors[k] for k in groups[-2]}),
    }
    crew = StationCrew(
        base, {k: Stationed(each, f"10.0.0.{-k}", groups[k]) for k, each in stations.items()}
    )
    return base, crew, list(stations.values())


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    monkeypatch.setattr(ray, "kill", lambda actor, **_: found.append(actor))
    return found


def test_the_driver_calls_each_machine_once_in_a_round(killed: list[Any]) -> None:
    base, crew, stations = stationed(alone=0)
    assert {each: crew.team(each) for each in crew.healthy()} == {-1: (1, 2, 3), -2: (4, 5, 6)}
    assert sums_of(crew) == sums_of(Crew({}, size=0))
    assert [each.calls for each in stations] == [3, 3]
    played = [base.runners[k].units() for k in range(1, 7)]
    assert sorted(index for each in played for index in each) == list(range(11))
    assert min(map(len, played)) >= 1
    # What was played by a runner is learned from there, behind a station as well.
    assert [sorted(base.runners[k].units("a")) for k in range(1, 7)] == list(map(sorted, played))
    assert base.lost == killed == []


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("fate", ["dies", "hangs"])
def test_a_runner_lost_behind_a_station_is_replaced_by_its_neighbors(
    fate: str, call: int, killed: list[Any]
) -> None:
    base, crew, _ = stationed({2: (fate, call)})
    assert sums_of(crew) == sums_of(Crew({}, size=0))
    assert base.lost == [(2, False)]  # a station has killed it already
    assert len(killed) == (fate == "hangs")
    assert crew.team(-1) == (1, 3)


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("fate", ["dies", "hangs"])
def test_the_runners_of_a_lost_station_are_called_by_the_driver(
    fate: str, call: int, killed: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    base, crew, stations = stationed(station=(fate, call))
    assert sums_of(crew) == sums_of(Crew({}, size=0))
    assert killed == stations[:1]
    assert crew.healthy() == [-2, 1, 2, 3, 7]
    assert base.lost == []
    assert "the station on 10.0.0.1" in caplog.text


def test_a_station_without_runners_gives_its_work_to_others(killed: list[Any]) -> None:
    base, crew, _ = stationed(dict.fromkeys((1, 2, 3), ("dies", 1)))
    del base.runners[1], base.runners[2], base.runners[3]  # dead, as the driver finds out
    assert sums_of(StationCrew(base, crew._stations)) == sums_of(Crew({}, size=0))
    base, crew, _ = stationed(dict.fromkeys((1, 2, 3), ("dies", 1)))
    assert sums_of(crew) == sums_of(Crew({}, size=0))
    assert crew.healthy()[0] == -2
