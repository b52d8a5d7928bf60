"""The bimodal workload: its load, its demands, and what it refuses."""

import numpy as np
import pytest

from cluster_env.core.cluster import Cluster
from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.workloads import BimodalWorkload, sample_jobsets


def test_load_and_arrival_rate_convert_both_ways() -> None:
    workload = BimodalWorkload(load=1.1)
    assert workload.max_load == pytest.approx(4.1 * 0.45)  # mean duration x mean share
    assert workload.arrival_rate == pytest.approx(1.1 / 1.845)
    assert BimodalWorkload.at_rate(workload.arrival_rate).load == pytest.approx(1.1)


@pytest.mark.parametrize(
    "workload",
    [
        BimodalWorkload(load=0.7, window=200),
        BimodalWorkload(load=0.5, window=200, demands="paper"),
        BimodalWorkload(load=1.3, window=200, small_share=0.5, cluster=Cluster((20, 8, 30))),
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
    ],
)
def test_impossible_workloads_are_refused_in_one_sentence(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        BimodalWorkload(**options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
