"""Intervals cover what they say as often as they say."""

import math

import numpy as np
import pytest

from cluster_env.evaluation.intervals import (
    Estimate,
    Pooled,
    difference_interval,
    jobset_interval,
    ratio_interval,
    two_level_interval,
)


def test_mean_is_pooled_over_jobs() -> None:
    estimate = jobset_interval(Pooled(np.array([2.0, 30.0]), np.array([1.0, 3.0])))
    assert estimate.value == 8.0
    assert estimate.over == "jobsets"
    assert estimate.low == 2.0
    assert estimate.high == 10.0


def test_interval_over_jobsets_is_that_of_the_ratio_estimator() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(5, 40, size=800).astype(np.float64)
    totals = counts * rng.gamma(9, 1 / 3, size=800)
    estimate = jobset_interval(Pooled(totals, counts))
    # Linearised: the residuals' standard error over the mean count.
    residuals = totals - estimate.value * counts
    half = 1.96 * residuals.std(ddof=1) / counts.mean() / math.sqrt(counts.size)
    assert estimate.high - estimate.value == pytest.approx(half, rel=0.1)
    assert estimate.value - estimate.low == pytest.approx(half, rel=0.1)


def test_interval_covers_the_true_mean_19_times_in_20() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        counts = rng.integers(1, 20, size=60).astype(np.float64)
        estimate = jobset_interval(Pooled(rng.gamma(2 * counts, 1.5), counts))
        hits += estimate.low <= 3.0 <= estimate.high
    assert 180 <= hits <= 199  # 95 % +- 3 standard errors


def test_jobsets_without_values_change_nothing() -> None:
    totals, counts = np.arange(1.0, 11.0), np.ones(10)
    with_gaps = jobset_interval(Pooled(np.r_[totals, 0.0, 0.0], np.r_[counts, 0.0, 0.0]))
    assert with_gaps == jobset_interval(Pooled(totals, counts))


@pytest.mark.parametrize("counts", [[], [0.0], [4.0]])
def test_too_few_jobsets_give_no_interval(counts: list[float]) -> None:
    estimate = jobset_interval(Pooled(np.array(counts) * 2, np.array(counts)))
    assert estimate.over == "nothing"
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.value) or estimate.value == 2.0


def test_differences_in_pairs_are_sharper_than_the_means() -> None:
    rng = np.random.default_rng(2)
    counts = np.full(300, 10.0)
    totals = counts * rng.gamma(2, 2, size=300)
    worse = totals + counts * rng.uniform(0.05, 0.15, size=300)
    difference = difference_interval(Pooled(totals, counts), Pooled(worse, counts))
    assert difference.value == pytest.approx(-0.1, abs=0.01)
    assert difference.high < 0
    mean = jobset_interval(Pooled(totals, counts))
    assert difference.high - difference.low < 0.1 * (mean.high - mean.low)


@pytest.mark.parametrize("empty", [0, 1])
def test_a_jobset_that_is_empty_for_one_policy_alone_is_left_out_of_pairs(empty: int) -> None:
    """As where a warm-up leaves it a single job, which one of the policies has dropped."""
    totals, counts = np.array([2.0, 7.0, 6.0, 9.0]), np.array([1.0, 2.0, 2.0, 3.0])
    sides = [Pooled(totals, counts), Pooled(2 * totals, counts)]
    sides[empty] = Pooled(sides[empty].totals * [1, 0, 1, 1], counts * [1, 0, 1, 1])
    kept = np.array([True, False, True, True])
    for interval in (difference_interval, ratio_interval):
        found = interval(*sides)
        assert found == interval(*(side.select(kept) for side in sides))
        assert found.over == "jobsets"
    assert difference_interval(*sides).value == pytest.approx(-17 / 6)


def exact(value: float) -> Estimate:
    """A mean that does not vary over jobsets."""
    return Estimate(value, value, value, "jobsets")


def test_interval_over_seeds_alone_is_students() -> None:
    estimate = two_level_interval([[2.0, 2.2, 2.4]], exact(2.2), num_jobsets=500)
    assert estimate.value == pytest.approx(2.2)
    assert estimate.high - estimate.value == pytest.approx(4.302653 * 0.2 / math.sqrt(3))
    assert estimate.over == "seeds and jobsets"


def test_difference_over_seeds_alone_is_welchs() -> None:
    one = two_level_interval([[2.0, 2.2, 2.4], [3.0]], exact(-0.8), num_jobsets=500)
    assert one.value == pytest.approx(-0.8)
    assert one.high - one.value == pytest.approx(4.302653 * 0.2 / math.sqrt(3))
    both = two_level_interval([[2.0, 2.2, 2.4], [3.0, 3.2, 3.4]], exact(-1.0), num_jobsets=500)
    assert both.high - both.value == pytest.approx(2.776445 * math.sqrt(2 * 0.04 / 3), rel=1e-6)


