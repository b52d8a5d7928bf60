"""Priorities follow an order; between any two changes nothing overtakes what is to start first."""

from hypothesis import given
from hypothesis import strategies as st

from tune_jobs.site.ranking import GAP, HIGHEST, LOWEST, new_priorities

PRIORITIES = st.one_of(
    st.integers(0, 3), st.integers(LOWEST, LOWEST + 20), st.integers(HIGHEST - 3, HIGHEST + 9)
)


def inversions(order, values):
    return {
        (one, other)
        for k, one in enumerate(order)
        for other in order[k + 1 :]
        if values[one] <= values[other]
    }


@given(st.lists(PRIORITIES, max_size=12))
def test_priorities_fall_along_the_order_and_no_step_makes_it_worse(values):
    order = [str(k) for k in range(len(values))]
    current = dict(zip(order, values, strict=True))
    wrong = inversions(order, current)
    for job, priority in new_priorities(order, current):
        current[job] = priority
        now = inversions(order, current)
        assert now <= wrong
        wrong = now
    assert not wrong
    assert all(LOWEST <= value <= HIGHEST for value in current.values())


def test_only_what_is_out_of_order_changes():
    current = {"a": LOWEST + 9 * GAP, "b": LOWEST + 5 * GAP, "c": LOWEST + 7 * GAP, "new": 12}
    assert new_priorities(["a", "b", "c", "new"], current) in (
        [("c", LOWEST + 4 * GAP), ("new", LOWEST + 3 * GAP)],
        [("b", LOWEST + 8 * GAP), ("new", LOWEST + 6 * GAP)],
    )
    assert new_priorities(["a", "b"], current) == []
