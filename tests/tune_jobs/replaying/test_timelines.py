"""What was there in stretches of time, against a count second by second."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tune_jobs.replaying.outcomes import means_between

THINGS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(1, 5)), min_size=1, max_size=12
)


@given(THINGS, st.lists(st.integers(0, 60), min_size=2, max_size=6, unique=True).map(sorted))
@settings(max_examples=60, deadline=None)
def test_means_are_those_of_a_count_second_by_second(
    things: list[tuple[int, int, int]], edges: list[int]
) -> None:
    begin, length, weight = (np.array(column, np.int64) for column in zip(*things, strict=True))
    clock = np.arange(61)
    inside = (clock >= begin[:, None]) & (clock < (begin + length)[:, None])
    held = (inside * weight[:, None]).sum(axis=0)
    expected = [held[a:b].mean() for a, b in pairwise(edges)]
    found = means_between(begin, begin + length, weight, np.array(edges, np.int64))
    assert found == pytest.approx(expected)


def test_late_times_lose_no_digits() -> None:
    at = np.array([1_700_000_000, 1_700_000_010], np.int64)
    begin = np.array([1_700_000_004], np.int64)
    assert means_between(begin, begin + 3, 2.0, at) == pytest.approx([0.6], rel=1e-12)
