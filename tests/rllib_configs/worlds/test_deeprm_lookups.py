import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.image import image
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.worlds.deeprm.lookups import LookupLayout
from tests.cluster_env.worlds.deeprm.played_states import CLUSTERS, played_states


@pytest.fixture(params=CLUSTERS, scope="module")
def layout(request: pytest.FixtureRequest) -> StateLayout:
    return StateLayout(CLUSTERS[request.param])


@pytest.fixture(scope="module")
def states(layout: StateLayout) -> np.ndarray:
    return played_states(layout.cluster)


def test_default_cluster_has_61_lookups() -> None:
    lookups = LookupLayout(StateLayout(Cluster()))
    assert lookups.num_lookups == 61
    assert lookups.num_entries == 2 * 20 * 11 + 2 * 10 * 21 * 11 + 61


def test_sum_of_entries_is_the_dense_layer(states: np.ndarray, layout: StateLayout) -> None:
    lookups = LookupLayout(layout)
    weight = np.random.default_rng(0).normal(size=(lookups.image.size, 5))
    entries = lookups.lookups(states)
    assert entries.min() >= 0
    assert entries.max() < lookups.num_entries
    dense = image(layout, states).reshape(len(states), -1).astype(np.float64) @ weight
    found = lookups.prefix_table(weight)[entries].sum(axis=1)
    assert np.abs(found - dense).max() < 1e-9  # sums of some hundred float64 of size 1


def test_single_precision_is_within_1e_5_of_the_dense_layer(
    states: np.ndarray, layout: StateLayout
) -> None:
    lookups = LookupLayout(layout)
    scale = lookups.image.size**-0.5  # how dense layers are initialized
    rng = np.random.default_rng(1)
    weight = rng.normal(scale=scale, size=(lookups.image.size, 20)).astype(np.float32)
    table = lookups.prefix_table(weight)
    assert table.dtype == np.float32
    found = table[lookups.lookups(states)].sum(axis=1)
    dense = image(layout, states).reshape(len(states), -1).astype(np.float64) @ weight
    assert np.abs(found - dense).max() < 1e-5


def test_gradient_is_spread_by_the_transposed_map(layout: StateLayout) -> None:
    lookups = LookupLayout(layout)
    rng = np.random.default_rng(2)
    weight = rng.normal(size=(lookups.image.size, 3))
    gradient = rng.normal(size=(lookups.num_entries, 3))
    forward = float((gradient * lookups.prefix_table(weight)).sum())
    backward = float((lookups.spread_table_gradient(gradient) * weight).sum())
    assert abs(forward - backward) <= 1e-9 * max(1.0, abs(forward))


def test_gradient_of_a_batch_is_that_of_the_dense_layer(
    states: np.ndarray, layout: StateLayout
) -> None:
    lookups = LookupLayout(layout)
    upstream = np.random.default_rng(3).normal(size=(len(states), 2))
    gradient = np.zeros((lookups.num_entries, 2))
    for k, entries in enumerate(lookups.lookups(states)):
        gradient[entries] += upstream[k]  # no entry is looked up twice by one state
    dense = image(layout, states).reshape(len(states), -1).astype(np.float64).T @ upstream
    assert np.abs(lookups.spread_table_gradient(gradient) - dense).max() < 1e-9


def test_table_is_what_the_blocks_describe(layout: StateLayout) -> None:
    """The recipe that tensor code follows: cumulative sums of each block."""
    lookups = LookupLayout(layout)
    weight = np.random.default_rng(4).normal(size=(lookups.image.size, 2))
    cells = weight.reshape(*lookups.image.shape, 2)
    table = np.zeros((lookups.num_entries, 2))
    for block in lookups.blocks:
        part = table[block.entries].reshape(block.rows, block.prefixes, 2)
        own = cells[:, block.columns]
        if block.kind == "occupied":
            part[:, 1:] = own.cumsum(axis=1)
        elif block.kind == "slot":
            part[1:, 1:] = own.cumsum(axis=0).cumsum(axis=1)
        else:
            part[0, 1:] = own.reshape(-1, 2)[: block.prefixes - 1].cumsum(axis=0)
    assert np.allclose(lookups.prefix_table(weight), table, rtol=0, atol=1e-9)


def test_a_transposed_weight_is_read_correctly(layout: StateLayout) -> None:
    """Dense layers of some libraries keep their weight as (hidden, image_size)."""
    lookups = LookupLayout(layout)
    stored = np.random.default_rng(6).normal(size=(2, lookups.image.size))
    table = lookups.prefix_table(stored.T)
    assert np.array_equal(table, lookups.prefix_table(np.ascontiguousarray(stored.T)))


def test_arrays_of_another_shape_or_type_are_refused() -> None:
    lookups = LookupLayout(StateLayout(Cluster()))
    with pytest.raises(InputError, match=r"a weight has the shape \(4460, hidden\)"):
        lookups.prefix_table(np.zeros((4459, 3)))
    with pytest.raises(InputError, match="float32 or float64"):
        lookups.prefix_table(np.zeros((4460, 3), np.int64))
    with pytest.raises(InputError, match=r"gradient has the shape \(5121, hidden\)"):
        lookups.spread_table_gradient(np.zeros((4460, 3)))
