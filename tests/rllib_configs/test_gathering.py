"""Units come back whole and in order, whoever is lost on the way; without Ray."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import ray

from rllib_configs.runners.gathering import Patience, gather
from rllib_configs.runners.units import SampleRequest, SampleResult


@dataclass(frozen=True)
class Numbered:
    index: int


@dataclass
class Runner:
    """Answers each unit with its square, and notes what it was asked."""

    error: str | None = None
    asked: list[SampleRequest] = field(default_factory=list)

    def sample(self, *, request: SampleRequest) -> SampleResult:
        self.asked.append(request)
        answers = {unit.index: unit.index**2 for unit in reversed(request.units)}
        return SampleResult(answers, request.version, 0.5, self.error, fetch_s=0.1)


@dataclass
class Group:
    """RLlib's group of runners; those of `dying` die when they are asked, the first first."""

    runners: dict[int, Runner]
    dying: list[int] = field(default_factory=list)
    local_env_runner: Runner = field(default_factory=Runner)

    def num_remote_env_runners(self) -> int:
        return 3

    def healthy_env_runner_ids(self) -> list[int]:
        return list(self.runners)

    def foreach_env_runner(
        self,
        calls: Sequence[Callable[[Runner], Any]],
        remote_worker_ids: list[int],
        local_env_runner: bool,
        timeout_seconds: float,
    ) -> list[Any]:
        assert not local_env_runner
        found = []
        for call, who in zip(calls, remote_worker_ids, strict=True):
            if self.dying and self.dying[0] == who:
                del self.runners[self.dying.pop(0)]
            else:
                found.append(call(self.runners[who]))
        return found


@pytest.fixture(autouse=True)
def _no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "put", lambda value: ("reference", value))


UNITS = [Numbered(index) for index in (3, 0, 7, 5, 1, 2, 9, 4)]
SQUARES = [index.index**2 for index in UNITS]


def test_answers_come_in_the_order_of_the_units_and_the_work_is_shared() -> None:
    group = Group({1: Runner(), 2: Runner(), 4: Runner()})
    found = gather(group, UNITS, "weights", 6)  # type: ignore[arg-type]
    assert found.answers == SQUARES
    requests = [request for runner in group.runners.values() for request in runner.asked]
    assert [len(request.units) for request in requests] == [2, 3, 3]
    assert {(request.weights, request.version) for request in requests} == {
        (("reference", "weights"), 6)
    }
    assert (found.runner_s, group.local_env_runner.asked) == (0.5, [])
    assert found.broadcast_s >= 0.1


def test_units_of_a_lost_runner_go_to_the_others_and_no_other_unit_twice() -> None:
    group = Group({1: Runner(), 2: Runner()}, dying=[1])
    assert gather(group, UNITS, "weights", 0).answers == SQUARES  # type: ignore[arg-type]
    asked = [unit.index for request in group.runners[2].asked for unit in request.units]
    assert sorted(asked) == sorted(unit.index for unit in UNITS)


def test_the_driver_samples_where_no_runner_is_left() -> None:
    group = Group({1: Runner(), 2: Runner()}, dying=[1, 2])
    assert gather(group, UNITS[:3], "weights", 0).answers == SQUARES[:3]  # type: ignore[arg-type]
    (request,) = group.local_env_runner.asked
    assert (request.units, request.weights) == (tuple(UNITS[:3]), "weights")


def test_more_runners_than_units_leaves_some_alone() -> None:
    group = Group({who: Runner() for who in range(1, 5)})
    assert gather(group, UNITS[:2], "weights", 0).answers == SQUARES[:2]  # type: ignore[arg-type]
    assert [len(runner.asked) for runner in group.runners.values()] == [1, 1, 0, 0]


def test_a_fault_in_the_program_is_shown_and_not_tried_again() -> None:
    group = Group({1: Runner(), 2: Runner("Traceback: no such slot")})
    with pytest.raises(RuntimeError, match="no such slot"):
        gather(group, UNITS, "weights", 0)  # type: ignore[arg-type]
    assert len(group.runners[2].asked) == 1


def test_patience_grows_with_the_slowest_unit() -> None:
    patience = Patience()
    for seconds in (40.0, 20.0):
        patience.observe(SampleResult({0: None, 1: None}, version=0, seconds=seconds))
    assert patience.limit_s(3) == 10 * 20 * 3
