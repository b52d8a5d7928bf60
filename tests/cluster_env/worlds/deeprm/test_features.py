from dataclasses import replace

import numpy as np
import pytest

from cluster_env.objectives import get_objective
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.features import context_feature_names, slot_feature_names
from cluster_env.worlds.deeprm.observations import placeable_mask, start_now_mask
from cluster_env.worlds.deeprm.rules import Rules
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.stepping import step_all


def test_small_state_by_hand() -> None:
    cluster = Cluster(capacity=(4, 2), horizon=5, num_slots=3, backlog_view=6)
    layout = StateLayout(cluster)
    state = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(state)[0, :2] = (1, 2)  # all of the second resource, for two steps
    layout.slots_of(state)[0, 0] = (2, 3, 0)
    layout.slots_of(state)[0, 2] = (2, 4, 1)
    state[0, layout.backlog] = 3
    state[0, layout.since] = 2
    state[0, layout.waited] = (5, 0, 2)
    slots, context, _ = DeepRM(cluster).features(state)
    first = dict(zip(slot_feature_names(cluster), slots[0, 0].tolist(), strict=True))
    last = dict(zip(slot_feature_names(cluster), slots[0, 2].tolist(), strict=True))
    assert first == pytest.approx(
        {
            "present": 1,
            "duration": 2 / 5,
            "inverse_duration": 1 / 2,
            "demand_0": 3 / 4,
            "demand_1": 0,
            "starts_now": 1,
            "starts_later": 0,
            "first_start": 0,
            "alignment": 3 * 3 / 20,  # 3 units free of the first resource, none of the second
            "area": 2 / 5 * (3 / 4 + 0) / 2,
            "index": 0,
            "waited": 5 / (5 * 5),
            "stretched": 5 / (5 + 2),
        }
    )
    assert last == pytest.approx(
        first
        | {
            "demand_0": 1,
            "demand_1": 1 / 2,
            "starts_now": 0,
            "starts_later": 1,
            "first_start": 2 / 5,
            "alignment": 3 * 4 / 20,
            "area": 2 / 5 * (1 + 1 / 2) / 2,
            "index": 1,
            "waited": 2 / (5 * 5),
            "stretched": 2 / (2 + 2),
        }
    )
    assert not slots[0, 1].any()
    free = [3 / 4, 0] * 2 + [1, 1] * 3
    assert context[0, :-1].tolist() == pytest.approx([*free, 3 / 6, 2 / 5, 2 / 3])


def test_a_job_without_room_has_the_latest_start_and_no_other() -> None:
    cluster = Cluster(capacity=(2,), horizon=3, num_slots=1)
    layout = StateLayout(cluster)
    state = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(state)[0, 1] = 2
    layout.slots_of(state)[0, 0] = (2, 1)
    names = slot_feature_names(cluster)
    found = dict(zip(names, DeepRM(cluster).features(state).items[0, 0].tolist(), strict=True))
    assert (found["starts_now"], found["starts_later"], found["first_start"]) == (0, 0, 1)


def test_features_lie_between_0_and_1_and_agree_with_the_masks(
    states: np.ndarray, layout: StateLayout
) -> None:
    cluster = layout.cluster
    for try_last_start in (True, False):
        world = DeepRM(cluster, Rules(try_last_start=try_last_start))
        slots, context, _ = world.features(states)
        classes = cluster.num_classes if cluster.num_classes > 1 else 0
        num_features = 11 + cluster.num_resources + classes
        assert slots.shape == (len(states), cluster.num_slots, num_features)
        assert context.shape == (len(states), len(context_feature_names(cluster)))
        for features in (slots, context):
            assert features.min() >= 0
            assert features.max() <= 1
        names = slot_feature_names(cluster)
        now, later = (
            slots[:, :, names.index("starts_now")],
            slots[:, :, names.index("starts_later")],
        )
        assert np.array_equal(now, start_now_mask(world, states)[:, :-1])
        assert np.array_equal(now + later, placeable_mask(world, states)[:, :-1])


def test_classes_are_shown_one_hot_behind_all_other_features() -> None:
    plain = Cluster(capacity=(4, 2), horizon=5, num_slots=3)
    cluster = replace(plain, num_classes=3)
    layout = StateLayout(cluster)
    assert (layout.classes.start, layout.size) == (StateLayout(plain).size, layout.classes.stop)
    assert layout.size == StateLayout(plain).size + 3
    state = np.zeros((2, layout.size), np.uint8)
    layout.slots_of(state)[0, 0] = (2, 3, 0)
    layout.slots_of(state)[0, 2] = (2, 4, 1)
    state[0, layout.classes] = (0, 0, 2)  # the slot in the middle is empty
    slots, context, _ = DeepRM(cluster).features(state)
    names = slot_feature_names(cluster)
    assert names == (*slot_feature_names(plain), "class_0", "class_1", "class_2")
    assert slots[0, :, -3:].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert not slots[1].any()
    without = DeepRM(plain).features(state[:, : StateLayout(plain).size].copy())
    assert np.array_equal(slots[:, :, :-3], without[0])
    assert np.array_equal(context, without[1])


def test_one_class_is_not_shown() -> None:
    layout = StateLayout(Cluster())
    assert layout.size == layout.window + 1 == 83
    assert layout.classes == slice(83, 83)
    assert slot_feature_names(Cluster())[-1] == "stretched"


def test_the_window_of_the_task_is_told_and_what_is_left_of_it_is_not() -> None:
    cluster = Cluster(horizon=10)
    workload = BimodalWorkload(
        load=0.7, window=80, cluster=cluster, large_duration=(5, 10), first_step=1
    )
    long = replace(workload, window=600)
    rng = np.random.default_rng(0)
    simulator = DeepRM(cluster).simulator()
    simulator.load([workload.sample(rng), long.sample(rng)], get_objective("slowdown"))
    void = np.full(2, cluster.num_slots, np.int32)
    for _ in range(3):
        window = simulator.world.features(simulator.states).context[:, -1]
        assert window.dtype == np.float32
        assert window.tolist() == pytest.approx([2 * 10 / 80, 2 * 10 / 255])
        step_all(simulator, void)


def test_a_window_of_at_most_two_horizons_counts_as_short() -> None:
    world = DeepRM(Cluster(horizon=20))
    states = np.zeros((2, world.layout.size), np.uint8)
    states[:, world.layout.window] = (40, 3)
    assert world.features(states).context[:, -1].tolist() == [1.0, 1.0]
