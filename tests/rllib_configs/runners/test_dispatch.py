"""Sums come back whole and the same, whoever is lost on the way; without Ray."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest
import ray
from ray.exceptions import RayActorError, RaySystemError, RayTaskError

from rllib_configs.runners.dispatch import Iteration, Timeouts, _Queue
from rllib_configs.runners.sums import Part, merged
from rllib_configs.runners.units import Answer, Request, WeightsMissingError

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
        return Answer(merged(parts, request.round.count), 0.5, self.error)

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
class Group:
    """In the place of `Runners`: they answer at once, unless their n-th call is to be lost."""

    runners: dict[int, Runner]
    dying: dict[int, int] = field(default_factory=dict)
    hanging: dict[int, int] = field(default_factory=dict)
    here: Runner = field(default_factory=Runner)
    lost: list[tuple[int, bool]] = field(default_factory=list)
    timeouts: Timeouts = field(default_factory=lambda: Timeouts(0.01))
    iterations: Any = field(default_factory=count)

    def available(self) -> list[int]:
        return list(self.runners)

    def call(self, runner: int, request: Request) -> Any:
        call = len(self.runners[runner].asked) + 1
        if self.hanging.get(runner) == call:
            return ("hangs", runner)
        if self.dying.get(runner) == call:
            return ("dies", runner)
        answer = self.runners[runner].sample(request=request)
        return ("answers", runner, lambda: answer)

    def lose(self, runner: int, *, hangs: bool) -> None:
        self.lost.append((runner, hangs))
        del self.runners[runner]

    def run_locally(self, request: Request) -> Answer:
        return self.here.sample(request=request)


@pytest.fixture(autouse=True)
def _no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], None]:
        return [each for each in references if each[0] != "hangs"][:num_returns], None

    def get(reference: tuple[str, int, Callable[[], Answer]]) -> Answer:
        if reference[0] == "dies":
            raise RayActorError
        answer = reference[2]()
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(ray, "put", lambda value: ("reference", value))
    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(ray, "get", get)


UNITS = [Numbered(index) for index in range(11)]


def iteration_of(group: Group, units: list[Numbered] = UNITS) -> Iteration:
    return Iteration(group, units, {"w": PARAMETERS})  # type: ignore[arg-type]


def sums_of(group: Group) -> list[float]:
    """What three rounds come to."""
    iteration = iteration_of(group)
    rounds = [
        iteration.play(),
        iteration.step("a", PARAMETERS),
        iteration.step("b", PARAMETERS, (2, 7)),
    ]
    assert [each.part.sums["units"] for each in rounds] == [11, 11, 2]
    return [float(each.part.gradient[0]) for each in rounds]


def test_the_bits_do_not_depend_on_who_does_the_work() -> None:
    alone = sums_of(Group({}))
    disturbed = [
        Group({1: Runner()}),
        Group({1: Runner(), 2: Runner(), 4: Runner()}),
        Group({k: Runner() for k in range(40)}),
        Group({1: Runner(), 2: Runner(), 3: Runner()}, dying={2: 1}),
        Group({1: Runner(), 2: Runner(), 3: Runner()}, dying={1: 2, 3: 4}),
        Group({1: Runner(), 2: Runner()}, hanging={1: 1}),
        Group({1: Runner(), 2: Runner()}, dying={1: 1, 2: 1}),
    ]
    for group in disturbed:
        assert sums_of(group) == alone


def test_each_unit_is_asked_for_once_and_learned_from_where_it_was_played() -> None:
    group = Group({1: Runner(), 2: Runner(), 4: Runner()})
    iteration = iteration_of(group)
    done: list[int] = []
    iteration.play(done.append)
    assert done == sorted(set(done))
    assert len(done) > 3
    assert done[-1] == 11
    iteration.step("a", PARAMETERS)
    played = [runner.units() for runner in group.runners.values()]
    assert sorted(index for each in played for index in each) == list(range(11))
    assert [sorted(each) for each in played] == [
        sorted(runner.units("a")) for runner in group.runners.values()
    ]
    assert min(map(len, played)) >= 3
    for runner in group.runners.values():
        starts = [request.round.start for request in runner.asked]
        assert np.array_equal(starts[0]["w"], PARAMETERS)
        assert not any(starts[1:])  # it has them
    assert group.here.asked == []


def test_of_a_lost_runner_its_units_alone_are_done_again() -> None:
    group = Group({1: Runner(), 2: Runner()})
    iteration = iteration_of(group)
    iteration.play()
    others, dying = group.runners[2].units(), group.runners[1]
    group.dying = {1: len(dying.asked) + 1}
    iteration.step("a", PARAMETERS)
    assert group.lost == [(1, False)]
    again = group.runners[2].units("a")
    assert sorted(again) == list(range(11))
    assert again[: len(others)] == others
    iteration.step("b", PARAMETERS)
    assert sorted(group.runners[2].units("b")) == list(range(11))


def test_units_that_a_lost_runner_had_beside_those_of_that_update_go_to_the_others() -> None:
    group = Group({1: Runner(), 2: Runner()})
    iteration = iteration_of(group)
    iteration.play()
    dying = group.runners[1]
    group.dying = {1: len(dying.asked) + 1}
    iteration.step("a", PARAMETERS, dying.units()[:1])
    assert group.lost == [(1, False)]
    iteration.step("b", PARAMETERS)
    assert sorted(group.runners[2].units("b")) == list(range(11))
    assert group.here.asked == []


def test_a_runner_that_hangs_is_replaced_and_named(caplog: pytest.LogCaptureFixture) -> None:
    group = Group({1: Runner(), 2: Runner()}, hanging={2: 1})
    iteration_of(group).play()
    assert group.lost == [(2, True)]
    assert "env runner 2 has not answered for 0 s (resources.runner_timeout_s)" in caplog.text
    assert "it was to play 3 of 11 units" in caplog.text


def test_the_driver_does_what_is_left_where_no_runner_is() -> None:
    group = Group({1: Runner(), 2: Runner()}, dying={1: 1, 2: 2})
    iteration_of(group).play()
    done = 11 - len(group.here.units())
    assert 0 < done < 11
    (request,) = group.here.asked
    assert len(request.units) == 11 - done


def test_more_runners_than_units_leaves_some_alone() -> None:
    group = Group({who: Runner() for who in range(1, 5)})
    iteration_of(group, UNITS[:2]).play()
    assert [len(runner.asked) for runner in group.runners.values()] == [1, 1, 0, 0]


def test_a_fault_in_the_program_is_shown_and_not_tried_again() -> None:
    group = Group({1: Runner(), 2: Runner("Traceback: no such slot")})
    faulty = group.runners[2]
    with pytest.raises(RuntimeError, match="no such slot"):
        iteration_of(group).play()
    assert len(faulty.asked) == 1


def test_a_request_that_cannot_be_read_is_a_fault_and_a_restart_is_not() -> None:
    def lost_by(error: Exception) -> Group:
        group = Group({1: Runner(), 2: Runner()})
        group.runners[2].sample = lambda request: error  # type: ignore[method-assign, assignment]
        iteration_of(group).play()
        return group

    missing = RayTaskError("sample", "", WeightsMissingError("anew"))
    assert lost_by(missing.as_instanceof_cause()).lost == [(2, False)]
    with pytest.raises(RuntimeError, match="No module named 'late'"):
        lost_by(RaySystemError("No module named 'late'"))


def test_a_fast_runner_takes_from_the_back_of_a_slow_one() -> None:
    queue = _Queue({1: [0, 1, 2, 3], 2: [4, 5, 6, 7, 8]}, fixed=False)
    assert queue.take(1) == (0, 1)
    assert [queue.take(2) for _ in range(2)] == [(4, 5, 6), (7, 8)]
    assert not queue.is_empty
    assert [queue.take(2) for _ in range(3)] == [(3,), (2,), ()]
    assert queue.take(1) == ()
    assert queue.is_empty


def test_what_is_given_back_goes_to_those_with_least_to_do() -> None:
    queue = _Queue({1: [0, 1], 2: [2, 3], 3: [4]}, fixed=True)
    taken = queue.take(2)
    queue.give_back(taken, 2, [1, 3])
    assert queue.take(2) == ()
    assert (queue.take(1), queue.take(3)) == ((0, 1, 3), (4, 2))
    alone = _Queue({1: [0, 1]}, fixed=False)
    alone.give_back(alone.take(1), 1, [])
    assert alone.take_all() == (0, 1)


def test_what_a_lost_runner_had_not_begun_goes_to_the_others() -> None:
    """Also what it got from another one that was lost before."""
    queue = _Queue({1: [0], 2: [1], 3: [2, 3]}, fixed=True)
    _, second, third = (queue.take(runner) for runner in (1, 2, 3))
    queue.give_back(third, 3, [1, 2])
    queue.give_back(second, 2, [1])
    assert sorted(queue.take(1)) == [1, 2, 3]
    assert queue.is_empty


def test_units_are_played_with_the_weights_of_the_beginning() -> None:
    """Learning changes the module meanwhile, and a later call sends what it began with."""
    group, weights = Group({}), {"w": PARAMETERS.copy()}
    iteration = Iteration(group, UNITS, weights)  # type: ignore[arg-type]
    weights["w"] += 1
    iteration.play()
    (request,) = group.here.asked
    assert np.array_equal(request.round.start["w"], PARAMETERS)


def test_the_limit_grows_with_the_slowest_unit() -> None:
    timeouts = Timeouts()
    for seconds in (40.0, 20.0):
        timeouts.observe(seconds, num_units=2)
    assert timeouts.limit_s(3) == 10 * 20 * 3


def test_large_arrays_go_to_the_object_store_once() -> None:
    group = Group({1: Runner(), 2: Runner()})
    large = np.zeros(100_000, np.float32)
    iteration = Iteration(group, UNITS, {"w": large})  # type: ignore[arg-type]
    iteration.play()
    iteration.step("a", large)
    first = [runner.asked[0].round.start for runner in group.runners.values()]
    assert first[0] is first[1]
    assert first[0][0] == "reference"
    steps = [runner.asked[-1].round.parameters for runner in group.runners.values()]
    assert steps[0] is steps[1]
    assert steps[0][0] == "reference"
