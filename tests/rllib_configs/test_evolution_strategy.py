"""The search and what it judges by, without Ray."""

import numpy as np
import pytest

from rllib_configs.learning.evolution import Limit, Search, penalized

WAIT = Limit(worse=0.25, multiplier=3.0, higher_is_better=False)
USE = Limit(worse=0.1, multiplier=10.0, higher_is_better=True)


def searched(iterations: int, seed: int = 0, population: int = 8) -> tuple[Search, list]:
    """A search for the place where a stretched bowl is lowest."""
    search = Search(np.full(4, 3.0), 0.5, population, seed)
    return search, [step(search, iteration) for iteration in range(iterations)]


def step(search: Search, iteration: int) -> np.ndarray:
    candidates = search.ask(iteration)
    search.tell((np.array([1, 10, 100, 1000]) * (candidates - 1.0) ** 2).sum(axis=1))
    return candidates


def test_it_finds_the_lowest_place_of_a_stretched_bowl() -> None:
    search, _ = searched(120)
    assert np.abs(search.mean - 1).max() < 1e-3
    assert search.step_size < 0.01


def test_candidates_depend_on_seed_iteration_and_costs_alone() -> None:
    np.random.seed(1)  # noqa: NPY002 - the state that must be left alone
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = searched(5)[1]
    np.random.seed(2)  # noqa: NPY002
    again = searched(5)[1]
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not np.array_equal(first[0], searched(1, seed=1)[1][0])
    np.random.seed(1)  # noqa: NPY002
    searched(2)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_it_goes_on_from_its_state_with_the_same_bits() -> None:
    search, _ = searched(7)
    other = Search(np.zeros(4), 1.0, 8, seed=0)
    other.set_state(search.get_state())
    for iteration in range(7, 12):
        assert np.array_equal(step(search, iteration), step(other, iteration))
    assert np.array_equal(search.mean, other.mean)


@pytest.mark.parametrize(
    ("limit", "value", "reference", "expected"),
    [
        (WAIT, 100, 100, 0.0),
        (WAIT, 125, 100, 0.0),
        (WAIT, 251, 100, np.log(252 / 126)),
        (WAIT, 1, 0, np.log(2)),  # one second where the reference has none
        (USE, 0.45, 0.5, 0.0),
        (USE, 0.3, 0.5, np.log(1.5)),
        (USE, 0.9, 0.5, 0.0),
    ],
)
def test_a_limit_costs_the_logarithm_of_what_is_beyond_it(
    limit: Limit, value: float, reference: float, expected: float
) -> None:
    assert limit.violation(value, reference) == pytest.approx(expected, abs=1e-12)


def test_penalties_are_added_to_the_logarithm_of_the_cost() -> None:
    total, beyond = penalized(
        np.e**2,
        {"wait": 251, "utilization": 0.3},
        {"wait": 100, "utilization": 0.5},
        {"wait": WAIT, "utilization": USE},
    )
    assert beyond == pytest.approx({"wait": np.log(2), "utilization": np.log(1.5)})
    assert total == pytest.approx(2 + 3 * np.log(2) + 10 * np.log(1.5))
    assert penalized(0.0, {}, {}, {})[0] == pytest.approx(np.log(1e-6))
