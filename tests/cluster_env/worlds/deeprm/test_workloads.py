"""The bimodal workload: its load, its demands, its variations, and what it refuses."""

from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import PHASE_STEPS, BimodalWorkload, Ranges
from tests.cluster_env.worlds.deeprm.rates import at_rate


def test_load_and_arrival_rate_convert_both_ways() -> None:
    workload = BimodalWorkload(load=1.1)
    assert workload.max_load == pytest.approx(4.1 * 0.45)  # mean duration x mean share
    assert workload.arrival_rate == pytest.approx(1.1 / 1.845)
    assert at_rate(workload.arrival_rate).load == pytest.approx(1.1)


@pytest.mark.parametrize(
    "workload",
    [
        BimodalWorkload(load=0.7, window=200),
        BimodalWorkload(load=0.5, window=200, demands="paper"),
        BimodalWorkload(load=1.3, window=200, small_share=0.5, cluster=Cluster((20, 8, 30))),
        BimodalWorkload(load=0.9, window=200, dominant_shares=(0.8, 0.2)),
        BimodalWorkload(
            load=1.0, window=200, dominant_shares=(0.1, 0.7, 0.2), cluster=Cluster((20, 8, 30))
        ),
        BimodalWorkload(load=1.2, window=200, burstiness=0.9, cluster=Cluster(num_classes=2)),
    ],
)
def test_drawn_jobs_have_the_load_that_was_asked_for(workload: BimodalWorkload) -> None:
    jobsets = sample_jobsets(workload, 0, Split.TRAIN, range(400))
    offered = np.array(
        [jobset.work / workload.cluster.capacity / workload.window for jobset in jobsets]
    )
    load = offered.mean(axis=1)
    error = load.std() / np.sqrt(load.size)
    assert abs(load.mean() - workload.load) < 4 * error


def test_demands_and_durations_stay_in_their_ranges() -> None:
    jobsets = sample_jobsets(BimodalWorkload(load=1.8), 1, Split.TRAIN, range(100))
    duration = np.concatenate([jobset.duration for jobset in jobsets])
    demand = np.concatenate([jobset.demand for jobset in jobsets])
    assert set(duration) == {1, 2, 3, 10, 11, 12, 13, 14, 15}
    assert set(demand.max(axis=1)) == {5, 6, 7, 8, 9, 10}
    assert set(demand.min(axis=1)) == {1, 2}


def test_jobsets_depend_on_their_index_and_split_alone() -> None:
    workload = BimodalWorkload()
    together = sample_jobsets(workload, 3, Split.TRAIN, range(5))
    alone = sample_jobsets(workload, 3, Split.TRAIN, [4])[0]
    other = sample_jobsets(workload, 3, Split.HELD_OUT, [4])[0]
    assert np.array_equal(together[4].demand, alone.demand)
    assert not np.array_equal(alone.arrival, other.arrival)


