import numpy as np
import pytest

from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.observations import compact, compact_size
from cluster_env.worlds.deeprm.state import StateLayout


def test_small_state_by_hand() -> None:
    layout = StateLayout(Cluster(capacity=(4, 2), horizon=3, num_slots=2, backlog_view=6))
    state = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(state)[0] = [(1, 2), (1, 0), (0, 0)]
    layout.slots_of(state)[0, 1] = (2, 3, 1)
    state[0, layout.backlog] = 9
    state[0, layout.since] = 4
    assert compact_size(layout) == 13
    expected = [3, 3, 4, 0, 2, 2, 0, 0, 0, 2, 3, 1, 9]
    assert compact(layout, state)[0].tolist() == expected


@pytest.mark.golden
def test_numbers_are_the_last_columns_of_the_released_code(golden_states) -> None:
    seen = 0
    for name, layout, states, stored in golden_states():
        # The first columns count the placed jobs at each step, which a state does not keep.
        expected = stored["compact"][:, layout.cluster.horizon :]
        assert np.array_equal(compact(layout, states), expected), name
        seen += len(states)
    assert seen > 10_000
