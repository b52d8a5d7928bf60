import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.image import ImageLayout, image
from cluster_env.worlds.deeprm.observations import compact
from cluster_env.worlds.deeprm.state import StateLayout


def drawn_cell_by_cell(state: np.ndarray, layout: StateLayout) -> np.ndarray:
    """The definition, as slow and as plain as it can be."""
    cluster, where = layout.cluster, ImageLayout(layout.cluster)
    picture = np.zeros(where.shape, np.uint8)
    occupied, slots = layout.occupied_of(state[None])[0], layout.slots_of(state[None])[0]
    for r, units in enumerate(cluster.capacity):
        for h in range(cluster.horizon):
            for unit in range(units):
                picture[h, where.occupied_columns(r).start + unit] = unit < occupied[h, r]
                for slot, (duration, *demand) in enumerate(slots):
                    filled = h < duration and unit < demand[r]
                    picture[h, where.slot_columns(r, slot).start + unit] = filled
    for job in range(min(state[layout.backlog], cluster.backlog_view)):
        h, column = divmod(job, where.backlog_width)
        picture[h, where.backlog_columns.start + column] = 1
    return picture


def test_default_image_gives_the_papers_number_of_parameters() -> None:
    where = ImageLayout(Cluster())
    assert where.shape == (20, 223)
    assert where.size * 20 + 20 + 20 * 11 + 11 == 89_451


def test_three_jobs_by_hand() -> None:
    cluster = Cluster(capacity=(3, 2), horizon=4, num_slots=2, backlog_view=6)
    layout = StateLayout(cluster)
    state = np.zeros((1, layout.size), np.uint8)
    # A running job holds 2 units of the first resource and 1 of the second for two more steps.
    layout.occupied_of(state)[0, :2] = (2, 1)
    # The first slot holds a job of 3 steps with demands (1, 2); the second is empty.
    layout.slots_of(state)[0, 0] = (3, 1, 2)
    # A third job waits in the backlog, whose block is two columns wide.
    state[0, layout.backlog] = 1
    expected = [
        "110 100 000 10 11 00 10",
        "110 100 000 10 11 00 00",
        "000 100 000 00 11 00 00",
        "000 000 000 00 00 00 00",
    ]
    rows = [[int(cell) for cell in row.replace(" ", "")] for row in expected]
    assert image(layout, state)[0].tolist() == rows


def test_blocks_tile_the_image(cluster: Cluster) -> None:
    where = ImageLayout(cluster)
    blocks = []
    for r in range(cluster.num_resources):
        blocks.append(where.occupied_columns(r))
        blocks += [where.slot_columns(r, slot) for slot in range(cluster.num_slots)]
    blocks.append(where.backlog_columns)
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    assert blocks[-1].stop == where.width


def test_images_of_played_episodes_follow_the_definition(
    states: np.ndarray, layout: StateLayout
) -> None:
    chosen = states[:: max(1, len(states) // 40)].copy()
    expected = np.stack([drawn_cell_by_cell(state, layout) for state in chosen])
    assert np.array_equal(image(layout, chosen), expected)
    assert expected.any()


@given(st.data())
def test_any_state_of_any_small_cluster_follows_the_definition(data: st.DataObject) -> None:
    cluster = Cluster(
        capacity=tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))),
        horizon=data.draw(st.integers(1, 9)),
        num_slots=data.draw(st.integers(1, 3)),
        backlog_view=data.draw(st.integers(0, 20)),
    )
    layout = StateLayout(cluster)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    state = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(state)[:] = rng.integers(
        0, np.asarray(cluster.capacity) + 1, size=(cluster.horizon, cluster.num_resources)
    )
    limits = np.asarray([cluster.horizon, *cluster.capacity]) + 1
    layout.slots_of(state)[:] = rng.integers(0, limits, size=(cluster.num_slots, limits.size))
    state[0, layout.backlog] = rng.integers(0, 256)
    assert np.array_equal(image(layout, state)[0], drawn_cell_by_cell(state[0], layout))


@pytest.mark.parametrize("look", [image, compact])
def test_a_given_array_is_overwritten_and_returned(
    states: np.ndarray, layout: StateLayout, look: Callable[..., np.ndarray]
) -> None:
    fresh = look(layout, states)
    out = np.full_like(fresh, 7)
    assert look(layout, states, out) is out
    assert np.array_equal(out, fresh)
    with pytest.raises(InputError, match="out must have the shape"):
        look(layout, states, out[1:])


@pytest.mark.golden
def test_images_hash_to_those_of_the_released_code(golden_states) -> None:
    seen = 0
    for name, layout, states, stored in golden_states():
        for k, picture in enumerate(image(layout, states)):
            digest = hashlib.sha256(picture.tobytes()).hexdigest()[:16]
            assert digest == stored["img_hash"][k], f"{name} state {k}"
            seen += 1
    assert seen > 10_000
