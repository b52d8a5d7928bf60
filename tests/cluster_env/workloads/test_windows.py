"""Windows of a log by count and by time, blocks of it, its load, its parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads import num_disjoint, sample_jobsets
from cluster_env.workloads.windows import MEAN_RUNS, natural_length
from cluster_env.worlds.hpc.workloads import HPCLog

DAY = 86_400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Forty days of a log: jobs of an hour on 1 to 3 processors, as the day is; more by day."""
    jobs = tmp_path / "jobs.csv"
    rows = [
        f"{DAY + 3600 * k},3600,{1 + k // 24 % 3},{7200}"
        for k in range(40 * 24)
        if 8 <= k % 24 < 20 or k % 2
    ]
    jobs.write_text("\n".join(["arrival,duration,processors,estimate", *rows]))
    return jobs


def draw(workload: HPCLog, count: int = 5, split: Split = Split.HELD_OUT) -> list[JobSet]:
    return sample_jobsets(workload, 0, split, range(count))


def submits(jobset: JobSet) -> list[int]:
    return jobset.attributes["submit"].tolist()


def test_a_window_by_count_and_offset(path: Path) -> None:
    workload = HPCLog(path, (4,), jobs=10, offset=3, whole=True)
    one, two = draw(workload, 2)
    assert submits(one) == submits(two) == workload.recorded.submit[3:13].tolist()
    assert one.arrival[0] == 0


def test_a_window_by_time_and_offset(path: Path) -> None:
    workload = HPCLog(path, (4,), window=2 * DAY, offset=DAY + 60, whole=True)
    (one,) = draw(workload, 1)
    begin = workload.recorded.submit[0] + DAY + 60
    inside = (workload.recorded.submit >= begin) & (workload.recorded.submit < begin + 2 * DAY)
    assert submits(one) == workload.recorded.submit[inside].tolist()
    assert one.window == 2 * DAY
    assert one.arrival[0] == submits(one)[0] - begin


def test_windows_by_time_begin_anywhere_and_lie_in_their_part(path: Path) -> None:
    workload = HPCLog(path, (4,), window=DAY)
    part = workload.part(Split.HELD_OUT).recorded
    begins = [submits(one)[0] - int(one.arrival[0]) for one in draw(workload, 50)]
    assert len(set(begins)) > 40
    assert min(begins) >= part.submit[0]
    assert max(begins) + DAY <= part.submit[-1] + 1


def test_the_default_window_is_as_long_as_twenty_mean_runs(path: Path) -> None:
    workload = HPCLog(path, (4,))
    assert natural_length(workload.recorded) >= MEAN_RUNS * 3600
    windows = {one.window for one in draw(workload)}
    assert windows == {
        min(natural_length(workload.recorded), workload.part(Split.HELD_OUT).recorded.span)
    }
    assert min(one.num_jobs for one in draw(workload, split=Split.TRAIN)) > 200


def test_blocks_keep_the_time_of_day_and_what_is_within_a_day(path: Path) -> None:
    workload = HPCLog(path, (4,), window=10 * DAY, block=DAY)
    days = {}
    for submit in workload.recorded.submit.tolist():
        days.setdefault(submit // DAY, []).append(submit % DAY)
    kinds = {tuple(day) for day in days.values()}
    one, two = draw(workload, 2)
    assert one.demand.tolist() != two.demand.tolist()
    drawn = {}
    for submit in submits(one):
        drawn.setdefault(submit // DAY, []).append(submit % DAY)
    assert len(drawn) == 10
    assert {tuple(day) for day in drawn.values()} <= kinds
    counted = draw(HPCLog(path, (4,), jobs=50, block=DAY), 3)
    assert [one.num_jobs for one in counted] == [50, 50, 50]


def test_the_load_is_what_is_asked_for(path: Path) -> None:
    assert HPCLog(path, (4,), scaled_load=0.9).load == pytest.approx(0.9, rel=1e-3)
    plain = HPCLog(path, (4,))
    halved = HPCLog(path, (4,), stretch=0.5)
    assert halved.load == pytest.approx(2 * plain.load, rel=0.01)


def test_parts_end_where_they_are_told_to(path: Path) -> None:
    workload = HPCLog(path, (4,), jobs=5, splits=(0.5, 0.75))
    shares = [workload.part(split).recorded.num_jobs for split in Split]
    assert np.array(shares) / sum(shares) == pytest.approx([0.5, 0.25, 0.25], abs=0.01)


@pytest.mark.parametrize(
    ("options", "held"),
    [
        ({"window": DAY}, (7, 31)),
        ({"window": 3 * DAY}, (2, 10)),
        ({"window": 2 * DAY, "warmup": DAY}, (2, 10)),
        ({"window": 30 * DAY}, (1, 1)),
        ({"window": DAY, "offset": 0}, (1, 1)),
        ({"window": DAY, "block": DAY}, (7, 31)),
        ({"jobs": 72}, (2, 8)),
        ({"jobs": 0}, (1, 1)),
        ({"whole": True}, (1, 1)),
    ],
)
def test_windows_that_fit_side_by_side_are_counted(
    path: Path, options: dict[str, Any], held: tuple[int, int]
) -> None:
    """Of 40 days with 18 jobs each, nearly 8 are for validation, and 32 before held-out jobs."""
    workload = HPCLog(path, (4,), **options)
    assert num_disjoint(workload, Split.VALIDATION) == held[0]
    before = workload.before_held_out()
    assert num_disjoint(before, Split.VALIDATION) == before.num_disjoint == held[1]
    if not workload.whole:
        jobs = [workload.part(split).recorded.submit.tolist() for split in Split]
        assert before.recorded.submit.tolist() == jobs[0] + jobs[1]


def test_estimates_of_a_log_can_be_replaced(path: Path) -> None:
    assert set(draw(HPCLog(path, (4,)))[0].attributes["estimate"]) == {7200}
    assert set(draw(HPCLog(path, (4,), estimates="exact"))[0].attributes["estimate"]) == {3600}
    popular = draw(HPCLog(path, (4,), estimates="tsafrir"))[0].attributes["estimate"]
    assert popular.min() >= 3600


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": -1}, "must be 0 or more, but -1"),
        ({"window": -5}, "0 or more, but None, -5"),
        ({"block": -5}, "0 or more"),
        ({"jobs": 5, "window": 5}, "give one of the two"),
        ({"splits": (0.8, 0.6)}, "two rising shares"),
        ({"scaled_load": -1}, "scaled_load must be above 0"),
        ({"scaled_load": 0.5, "stretch": 2.0}, "cannot be combined with stretch"),
        ({"jobs": 5, "offset": 10**6}, "offset is 1,000,000, but"),
        ({"estimates": "none"}, "unknown kind of estimates"),
        ({"stretch": 0.0}, "factors above 0"),
    ],
)
def test_impossible_settings_are_refused(path: Path, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        HPCLog(path, (4,), **options)


def test_a_log_that_is_nearly_empty_has_windows_all_the_same(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.csv"
    rows = [f"{k * 10_000_000},10,1" for k in range(10)]
    sparse.write_text("\n".join(["arrival,duration,processors", *rows]))
    assert all(one.num_jobs for one in draw(HPCLog(sparse, (4,), window=60), 20))
    blocks = draw(HPCLog(sparse, (4,), window=600, block=60), 3)
    assert all(one.num_jobs for one in blocks)
