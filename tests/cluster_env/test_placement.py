"""Gantt charts: jobs get processors that are free, however many jobs there are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.placement import paint, place


def painted(
    jobs: list[tuple[int, int, int]], processors: int, shape: tuple[int, int]
) -> np.ndarray:
    start, end, size = (np.array(column, np.int64) for column in zip(*jobs, strict=True))
    places = place(start, end, size, processors)
    return paint(start, end, np.arange(1, len(jobs) + 1), places, processors, shape)


def test_jobs_take_the_lowest_gap_that_they_fit_into() -> None:
    # Rows are processors, columns seconds: the third job fits beside the second, not below it.
    cells = painted([(0, 2, 1), (0, 4, 2), (2, 4, 1), (3, 4, 1)], 4, (4, 4))
    assert cells.tolist() == [[1, 1, 3, 3], [2, 2, 2, 2], [2, 2, 2, 2], [0, 0, 0, 4]]


def test_a_job_without_a_gap_is_split() -> None:
    cells = painted([(0, 2, 1), (0, 4, 1), (0, 2, 1), (2, 4, 2)], 3, (3, 4))
    assert cells.tolist() == [[1, 1, 4, 4], [2, 2, 2, 2], [3, 3, 4, 4]]


JOBS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8), st.integers(1, 4)), min_size=1, max_size=12
)


@given(JOBS)
@settings(max_examples=60, deadline=None)
def test_every_job_gets_as_many_processors_as_it_holds(jobs: list[tuple[int, int, int]]) -> None:
    """A machine of 48 processors has room for all at once."""
    ordered = sorted((at, at + length, size) for at, length, size in jobs)
    span = max(end for _, end, _ in ordered)
    cells = painted(ordered, 48, (48, span))
    for k, (start, end, size) in enumerate(ordered, start=1):
        held = (cells == k).sum(axis=0)
        assert held.tolist() == [size if start <= at < end else 0 for at in range(span)]


def test_many_jobs_on_many_processors_are_painted_by_their_area() -> None:
    rng = np.random.default_rng(0)
    start = np.sort(rng.integers(0, 100_000, 3000))
    size = rng.integers(1, 20_000, 3000)
    end = start + rng.integers(1, 200, 3000)
    left, right = (np.round(times * (1600 / end.max())).astype(np.int64) for times in (start, end))
    places = place(start, end, size, 163_840)
    cells = paint(left, right, np.ones(3000, np.int64), places, 163_840, (400, 1600))
    area = float(((end - start) * size).sum()) / 163_840 / end.max()
    assert (cells > 0).mean() == pytest.approx(area, rel=0.05)
