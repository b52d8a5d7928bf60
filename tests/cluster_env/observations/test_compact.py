import numpy as np
import pytest

from cluster_env.core.cluster import Cluster
from cluster_env.observations.compact import compact, compact_size
from cluster_env.simulators.code import CodeLayout


def test_small_state_by_hand() -> None:
    layout = CodeLayout(Cluster(capacity=(4, 2), horizon=3, num_slots=2, backlog_view=6))
    code = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(code)[0] = [(1, 2), (1, 0), (0, 0)]
    layout.slots_of(code)[0, 1] = (2, 3, 1)
    code[0, layout.backlog] = 9
    code[0, layout.since] = 4
    assert compact_size(layout) == 13
    expected = [3, 3, 4, 0, 2, 2, 0, 0, 0, 2, 3, 1, 9]
    assert compact(code, layout)[0].tolist() == expected


def test_a_given_array_is_written(codes: np.ndarray, layout: CodeLayout) -> None:
    out = np.full((len(codes), compact_size(layout)), np.nan, np.float32)
    assert compact(codes, layout, out) is out
    assert np.array_equal(out, compact(codes, layout))


@pytest.mark.golden
def test_numbers_are_the_last_columns_of_the_released_code(golden_states) -> None:
    for name, layout, codes, stored in golden_states():
        # The first columns count the placed jobs at each step, which a code does not keep.
        expected = stored["compact"][:, layout.cluster.horizon :]
        assert np.array_equal(compact(codes, layout), expected), name
