"""What generated workloads may say of their jobs."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.hpc.workloads import BimodalWorkload, LublinWorkload


def drawn(**settings: object) -> JobSet:
    workload = LublinWorkload(64, jobs=400, **settings)  # type: ignore[arg-type]
    return workload.sample(np.random.default_rng(0))


def serial_share(jobset: JobSet) -> float:
    return float((jobset.demand[:, 0] == 1).mean())


def load_of(jobset: JobSet) -> float:
    return float((jobset.duration * jobset.demand[:, 0]).sum()) / 64 / float(jobset.arrival[-1])


@pytest.mark.parametrize("typed", [False, True])
def test_shares_and_scale_are_those_that_are_given_at_the_same_load(typed: bool) -> None:
    usual = drawn(typed=typed)
    assert np.array_equal(usual.demand, drawn(typed=typed, run_scale=3).demand)
    longer = drawn(typed=typed, run_scale=3)
    assert np.array_equal(longer.duration, np.ceil(3.0 * usual.duration))
    assert load_of(longer) == pytest.approx(load_of(usual), rel=0.02)
    assert serial_share(drawn(typed=typed, serial=1)) == 1
    few, many = (serial_share(drawn(typed=typed, serial=share)) for share in (0.05, 0.6))
    assert few < 0.4 < 0.5 < many
    small, wide = (drawn(typed=typed, u_first=share).demand.mean() for share in (0.95, 0.1))
    assert small < wide


@pytest.mark.parametrize("settings", [{"serial": 1.1}, {"u_first": 2}, {"run_scale": 0}])
def test_what_is_no_share_and_no_scale_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match="serial and u_first are shares"):
        drawn(**settings)


def test_bimodal_jobs_are_those_of_the_thesis() -> None:
    """Section 5.2: a job each second with 30 %, one of five long; half of the largest size on."""
    jobs = BimodalWorkload(64, window=20_000, longest=48, largest=32).sample(
        np.random.default_rng(0)
    )
    assert jobs.arrival[0] == 0
    assert jobs.num_jobs / 20_000 == pytest.approx(0.3, rel=0.03)
    assert (jobs.demand.min(), jobs.demand.max()) == (16, 32)
    short = jobs.duration <= 9
    assert short.mean() == pytest.approx(0.8, abs=0.02)
    assert (jobs.duration[~short].min(), jobs.duration.max()) == (32, 48)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"rate": 0}, "rate must be"), ({"longest": 4}, "longest 5"), ({"largest": 65}, "largest")],
)
def test_impossible_bimodal_jobs_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        BimodalWorkload(64, **settings)  # type: ignore[arg-type]
