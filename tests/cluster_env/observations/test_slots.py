from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.cluster import Cluster
from cluster_env.observations.masks import placeable_mask, start_now_mask
from cluster_env.observations.slots import (
    context_feature_names,
    slot_feature_names,
    slot_features,
)
from cluster_env.simulators.code import CodeLayout


def test_small_state_by_hand() -> None:
    cluster = Cluster(capacity=(4, 2), horizon=5, num_slots=3, backlog_view=6)
    layout = CodeLayout(cluster)
    code = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(code)[0, :2] = (1, 2)  # all of the second resource, for two steps
    layout.slots_of(code)[0, 0] = (2, 3, 0)
    layout.slots_of(code)[0, 2] = (2, 4, 1)
    code[0, layout.backlog] = 3
    code[0, layout.since] = 2
    code[0, layout.waited] = (5, 0, 2)
    slots, context = slot_features(code, layout)
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
    assert context[0].tolist() == pytest.approx([*free, 3 / 6, 2 / 5, 2 / 3])


def test_a_job_without_room_has_the_latest_start_and_no_other() -> None:
    cluster = Cluster(capacity=(2,), horizon=3, num_slots=1)
    layout = CodeLayout(cluster)
    code = np.zeros((1, layout.size), np.uint8)
    layout.occupied_of(code)[0, 1] = 2
    layout.slots_of(code)[0, 0] = (2, 1)
    names = slot_feature_names(cluster)
    found = dict(zip(names, slot_features(code, layout)[0][0, 0].tolist(), strict=True))
    assert (found["starts_now"], found["starts_later"], found["first_start"]) == (0, 0, 1)


def test_features_lie_between_0_and_1_and_agree_with_the_masks(
    codes: np.ndarray, layout: CodeLayout
) -> None:
    cluster = layout.cluster
    for try_last_start in (True, False):
        slots, context = slot_features(codes, layout, try_last_start)
        classes = cluster.num_classes if cluster.num_classes > 1 else 0
        num_features = 11 + cluster.num_resources + classes
        assert slots.shape == (len(codes), cluster.num_slots, num_features)
        assert context.shape == (len(codes), len(context_feature_names(cluster)))
        for features in (slots, context):
            assert features.min() >= 0
            assert features.max() <= 1
        names = slot_feature_names(cluster)
        now, later = (
            slots[:, :, names.index("starts_now")],
            slots[:, :, names.index("starts_later")],
        )
        assert np.array_equal(now, start_now_mask(codes, layout, try_last_start)[:, :-1])
        assert np.array_equal(now + later, placeable_mask(codes, layout, try_last_start)[:, :-1])


def test_classes_are_shown_one_hot_behind_all_other_features() -> None:
    plain = Cluster(capacity=(4, 2), horizon=5, num_slots=3)
    cluster = replace(plain, num_classes=3)
    layout = CodeLayout(cluster)
    assert (layout.classes.start, layout.size) == (CodeLayout(plain).size, layout.classes.stop)
    assert layout.size == CodeLayout(plain).size + 3
    code = np.zeros((2, layout.size), np.uint8)
    layout.slots_of(code)[0, 0] = (2, 3, 0)
    layout.slots_of(code)[0, 2] = (2, 4, 1)
    code[0, layout.classes] = (0, 0, 2)  # the slot in the middle is empty
    slots, context = slot_features(code, layout)
    names = slot_feature_names(cluster)
    assert names == (*slot_feature_names(plain), "class_0", "class_1", "class_2")
    assert slots[0, :, -3:].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert not slots[1].any()
    without = slot_features(code[:, : CodeLayout(plain).size].copy(), CodeLayout(plain))
    assert np.array_equal(slots[:, :, :-3], without[0])
    assert np.array_equal(context, without[1])


def test_one_class_is_not_shown() -> None:
    layout = CodeLayout(Cluster())
    assert layout.size == layout.waited.stop == 82
    assert layout.classes == slice(82, 82)
    assert slot_feature_names(Cluster())[-1] == "stretched"


def test_given_arrays_are_written(codes: np.ndarray, layout: CodeLayout) -> None:
    fresh = slot_features(codes, layout)
    out = tuple(np.full_like(part, np.nan) for part in fresh)
    written = slot_features(codes, layout, out=out)
    assert all(part is given for part, given in zip(written, out, strict=True))
    assert all(np.array_equal(part, given) for part, given in zip(fresh, out, strict=True))
