"""Workloads, time-utility functions, orders of the literature, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import build_world, get_heuristic
from cluster_env.core.utility import final_utility, unit_utility
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.metrics import get_metric, nonnegative_cost
from cluster_env.objectives import UTILITY, get_objective
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.workloads import PoissonWorkload, read_utility
from cluster_env.worlds.deeprm import DeepRM
from tests.cluster_env.worlds.accrual.accrual_jobs import jobs


def row(text: str) -> np.ndarray:
    return read_utility(text).rows(1)[0]


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("linear", {0: 1, 4: 1, 5: 0.75, 6: 0.5, 8: 0, 90: 0}),
        ("square", {4: 1, 6: 0.25, 8: 0}),
        ("root", {4: 1, 7: 0.5, 8: 0}),
        ("step", {8: 1, 9: 0}),
    ],
)
def test_the_papers_function_falls_from_1_at_l_to_0_at_2_l(
    text: str, worth: dict[int, float]
) -> None:
    assert {elapsed: unit_utility(row(text), elapsed, 4) for elapsed in worth} == worth


@given(st.floats(0.1, 5), st.integers(1, 50), st.integers(1, 20))
def test_breakpoints_are_numpys_interpolation(power: float, elapsed: int, duration: int) -> None:
    text = f"0.5:1 1:0.75 3:0.25 ^{power:g}"
    expected = np.interp(elapsed / duration, [0.5, 1, 3], [1, 0.75, 0.25]) ** float(f"{power:g}")
    assert unit_utility(row(text), elapsed, duration) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["liner", "1:1 0.5:0", "1:0 2:1", "1:2 2:0", "1:x", "1:1 2:0 ^0", "1:1:1", "1:nan"]
)
def test_functions_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError) as raised:
        PoissonWorkload(utility=text)
    assert len(str(raised.value)) < 500


def test_poisson_jobs_are_the_papers() -> None:
    workload = PoissonWorkload(window=20_000)
    jobset = workload.sample(np.random.default_rng(0))
    assert workload.load == pytest.approx(0.375)
    assert jobset.num_jobs == pytest.approx(2000, abs=150)
    assert (jobset.demand.min(), jobset.demand.max()) == (4, 20)
    assert (jobset.duration.min(), jobset.duration.max()) == (5, 10)
    assert jobset.work[0] == pytest.approx(180_000, rel=0.1)


@pytest.mark.parametrize(
    "options", [{"rate": 0}, {"smallest": 0}, {"largest": 25}, {"shortest": 11}, {"window": 0}]
)
def test_workloads_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))}"):
        PoissonWorkload(**options)


@pytest.mark.parametrize("options", [{"processors": 0}, {"candidates": 0}, {"longest": 0}])
def test_worlds_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        build_world({"kind": "accrual", **options})


def test_jobs_that_cannot_run_are_refused() -> None:
    world = Accrual(processors=4)
    with pytest.raises(InputError, match="job 1 asks for 5 processors"):
        world.check(jobs([0, 0], [4, 5], [1, 1]))
    with pytest.raises(InputError, match="time-utility function"):
        world.check(JobSet.of([0], [1], [[1]]))
    with pytest.raises(InputError, match="needs a world with squeeze=true"):
        get_heuristic("aggressive:both", Accrual(squeeze=False))


def test_other_worlds_refuse_the_objective() -> None:
    jobset = JobSet.of([0], [1], [[1, 1]])
    with pytest.raises(InputError, match="utility"):
        DeepRM().simulator().load([jobset], get_objective("utility"))
    with pytest.raises(InputError, match="takes no parameters"):
        get_objective("utility(2)")


def test_what_utility_costs_is_what_is_lost() -> None:
    schedule = evaluate(
        get_heuristic("none", Accrual()), [jobs([0, 0], [20, 20], [8, 8])], Accrual()
    )
    assert final_utility(schedule).tolist() == [160, 0]
    assert get_metric("utility").values(schedule).tolist() == [160, 0]
    assert nonnegative_cost(UTILITY).values(schedule).tolist() == [160]  # of the episode


def test_orders_of_the_literature() -> None:
    """One processor, which the first job holds until 5; deadlines are 2 L after the arrival."""
    world = Accrual(processors=1, longest=15)

    def order(name: str, jobset: JobSet) -> list[int]:
        schedule = evaluate(get_heuristic(name, world), [jobset], world)
        return np.argsort(schedule.start).tolist()

    three = jobs([0, 1, 1, 1], [1, 1, 1, 1], [5, 4, 15, 5])
    assert order("edf", three) == [0, 1, 3, 2]  # deadlines 9, 31, 11
    # At 5 they could be worth nothing, 11 units of 15 and 1 of 5.
    assert order("density", three) == [0, 2, 1, 3]
    assert order("dasa", three) == order("lbesa", three) == [0, 3, 2, 1]  # 2 can wait for 3
    two = jobs([0, 1, 1], [1, 1, 1], [5, 6, 7])
    assert order("edf", two) == [0, 1, 2]  # deadlines 13, 15: too much work
    assert order("dasa", two) == order("lbesa", two) == [0, 2, 1]  # 1/3 is less than 3/7
