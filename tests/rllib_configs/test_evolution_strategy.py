"""The search and what it judges by, without Ray."""

import numpy as np
import pytest

from rllib_configs.learning.evolution import (
    BREACH,
    FULL_RATE,
    MULTIPLIERS,
    CandidateJudge,
    CandidateSearch,
    Limit,
)

WAIT = Limit(worse=0.25, higher_is_better=False)
USE = Limit(worse=0.1, higher_is_better=True)


def searched(iterations: int, seed: int = 0, population: int = 8) -> tuple[CandidateSearch, list]:
    """A search for the place where a stretched bowl is lowest."""
    search = CandidateSearch(np.full(4, 3.0), 0.5, population, seed)
    return search, [step(search, iteration) for iteration in range(iterations)]


def step(search: CandidateSearch, iteration: int) -> np.ndarray:
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
    other = CandidateSearch(np.zeros(4), 1.0, 8, seed=0)
    other.set_state(search.get_state())
    for iteration in range(7, 12):
        assert np.array_equal(step(search, iteration), step(other, iteration))
    assert np.array_equal(search.mean, other.mean)


@pytest.mark.parametrize(
    ("limit", "value", "reference", "expected"),
    [
        (WAIT, 125, 100, 0.0),
        (WAIT, 251, 100, np.log(252 / 126)),
        (WAIT, 62, 100, np.log(63 / 126)),
        (WAIT, 1, 0, np.log(2)),  # one second where the reference has none
        (USE, 0.45, 0.5, 0.0),
        (USE, 0.3, 0.5, np.log(1.5)),
        (USE, 0.9, 0.5, np.log(0.5)),
    ],
)
def test_an_excess_is_the_logarithm_of_what_is_beyond_a_limit(
    limit: Limit, value: float, reference: float, expected: float
) -> None:
    found = limit.excess(np.array([0.0, value]), np.array([1.0, reference]))
    assert found[1] == pytest.approx(expected, abs=1e-12)


def test_slack_lets_short_waits_count_little() -> None:
    nothing, some = np.zeros(2), np.array([90.0, 9.0])
    assert WAIT.excess(some, nothing, np.array([900.0, 90.0])) == pytest.approx(np.log(1.1))
    use = np.array([0.3, 0.4]), np.array([0.5, 0.5])
    assert np.array_equal(USE.excess(*use, slack=900.0), USE.excess(*use))


JUDGED = np.array([[[2.0, 0.3, -0.1], [4.0, -0.1, -0.3]], [[1.0, 0.6, 0.1], [1.0, 0.2, 0.3]]])
"""Two candidates, two sequences, two limits."""


@pytest.mark.parametrize(
    ("on_mean", "rate", "expected"),
    [
        (False, 0.0, [3 + 2 * 0.15, 1 + 2 * 0.4 + 5 * 0.2]),
        (True, 0.0, [3 + 2 * 0.1, 1 + 2 * 0.4 + 5 * 0.2]),
        (True, 0.1, [3 + 2 * 0.1 - 5 * 0.2, 1 + 2 * 0.4 + 5 * 0.2]),  # the Lagrangian
    ],
)
def test_limits_hold_on_each_sequence_or_on_the_mean(
    on_mean: bool, rate: float, expected: list[float]
) -> None:
    assert CandidateJudge([2.0, 5.0], on_mean, rate).costs(JUDGED) == pytest.approx(expected)


def test_pooled_costs_are_those_of_all_jobs() -> None:
    pooled = CandidateJudge([2.0, 5.0], True, 0.0, pooled=True)
    mean = np.log((np.exp(2.0) + np.exp(4.0)) / 2)
    expected = [mean + 2 * 0.1, 1 + 2 * 0.4 + 5 * 0.2]
    assert pooled.costs(JUDGED) == pytest.approx(expected)
    assert pooled.final_costs(JUDGED) == pytest.approx(expected)


def test_the_best_is_chosen_by_the_same_at_any_time() -> None:
    judge = CandidateJudge([2.0, 5.0], True, 0.1)
    expected = [3 + BREACH * 0.1, 1 + BREACH * 0.6]
    assert judge.final_costs(JUDGED) == pytest.approx(expected)
    judge.adapt(np.array([1.0, -1.0]))
    assert judge.final_costs(JUDGED) == pytest.approx(expected)
    fixed = CandidateJudge([2.0, 5.0], False, 0.0)
    assert np.array_equal(fixed.final_costs(JUDGED), fixed.costs(JUDGED))


def test_a_multiplier_rises_while_its_limit_is_violated_and_falls_while_it_is_kept() -> None:
    judge = CandidateJudge([2.0, 5.0, 1.0], True, 0.1)
    judge.adapt(np.array([1.0, -1.0, FULL_RATE / 2]))
    assert judge.multipliers == pytest.approx([2 * np.exp(0.1), 5 * np.exp(-0.1), np.exp(0.05)])
    for _ in range(200):
        judge.adapt(np.array([1.0, -1.0, 0.0]))
    assert judge.multipliers == pytest.approx([MULTIPLIERS[1], MULTIPLIERS[0], np.exp(0.05)])


def test_adapting_multipliers_lead_to_the_best_that_keeps_a_limit() -> None:
    """Of x'x with x0 >= 1, which is at (1, 0, 0, 0) with the multiplier 2."""
    search, judge = CandidateSearch(np.zeros(4), 0.5, 10, 0), CandidateJudge([0.05], True, 0.1)
    for iteration in range(160):
        tried = np.concatenate([search.ask(iteration), search.mean[None]]).astype(float)
        judged = np.stack([(tried**2).sum(axis=1), 1 - tried[:, 0]], axis=1)[:, None]
        search.tell(judge.costs(judged)[:-1])
        judge.adapt(judge.beyond(judged)[-1])
    assert search.mean == pytest.approx([1, 0, 0, 0], abs=0.1)
    assert judge.multipliers[0] == pytest.approx(2, rel=0.15)
