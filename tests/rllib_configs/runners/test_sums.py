"""Sums have the same bits, whoever makes which part of them, in whatever order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_configs.runners.sums import Part, merged, total


def parts_of(count: int) -> list[Part]:
    """Numbers whose sum depends on the order of the additions."""
    rng = np.random.default_rng(count)
    return [
        Part(
            (rng.normal(size=5) * 10.0 ** rng.integers(-6, 6, 5)).astype(np.float32),
            {"returns": float(rng.normal() * 1e9), "rows": 1},
            {index: f"unit {index}"},
        )
        for index in range(count)
    ]


def test_four_are_added_in_pairs() -> None:
    ones = [Part(np.array([x], np.float32)) for x in (1e8, 1.0, -1e8, 1.0)]
    found = total({(0, k): part for k, part in enumerate(ones)}, 4)
    assert found.gradient is not None
    assert found.gradient[0] == np.float32(np.float32(1e8 + 1) + np.float32(-1e8 + 1))


@given(st.integers(1, 23), st.randoms(use_true_random=False))
def test_who_adds_what_first_changes_no_bit(count: int, random) -> None:
    leaves = parts_of(count)
    expected = total({(0, place): part for place, part in enumerate(leaves)}, count)
    shares: list[dict] = [{} for _ in range(random.randint(1, 5))]
    for place in range(count):
        random.choice(shares)[0, place] = leaves[place]
    sums: dict = {}
    for share in random.sample(shares, len(shares)):
        sums = merged({**sums, **merged(share, count)}, count)
    found = total(sums, count)
    assert np.array_equal(found.gradient, expected.gradient)
    assert found.sums == expected.sums
    assert found.sums["rows"] == count
    assert dict(sorted(found.per_unit.items())) == {k: f"unit {k}" for k in range(count)}


def test_a_missing_unit_is_noticed() -> None:
    leaves = parts_of(3)
    with pytest.raises(ValueError, match="over 3 units"):
        total({(0, 0): leaves[0], (0, 2): leaves[2]}, 3)
    with pytest.raises(ValueError, match="over 3 units"):
        total({(0, 0): leaves[0], (0, 1): leaves[1]}, 3)


def test_a_unit_without_a_gradient_adds_none() -> None:
    one = Part(np.ones(2, np.float32), {"a": 1.0})
    both = Part() + one + Part(None, {"b": 2.0})
    assert np.array_equal(both.gradient, [1, 1])
    assert both.sums == {"a": 1.0, "b": 2.0}
