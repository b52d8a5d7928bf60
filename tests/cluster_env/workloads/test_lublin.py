"""Lublin and Feitelson's model against 200,000 recorded jobs of the authors' program."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.workloads import sample_jobsets
from cluster_env.workloads.lublin import BATCH, INTERACTIVE, draw_jobs, types_for
from cluster_env.worlds.hpc.workloads import HPCLog, LognormalWorkload, LublinWorkload
from tests.golden import stored

COUNT = 200_000
CASES = [
    (f"{kind}_p{size}", size)
    for kind in ("typeless", "schedgym")
    for size in (128, 256, 1024, 163_840)
]


@pytest.mark.parametrize(("name", "processors"), [*CASES, ("typed_default_p128", 128)])
def test_the_model_is_the_recorded_one(golden: Path, name: str, processors: int) -> None:
    """Within the bounds that two samples of the program itself keep."""
    typed = not name.startswith("typeless")
    types = (INTERACTIVE, BATCH) if "default" in name else types_for(processors, typed)
    hour = 8 if name.startswith("schedgym") else 0
    arrival, run, size, kind = draw_jobs(np.random.default_rng(1), COUNT, types, hour)
    with np.load(stored(golden / "lublin" / f"{name}.npz")) as file:
        expected = {key: file[key] for key in file.files}
    pooled = 0.012 if typed else 0.0
    samples = {"ia": (np.diff(arrival), pooled), "run": (run, pooled)}
    for k in range(2 if typed else 0):
        samples[f"ia_type{k}"] = (np.diff(arrival[kind == k]), 0.0)
        samples[f"run_type{k}"] = (run[kind == k], 0.0)
    for key, (values, more) in samples.items():
        ours = np.searchsorted(np.sort(values), expected["grid"], side="right") / values.size
        bound = 1.63 * np.sqrt(1 / values.size + 1 / expected[f"{key}_n"]) + 0.004 + more
        assert np.abs(ours - expected[f"{key}_ecdf"]).max() <= bound, key
    counts = np.cumsum(expected["size_count"]) / expected["size_count"].sum()
    ours = np.searchsorted(np.sort(size), expected["size_value"], side="right") / COUNT
    assert np.abs(ours - counts).max() <= 1.63 * np.sqrt(2 / COUNT) + 0.004 + pooled


@pytest.mark.parametrize(
    "workload",
    [
        LublinWorkload(jobs=4000, load=0.7),
        LublinWorkload(jobs=4000, load=0.7, typed=True),
        LognormalWorkload(jobs=4000, load=0.7, spread_run=1.0, burstiness=0.5),
    ],
)
def test_jobs_have_the_load_that_is_asked_for(workload) -> None:
    jobsets = sample_jobsets(workload, 0, Split.TRAIN, range(6))
    loads = [one.work[0] / workload.processors / one.window for one in jobsets]
    assert np.mean(loads) == pytest.approx(0.7, rel=0.15)
    assert all(one.arrival[0] == 0 for one in jobsets)


@pytest.mark.parametrize("processors", [128, 256, 1024, 163_840])
def test_jobs_arrive_with_the_recorded_daily_cycle(golden: Path, processors: int) -> None:
    """In eighths of a day; six samples of ours differ from the program's by up to 0.075."""
    arrival = draw_jobs(np.random.default_rng(1), COUNT, types_for(processors, False))[0]
    with np.load(stored(golden / "lublin" / f"typeless_p{processors}.npz")) as file:
        expected = file["arrivals_per_half_hour_since_start"].reshape(8, 6).sum(axis=1)
    ours = np.bincount(arrival // (3 * 3600) % 8, minlength=8)
    assert ours / ours.mean() == pytest.approx(expected / expected.mean(), abs=0.12)
    assert ours[2:6].sum() > 1.1 * (ours[:2].sum() + ours[6:].sum())  # more by day


def test_lognormal_jobs_arrive_with_a_daily_cycle_if_asked_for() -> None:
    def by_half_hour(depth: float) -> np.ndarray:
        workload = LognormalWorkload(
            jobs=60_000, burstiness=0.5, daily_cycle=depth, start_hour=0, load=0.5
        )
        jobset = workload.sample(np.random.default_rng(2))
        assert jobset.work[0] / 256 / jobset.window == pytest.approx(0.5, rel=0.1)
        return np.bincount(jobset.arrival // 1800 % 48, minlength=48)

    flat, half, full = (counts / counts.mean() for counts in map(by_half_hour, (0, 0.5, 1)))
    assert flat == pytest.approx(1, abs=0.1)
    assert full.max() > 2 * full.min()
    assert half - 1 == pytest.approx((full - 1) / 2, abs=0.15)


def test_estimates_are_exact_or_have_errors() -> None:
    def estimates(kind: str):
        jobset = LublinWorkload(jobs=500, estimates=kind).sample(np.random.default_rng(3))
        return jobset.duration, jobset.attributes["estimate"]

    run, exact = estimates("exact")
    assert (exact == run).all()
    assert (estimates("uniform")[1] >= run).all()
    assert (estimates("gaussian")[1] < run).mean() == pytest.approx(0.5, abs=0.15)


def test_impossible_jobs_are_refused(tmp_path: Path) -> None:
    for options in ({"load": -1}, {"jobs": 0}, {"estimates": "exakt"}, {"processors": 1}):
        with pytest.raises(InputError):
            LublinWorkload(**options)
    for options in ({"load": 0}, {"correlation": 2}, {"median_size": 0}, {"daily_cycle": 2}):
        with pytest.raises(InputError):
            LognormalWorkload(**options)
    with pytest.raises(InputError, match="must be 0 or more, but -1"):
        HPCLog(tmp_path / "none.swf", jobs=-1)
