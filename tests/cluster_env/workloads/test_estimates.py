"""Estimates: Tsafrir's model against its authors' program, and normal errors."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.workloads.estimates import ESTIMATES, get_estimates
from cluster_env.workloads.lublin import draw_jobs, types_for
from cluster_env.workloads.tsafrir import bin_sizes, bin_times, draw_estimates, num_bins
from tests.golden import stored


@pytest.fixture
def bins(golden: Path) -> dict[str, dict]:
    return json.loads(stored(golden / "lublin" / "tsafrir_bins.json").read_text())


def test_times_and_sizes_are_those_of_the_authors_program(bins: dict[str, dict]) -> None:
    """The sizes within what its way of making them sum up leaves open."""
    assert len(bins) == 8
    for name, entry in bins.items():
        head, tail = bin_times(entry["njobs"], entry["max_est"])
        assert num_bins(entry["njobs"]) == entry["nbins"]
        assert head[0] == entry["max_est"]
        if not entry["counts_identical_over_repetitions"]:
            continue  # it reads behind the end of a table there, and so does what follows
        assert sorted(head + tail) == entry["times"], name
        sizes = bin_sizes(entry["njobs"], len(head), len(tail))
        assert sum(sizes) == entry["njobs"]
        loose = entry["njobs"] <= 200 or entry["njobs"] >= 300_000
        most = np.abs(np.array(sorted(sizes, reverse=True)) - entry["counts_sorted"]).max()
        assert most <= (6 if loose else 2), name


def test_even_a_short_maximum_has_the_times_of_the_program(bins: dict[str, dict]) -> None:
    entry = bins["n1000_max3600"]
    assert sorted(sum(bin_times(1000, 3600), ())) == entry["times"]


def test_popular_times_are_as_popular_as_in_the_program(bins: dict[str, dict]) -> None:
    entry = bins["n1000_max64800"]
    rng, ones = np.random.default_rng(0), np.ones(1000, np.int64)
    drawn = np.concatenate([draw_estimates(rng, ones, 64_800) for _ in range(60)])
    for time, share in entry["head_mean_share"].items():
        # A share goes up and down with the rank that chance gives a time: by a fifth, of 60 means.
        assert (drawn == int(time)).mean() == pytest.approx(share, rel=0.35), time


def test_jobs_of_all_lengths_ask_as_those_of_the_program_do(golden: Path) -> None:
    with np.load(stored(golden / "lublin" / "schedgym_p256.npz")) as file:
        accuracy = float(file["acc_mean"])
        by_run = file["est_given_run_decile"]
    run = draw_jobs(np.random.default_rng(1), 200_000, types_for(256, True), 8)[1]
    estimate = draw_estimates(np.random.default_rng(2), run)
    assert (estimate >= run).all()
    assert (run / estimate).mean() == pytest.approx(accuracy, rel=0.1)
    for rows, expected in zip(np.array_split(np.argsort(run), 10), by_run, strict=True):
        assert np.log2((run[rows] / estimate[rows]).mean() / expected[1]) == pytest.approx(0, abs=1)


@given(st.lists(st.integers(1, 40 * 86_400), min_size=1, max_size=60), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_no_estimate_of_tsafrir_is_below_the_run_time(run: list[int], largest: int) -> None:
    jobs = np.array(run, np.int64)
    estimate = draw_estimates(np.random.default_rng(0), jobs, largest)
    assert (estimate >= jobs).all()
    assert estimate.max() <= max(largest, *run, 3600)


def test_normal_errors_have_the_spread_that_is_asked_for() -> None:
    run = np.full(20_000, 10_000, np.int64)
    rng = np.random.default_rng(0)
    both, over, under = (
        get_estimates(f"{name}:0.2")(rng, run) for name in ("gaussian", "over", "under")
    )
    assert both.mean() == pytest.approx(10_000, rel=0.01)
    assert both.std() == pytest.approx(2000, rel=0.03)
    half_normal = 2000 * np.sqrt(2 / np.pi)
    assert (over >= run).all()
    assert over.mean() == pytest.approx(10_000 + half_normal, rel=0.01)
    assert (under <= run).all()
    assert under.mean() == pytest.approx(10_000 - half_normal, rel=0.01)


@pytest.mark.parametrize("name", ESTIMATES.names())
def test_estimates_are_whole_seconds_from_one_on(name: str) -> None:
    run = np.array([1, 1, 2, 50_000], np.int64)
    drawn = get_estimates(name)(np.random.default_rng(5), run)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 1
    again = get_estimates(name)(np.random.default_rng(5), run)
    np.testing.assert_array_equal(drawn, again)


@pytest.mark.parametrize(
    "spec", ["exakt", "exact:2", "gaussian:x", "gaussian:-1", "uniform:0.5", "uniform:nan"]
)
def test_an_unknown_kind_of_estimates_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match="estimates"):
        get_estimates(spec)