def test_seeds_that_agree_leave_the_interval_over_jobsets() -> None:
    within = Estimate(2.0, 1.9, 2.1, "jobsets")
    estimate = two_level_interval([[2.0, 2.0, 2.0]], within, num_jobsets=1000)
    assert (estimate.low, estimate.high) == pytest.approx((1.9, 2.1))


def test_two_levels_cover_the_true_mean_about_19_times_in_20() -> None:
    """Three seeds with an effect of their own, on 40 jobsets with theirs."""
    rng = np.random.default_rng(3)
    hits, widths = 0, []
    for _ in range(200):
        jobsets, seeds = rng.normal(0, 0.5, size=40), rng.normal(0, 0.1, size=(3, 1))
        values = 2 + jobsets + seeds + rng.normal(0, 0.2, size=(3, 40))
        within = jobset_interval(Pooled(values.sum(axis=0), np.full(40, 3.0)))
        estimate = two_level_interval([values.mean(axis=1).tolist()], within, 40)
        hits += estimate.low <= 2 <= estimate.high
        widths.append(estimate.high - estimate.low)
    assert hits >= 180
    # The mean varies by sqrt(.5^2 / 40 + .1^2 / 3 + .2^2 / 120) = .1; Student's t of 2 is 4.3.
    assert np.median(widths) < 2 * 4.3 * 0.1


def test_no_interval_over_jobsets_is_no_interval_over_both() -> None:
    lone = Estimate(2.0, math.nan, math.nan, "nothing")
    assert two_level_interval([[1.9, 2.1]], lone, num_jobsets=1).over == "nothing"


def test_the_ratio_of_pooled_means_pairs_the_jobsets() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(5, 40, size=100).astype(np.float64)
    others = counts * rng.gamma(2, 1, size=100)
    estimate = ratio_interval(Pooled(1.5 * others, counts), Pooled(others, counts))
    # The two means vary a lot from jobset to jobset, their quotient not at all.
    assert estimate == Estimate(*[pytest.approx(1.5)] * 3, "jobsets")  # type: ignore[arg-type]
    # Several episodes of each jobset change nothing.
    again = ratio_interval(Pooled(4.5 * others, 3 * counts), Pooled(others, counts))
    assert again.value == pytest.approx(1.5)
    totals = others * rng.uniform(1, 2, size=100)
    varied = ratio_interval(Pooled(totals, counts), Pooled(others, counts))
    assert varied.value == pytest.approx(totals.sum() / others.sum())
    assert varied.low < varied.value < varied.high


def test_a_ratio_leaves_jobsets_without_jobs_out_and_needs_two_for_an_interval() -> None:
    none, one = np.array([0.0]), np.array([2.0, 0.0])
    assert math.isnan(ratio_interval(Pooled(none, none), Pooled(none, none)).value)
    alone = ratio_interval(Pooled(2 * one, one), Pooled(one, one))
    assert (alone.value, alone.over) == (2.0, "nothing")


def test_copies_of_one_window_prove_nothing() -> None:
    counts = np.full(10, 40.0)
    found = difference_interval(Pooled(2 * counts, counts), Pooled(3 * counts, counts), 1)
    assert (found.value, found.over) == (-1.0, "nothing")
    assert math.isnan(found.low)


def test_more_windows_of_one_log_prove_no_more_than_the_log() -> None:
    """With all windows of it, Student's interval of the log's k stretches remains."""
    rng = np.random.default_rng(5)
    values, counts = rng.gamma(2, 2, size=10), np.ones(10)
    student = 2.262157 * values.std(ddof=1) / math.sqrt(10)
    many = jobset_interval(Pooled(np.tile(values, 1000), np.tile(counts, 1000)), 10)
    assert many.high - many.value == pytest.approx(student, rel=1e-3)
    few = jobset_interval(Pooled(values, counts), 10)  # which windows were drawn counts, too
    assert few.high - few.value == pytest.approx(student * math.sqrt(19 / 9), rel=1e-6)
    drawn = jobset_interval(Pooled(values, counts), 10**9)
    assert drawn.high - drawn.value == pytest.approx(student)


def test_windows_that_overlap_cover_the_true_difference_19_times_in_20() -> None:
    """Each log is ten windows long, of jobs whose costs differ by .3 between two policies."""
    rng = np.random.default_rng(6)
    hits = naive = 0
    for _ in range(200):
        stretch, jobs = np.repeat(rng.gamma(4, 0.25, size=100), 5), rng.gamma(4, 0.25, size=500)
        begins = rng.integers(0, 451, size=100)
        counts = np.full(100, 50.0)
        one, two = (
            np.array([costs[begin : begin + 50].sum() for begin in begins])
            for costs in (stretch + 0.3 * jobs, stretch)
        )
        found = difference_interval(Pooled(one, counts), Pooled(two, counts), 10)
        hits += found.low <= 0.3 <= found.high
        spread = (one - two).std(ddof=1) / 50 / math.sqrt(100)
        naive += abs(found.value - 0.3) <= 1.96 * spread
    assert 184 <= hits <= 199
    assert naive < 130
