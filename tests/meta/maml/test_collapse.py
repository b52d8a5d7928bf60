"""Entropy stays where it should, and a collapsed run goes back to where it was best."""

import math

import numpy as np
import pytest

from meta.maml.algorithm import HIGHEST_COEFFICIENT, LOWEST_COEFFICIENT, next_coefficient
from meta.maml.collapse import LAST, LOW_ENTROPY, PATIENCE, CollapseDetector

FINE = 0.3  # entropy of a policy that is well


def weights_of(number: float) -> dict[str, np.ndarray]:
    return {"w": np.array([number], np.float32)}


def test_coefficient_moves_against_the_error_and_keeps_its_bounds() -> None:
    assert next_coefficient(0.02, 0.25, 0.25) == pytest.approx(0.02)
    assert next_coefficient(0.02, 0.125, 0.25) == pytest.approx(0.02 * math.exp(0.1))
    assert next_coefficient(0.02, 5.0, 0.25) == pytest.approx(0.02 * math.exp(-0.2))
    low = high = 0.02
    for _ in range(100):
        low, high = next_coefficient(low, 1.0, 0.25), next_coefficient(high, 0.0, 0.25)
    assert (low, high) == (LOWEST_COEFFICIENT, HIGHEST_COEFFICIENT)
    assert next_coefficient(low, 0.0, 0.25) > low
    assert next_coefficient(0.02, 0.3, 0.0) == 0


def test_controller_brings_an_entropy_that_follows_the_bonus_to_the_target() -> None:
    coefficient, entropy = 0.001, 0.0
    for _ in range(200):
        entropy += 0.2 * (10 * coefficient - entropy)  # rises slowly with the bonus
        coefficient = next_coefficient(coefficient, entropy, 0.25)
    assert entropy == pytest.approx(0.25, rel=0.05)


def test_low_entropy_counts_only_in_a_row() -> None:
    detector = CollapseDetector()
    for _ in range(3):
        for _ in range(PATIENCE - 1):
            assert detector.observe(weights_of(1), -1.0, LOW_ENTROPY / 2, True) is None
        assert detector.observe(weights_of(1), -1.0, FINE, True) is None
    for _ in range(PATIENCE - 1):
        assert detector.observe(weights_of(1), -1.0, 0.0, True) is None
    assert detector.observe(weights_of(1), -1.0, 0.0, True) is not None
    assert (detector.low, detector.collapses, detector.scale) == (0, 1, 0.5)


def test_collapse_goes_back_to_the_best_average_and_a_lucky_iteration_is_none() -> None:
    detector = CollapseDetector()
    for number in range(60):  # gets better up to the 30th, then worse, with noise
        value = -1.0 + 0.01 * min(number, 60 - number) + 0.02 * (-1) ** number
        assert detector.observe(weights_of(number), value, FINE, True) is None
    assert detector.observe(weights_of(60), 0.5, FINE, True) is None  # luck moves the average by .1
    lucky = detector.best_average
    for number in range(61, 61 + PATIENCE - 1):
        assert detector.observe(weights_of(number), -1.2, 0.0, True) is None
    best = detector.observe(weights_of(99), -1.2, 0.0, True)
    assert 30 <= float(best["w"][0]) <= 40
    assert detector.average == detector.best_average == lucky


def test_gradient_that_is_not_finite_goes_back_at_once_every_time() -> None:
    detector = CollapseDetector()
    assert detector.observe(weights_of(0), -1.0, FINE, True) is None
    for times in (1, 2):
        best = detector.observe(weights_of(7), -1.0, FINE, False)
        assert best["w"][0] == 0
        assert detector.scale == 0.5**times


def diverging(detector: CollapseDetector, values: list[float]) -> list[tuple[int, float]]:
    """Observes values, of weights that say their iteration; when it went back, and to which."""
    found = []
    for number, value in enumerate(values):
        best = detector.observe(weights_of(number), value, FINE, True)
        if best is not None:
            assert "the run diverged" in detector.reason
            found.append((number, float(best["w"][0])))
    return found


def test_costs_that_explode_go_back_to_the_best_weights() -> None:
    """As in one of five runs on sites: single bad iterations are usual, many in a row are not."""
    usual = [-1.2, -0.9, -1.0, -8.9, -6.9, -1.1, -0.9, -1.0, -0.9, -1.0, -1.0, -0.9, -0.9, -12.0]
    detector = CollapseDetector()
    assert diverging(detector, usual) == []
    exploding = [-4.3, -1.5, -189.0, -3.8, -2.6, -5.5]
    assert diverging(detector, exploding) == [(2, 12.0)]  # the third bad one of five
    assert (detector.scale, detector.collapses) == (0.5, 1)
    early = CollapseDetector()
    assert diverging(early, [-1.1] * LAST + exploding) == [(LAST + 3, 0.0)]


def test_values_by_which_an_explosion_is_seen_are_no_noise() -> None:
    """As in another of these runs, in which single values are far off from the beginning on."""
    usual = [-3.1, -1.0, -1.0, -2.6, -0.9, -1.2, -1.1, -6.1, -1.1, -2.4]
    exploding = [-12.4, -4.3, -1.5, -189.0, -3.8]
    detector = CollapseDetector()
    assert diverging(detector, usual) == []
    assert [number for number, _ in diverging(detector, exploding)] == [4]
    assert detector.values == tuple(usual)


def test_gains_that_vanish_count_as_well_and_small_changes_about_nothing_do_not() -> None:
    assert diverging(CollapseDetector(), [1.1] * 12 + [0.4] * 3) == [(14, 10.0)]
    assert diverging(CollapseDetector(), [0.05] * 12 + [-0.1] * 12) == []


@pytest.mark.parametrize("seed", range(5))
def test_tasks_whose_gains_differ_are_no_divergence(seed: int) -> None:
    """As on objectives: some tasks leave half of the cost to be saved, and others nothing."""
    values = np.random.default_rng(seed).normal(-0.7, 0.4, 400).tolist()
    detector = CollapseDetector()
    assert diverging(detector, values) == []
    (found,) = diverging(detector, [-3.5] * LAST)
    assert found[0] == LAST // 2  # as soon as most of the last values are bad


def test_state_comes_back_and_reset_forgets_all_but_the_scale() -> None:
    detector = CollapseDetector()
    for number in range(20):
        detector.observe(weights_of(number), -1.0 + 0.01 * number, FINE, number != 15)
    again = CollapseDetector()
    again.set_state(detector.get_state())
    assert again.get_state().keys() == detector.get_state().keys()
    assert (again.average, again.seen, again.scale) == (detector.average, 20, 0.5)
    assert np.array_equal(again.best["w"], detector.best["w"])
    again.reset()
    assert math.isnan(again.average)
    again.average = 0.0  # Python 3.13 compares fields one by one, and NaN is not equal to itself
    assert again == CollapseDetector(scale=0.5, collapses=1, average=0.0)