def test_released_code_never_sees_a_job_at_step_0() -> None:
    paper = sample_jobsets(BimodalWorkload(load=1.8), 0, Split.TRAIN, range(50))
    released = sample_jobsets(BimodalWorkload(load=1.8, first_step=1), 0, Split.TRAIN, range(50))
    assert any(jobset.arrival[0] == 0 for jobset in paper)
    assert all(jobset.arrival[0] > 0 for jobset in released)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"load": 1.9}, "out of reach.*up to 1.845"),
        ({"load": 1.0, "demands": "paper"}, "out of reach"),
        ({"load": 0.0}, "out of reach"),
        ({"small_share": 1.2}, "small_share"),
        ({"large_duration": (10, 21)}, r"large_duration.*1\.\.20"),
        ({"small_duration": (3, 1)}, "small_duration"),
        ({"window": 0}, "window"),
        ({"burstiness": 1.0}, "burstiness must be at least 0 and below 1"),
        ({"burstiness": float("nan")}, "burstiness"),
        ({"dominant_shares": (1.0,)}, "dominant_shares needs .* 2 resources, or none, but 1 were"),
        ({"dominant_shares": (0.5, 0.6)}, "dominant_shares must be probabilities that sum to 1"),
        ({"dominant_shares": (1.5, -0.5)}, "dominant_shares must be probabilities"),
        ({"class_shares": (0.5, 0.5)}, "class_shares needs .* 1 classes"),
        ({"class_shares": (0.5,)}, "class_shares must be probabilities that sum to 1"),
    ],
)
def test_impossible_workloads_are_refused_in_one_sentence(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        BimodalWorkload(**options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


THREE = Cluster(num_classes=3)


def jobs_of(count: int, **options: Any) -> list[JobSet]:
    return sample_jobsets(BimodalWorkload(**options), 5, Split.TRAIN, range(count))


def test_deeprm_draws_the_numbers_that_it_always_drew() -> None:
    """The generator's next number says how many were drawn."""
    rng = np.random.default_rng(0)
    jobset = BimodalWorkload(load=1.1, window=50).sample(rng)
    again = np.random.default_rng(0)
    arrives = again.random(50) < 1.1 / 1.845
    short = again.random(50) < 0.8
    small, large = (again.integers(*ends, size=50) for ends in ((1, 4), (10, 16)))
    leading = again.integers(2, size=50)
    dominant, other = (again.integers(*ends, size=(50, 2)) for ends in ((5, 11), (1, 3)))
    demand = np.where(np.arange(2) == leading[:, None], dominant, other)
    assert np.array_equal(jobset.arrival, np.flatnonzero(arrives))
    assert np.array_equal(jobset.duration, np.where(short, small, large)[arrives])
    assert np.array_equal(jobset.demand, demand[arrives])
    assert not jobset.job_class.any()
    assert rng.random() == again.random()


def test_classes_come_on_top_of_jobs_that_stay_as_they_are() -> None:
    for plain, equal, skewed in zip(
        jobs_of(5),
        jobs_of(5, cluster=THREE),
        jobs_of(5, cluster=THREE, class_shares=(0.7, 0.3, 0)),
        strict=True,
    ):
        for jobset in (equal, skewed):
            for name in ("arrival", "duration", "demand"):
                assert np.array_equal(getattr(jobset, name), getattr(plain, name))
        assert not plain.job_class.any()


@pytest.mark.parametrize("shares", [(), (0.7, 0.3, 0.0), (0.0, 0.25, 0.75)])
def test_classes_have_the_shares_that_were_asked_for(shares: tuple[float, ...]) -> None:
    jobsets = jobs_of(200, load=1.8, cluster=THREE, class_shares=shares)
    classes = np.concatenate([jobset.job_class for jobset in jobsets])
    found = np.bincount(classes, minlength=3) / classes.size
    expected = np.array(shares or (1 / 3, 1 / 3, 1 / 3))
    # Four standard errors of a share; a class without a share never comes.
    assert np.all(np.abs(found - expected) <= 4 * np.sqrt(expected * (1 - expected) / classes.size))


@pytest.mark.parametrize("shares", [(), (0.9, 0.1), (0.0, 1.0)])
def test_resources_are_dominant_as_often_as_was_asked_for(shares: tuple[float, ...]) -> None:
    jobsets = jobs_of(200, load=1.2, dominant_shares=shares)
    demand = np.concatenate([jobset.demand for jobset in jobsets])
    leads = (demand[:, 0] >= 5).mean()  # released demands: 5 to 10 if dominant, else 1 or 2
    expected = shares[0] if shares else 0.5
    assert abs(leads - expected) <= 4 * np.sqrt(expected * (1 - expected) / len(demand))


def test_other_dominant_shares_leave_arrivals_durations_and_classes_alone() -> None:
    # Equal capacities, so that the load says the same of the arrivals.
    for one, other in zip(
        jobs_of(5, cluster=THREE),
        jobs_of(5, cluster=THREE, dominant_shares=(0.9, 0.1)),
        strict=True,
    ):
        for name in ("arrival", "duration", "job_class"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert not np.array_equal(one.demand, other.demand)


def arrivals_of(workload: BimodalWorkload, count: int) -> np.ndarray:
    """Whether a job arrives, float64 ``(count, window)``."""
    arrives = np.zeros((count, workload.window))
    for row, jobset in zip(
        arrives, sample_jobsets(workload, 1, Split.TRAIN, range(count)), strict=True
    ):
        row[jobset.arrival] = 1
    return arrives


@pytest.mark.parametrize(("rate", "burstiness"), [(0.1, 0.95), (0.38, 0.4), (0.9, 0.95)])
def test_bursts_keep_the_rate_and_have_the_correlations_of_the_docstring(
    rate: float, burstiness: float
) -> None:
    workload = at_rate(rate, burstiness=burstiness, window=40)
    arrives = arrivals_of(workload, 2500)
    counts = arrives.sum(axis=1)
    assert abs(counts.mean() - 40 * rate) < 4 * counts.std() / np.sqrt(len(counts))
    # The first step is like any other: of a share of 2500, four standard errors.
    assert abs(arrives[:, 0].mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / len(counts))
    lags = np.arange(1, 40)
    correlation = burstiness**2 * (1 - 1 / PHASE_STEPS) ** lags
    together = 1 + 2 * np.sum((1 - lags / 40) * correlation)
    expected = 40 * rate * (1 - rate) * together
    # Four standard errors of a variance, 11 to 19 %; independent arrivals miss it by half and more.
    kurtosis = np.mean((counts - counts.mean()) ** 4) / counts.var() ** 2
    tolerance = 4 * np.sqrt((kurtosis - 1) / len(counts))
    assert counts.var() == pytest.approx(expected, rel=tolerance)
    assert tolerance < 0.2
    assert together > 2


def test_without_burstiness_arrivals_are_independent() -> None:
    counts = arrivals_of(at_rate(0.4, window=40), 2500).sum(axis=1)
    assert counts.var() == pytest.approx(40 * 0.4 * 0.6, rel=0.12)  # four standard errors


def test_settings_that_vary_the_workload_vary_that_of_a_mixture() -> None:
    vary = Ranges(load=(0.2, 1.0), small_share=(0.3, 0.9))
    mixed = BimodalWorkload(
        cluster=THREE, dominant_shares=(1, 0), class_shares=(0, 0.5, 0.5), vary=vary
    )
    drawn = [mixed.sample(np.random.default_rng(seed)) for seed in range(20)]
    assert set(np.concatenate([jobset.job_class for jobset in drawn])) == {1, 2}
    assert all(np.all(jobset.demand[:, 0] >= 5) for jobset in drawn)
