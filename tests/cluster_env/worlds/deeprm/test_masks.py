from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.observations import placeable_mask, start_now_mask
from cluster_env.worlds.deeprm.rules import PAPER_RULES, RELEASED_RULES, Rules
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.stepping import step_all


def test_small_state_by_hand() -> None:
    world = DeepRM(Cluster(capacity=(4,), horizon=5, num_slots=5))
    layout = world.layout
    state = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(state)[0, :, 0] = (1, 3, 3, 0, 0)
    layout.slots_of(state)[0] = [(1, 3), (2, 2), (3, 2), (5, 1), (0, 0)]
    #                           now     at 3    never   now     empty
    assert placeable_mask(world, state)[0].tolist() == [True, True, False, True, False, True]
    assert start_now_mask(world, state)[0].tolist() == [True, False, False, True, False, True]
    world = DeepRM(world.cluster, Rules(try_last_start=False))
    # Without the last start, neither the job at 3 nor the one as long as the horizon fits.
    assert placeable_mask(world, state)[0].tolist() == [True, False, False, False, False, True]
    assert start_now_mask(world, state)[0].tolist() == [True, False, False, False, False, True]


@pytest.mark.parametrize("rules", [PAPER_RULES, RELEASED_RULES])
@given(seed=st.integers(0, 10_000), steps=st.integers(0, 60))
def test_masks_foretell_what_each_action_does(rules: Rules, seed: int, steps: int) -> None:
    cluster = Cluster(capacity=(6, 4), horizon=10, num_slots=3, backlog_view=5)
    workload = BimodalWorkload(load=1.0, cluster=cluster, large_duration=(7, 10))
    jobset = sample_jobsets(workload, seed, Split.TRAIN, [0])[0]
    world = DeepRM(cluster, rules)
    simulator = world.simulator()
    # One episode for each action: all play the same actions, and part at the end.
    simulator.load([jobset], get_objective("slowdown"), episodes_per_jobset=cluster.num_actions)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        step_all(
            simulator, np.full(cluster.num_actions, rng.integers(cluster.num_actions), np.int32)
        )
    if not simulator.active[0]:
        return
    placeable = placeable_mask(world, simulator.states)[0]
    now = start_now_mask(world, simulator.states)[0]
    time, started = int(simulator.time[0]), simulator.state.start.copy()
    step_all(simulator, np.arange(cluster.num_actions, dtype=np.int32))
    for action in range(cluster.num_slots):
        assert placeable[action] == (simulator.time[action] == time)
        changed = simulator.state.start[action] != started[action]
        assert changed.sum() == placeable[action]
        assert now[action] == (simulator.state.start[action][changed] == time).any()
    assert placeable[-1]
    assert now[-1]


def test_all_slots_are_allowed_on_an_empty_cluster_with_a_given_array() -> None:
    cluster = Cluster(num_slots=2)
    simulator = DeepRM(cluster).simulator()
    jobset = JobSet.of([0, 0], [20, 1], [[10, 10], [1, 1]], window=1)
    simulator.load([jobset], get_objective("slowdown"))
    out = np.zeros((1, 3), np.bool_)
    for mask in (placeable_mask, start_now_mask):
        assert mask(simulator.world, simulator.states, out) is out
        assert out.all()


@pytest.mark.parametrize("mask", [placeable_mask, start_now_mask])
def test_arrays_of_another_shape_are_refused(mask: Callable[..., np.ndarray]) -> None:
    with pytest.raises(InputError, match="states of this world"):
        mask(DeepRM(), np.zeros((3, 71), np.uint8))
    with pytest.raises(InputError, match="out must have"):
        mask(DeepRM(), np.zeros((3, 83), np.uint8), np.zeros((3, 10), np.bool_))
