"""Families of tasks: what is drawn lies in its range, and what is impossible is refused."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.objectives import read_class_weights
from meta.tasks import FamilySection, get_distribution, objective_kind, read_family
from rllib_configs.config.loading import parse_section
from rllib_configs.config.task_schema import TaskSection
from rllib_configs.worlds.deeprm.ranges import DeepRMRanges

RANGES = {
    "objectives": ["slowdown", "makespan", {"slowdown": 1, "makespan": 0.5}],
    "load": [0.2, 1.9],
    "window": [30, 60],
    "small_share": [0.3, 0.95],
    "small_duration": [1, 4],
    "large_duration": [7, 15],
    "capacity": [6, 20],
    "dominant_share": [0.1, 0.9],
    "burstiness": [0, 0.8],
}


def family(**ranges: object) -> FamilySection:
    return parse_section(FamilySection, {"name": "mine", "vary": ranges})


def draws(family: FamilySection, count: int = 300) -> list[TaskSection]:
    rng = np.random.default_rng(5)
    return [family.draw(rng) for _ in range(count)]


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_a_family_in_operation_is_another_one_but_for_what_it_changes(tmp_path: Path) -> None:
    own, other = get_distribution("priorities-operation"), get_distribution("priorities")
    assert isinstance(own, FamilySection)
    assert isinstance(other, FamilySection)
    assert (own.base.workload.window, own.warmup) == (500, 100)
    assert own.baselines == (*own.base.build().spec.baselines, "hold")
    assert own.base.world.cluster.num_classes == other.base.world.cluster.num_classes == 3
    assert own.vary.class_weight == other.vary.class_weight == (0.1, 10)
    assert own.vary.load != other.vary.load
    tasks = draws(own, 20)
    assert all(0.7 <= one.workload.load <= 0.95 and one.workload.window == 500 for one in tasks)
    with pytest.raises(InputError, match="unknown family 'prioritys'"):
        read_family(write(tmp_path, "like: prioritys"))
    with pytest.raises(InputError, match="a warm-up of 30 steps is left out at both ends"):
        read_family(write(tmp_path, "like: objectives\nwarmup: 30"))


def test_every_drawn_value_lies_in_its_range_and_both_ends_come_up() -> None:
    tasks = draws(family(**RANGES))
    assert {str(t.objective) for t in tasks} == {str(o) for o in RANGES["objectives"]}  # type: ignore[attr-defined]
    assert {t.workload.window for t in tasks} == {30, 60}
    for units in zip(*(t.world.cluster.capacity for t in tasks), strict=True):
        assert (min(units), max(units)) == (6, 20)
    shares = [t.workload.small_share for t in tasks]
    assert 0.3 <= min(shares) < 0.32
    assert 0.93 < max(shares) <= 0.95
    dominant = [t.workload.dominant_shares for t in tasks]
    assert all(sum(shares) == pytest.approx(1) for shares in dominant)
    assert 0.1 <= min(shares[0] for shares in dominant) < 0.12
    assert 0.78 < max(t.workload.burstiness for t in tasks) < 0.8
    for low, high, name in ((1, 4, "small_duration"), (7, 15, "large_duration")):
        ends = [getattr(t.workload, name) for t in tasks]
        assert all(low <= a <= b <= high for a, b in ends)
        assert {low, high} <= {end for pair in ends for end in pair}


def test_a_load_out_of_reach_becomes_the_highest_that_the_mix_can_reach() -> None:
    tasks = draws(family(load=[6.0, 7.0], small_share=[0.3, 0.95]))
    rates = [t.build().workload.arrival_rate for t in tasks]
    assert rates == pytest.approx([1.0] * len(tasks))
    assert len({t.workload.load for t in tasks}) == len(tasks)


def test_a_load_in_reach_is_drawn_uniformly() -> None:
    loads = np.array([t.workload.load for t in draws(family(load=[0.7, 1.5]), 2000)])
    # The standard error of the mean is .8 / sqrt(12 x 2000) = .005.
    assert loads.mean() == pytest.approx(1.1, abs=0.02)
    assert loads.std() == pytest.approx(0.8 / np.sqrt(12), abs=0.01)


def test_one_range_more_leaves_the_other_draws_as_they_are() -> None:
    few, more = family(small_share=[0.3, 0.9]), family(small_share=[0.3, 0.9], capacity=[6, 20])
    for a, b in zip(draws(few, 20), draws(more, 20), strict=True):
        assert a.workload.small_share == b.workload.small_share
        assert a.world != b.world


def test_weights_of_classes_are_uniform_on_a_logarithmic_scale_and_replace_the_objective() -> None:
    classes = {"world": {"cluster": {"num_classes": 3}}}
    data = {"name": "mine", "base": classes, "vary": {"class_weight": [0.1, 10]}}
    tasks = draws(parse_section(FamilySection, data).check(), 1000)
    weights = np.log10([read_class_weights(str(t.objective)) for t in tasks])
    assert weights.shape == (1000, 3)
    assert -1 <= weights.min() < -0.99
    assert 0.99 < weights.max() <= 1
    # Standard errors: 2 / sqrt(12 x 3000) = .011 of the mean; correlations 1 / sqrt(1000) = .032.
    assert weights.mean() == pytest.approx(0, abs=0.04)
    assert np.abs(np.corrcoef(weights.T) - np.eye(3)).max() < 0.13


def test_among_other_objectives_only_class_slowdown_gets_weights() -> None:
    data = {
        "name": "mine",
        "base": {"world": {"cluster": {"num_classes": 2}}},
        "vary": {"class_weight": [0.1, 10], "objectives": ["makespan", "class_slowdown"]},
    }
    tasks = draws(parse_section(FamilySection, data).check())
    assert {objective_kind(t.build()) for t in tasks} == {"makespan", "class_slowdown"}
    weighted = [t for t in tasks if objective_kind(t.build()) == "class_slowdown"]
    assert all(len(read_class_weights(str(t.objective)) or ()) == 2 for t in weighted)
    assert len({str(t.objective) for t in weighted}) == len(weighted)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"laod": [1, 2]}, "unknown key 'vary.laod': did you mean 'vary.load'?"),
        ({"load": [2, 1]}, "load goes from 2.0 to 1.0"),
        ({"load": 0.7}, "vary.load: input should be a valid tuple"),
        ({"small_share": [0.5, 1.5]}, "vary.small_share.1: input should be less than or equal"),
    ],
)
def test_wrong_ranges_are_refused_in_one_sentence(ranges: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("[", r"\[").replace("?", r"\?")) as error:
        family(**ranges)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vary: {objectives: [slowdwon]}", "unknown objective 'slowdwon': did you mean 'slowdown'"),
        ("vary: {large_duration: [15, 30]}", r"large_duration must be a range within 1..20"),
        ("base: {workload: {vary: {load: [0.5, 1]}}}", "under 'vary' of the family"),
        (
            "base: {workload: {kind: trace, path: no.csv}}\nvary: {load: [0.5, 1]}",
            "leave out .* load",
        ),
        ("base: {world: {max_time: 40}}", "task: max_time is 40"),
        ("vary: {class_weight: [0.1, 10]}", "num_classes of 2 or more"),
        ("vary: {objectives: [class_slowdown]}", "class_slowdown"),
        ("vary: {workload.lod: {uniform: [0, 1]}}", "did you mean 'workload.load'"),
        ("vary: {workload.load: {uniform: [1, 5]}}", "cannot have the workload.load 5.0: .*reach"),
        ("vary: {workload.load: {uniform: [1, 0]}}", "the lowest value comes first"),
        ("vary: {workload.load: {unifrm: [0, 1]}}", "unknown key 'vary.keys.workload.load.unifrm'"),
        ("vary: {burstiness: [0, 1]}", "vary.burstiness.1: input should be less than 1"),
        (
            "base: {world: {cluster: {capacity: [10]}}}\nvary: {dominant_share: [0.1, 0.9]}",
            "needs at least 2 resources",
        ),
        ("name: 'two words'", "name: string should match pattern"),
        ("- 1", "should hold a table"),
    ],
)
def test_a_file_of_impossible_tasks_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as error:
        get_distribution(path)
    assert str(path) in str(error.value)


def test_a_file_without_a_name_is_called_after_itself(tmp_path: Path) -> None:
    found = read_family(write(tmp_path, "vary: {load: [0.5, 1]}"))
    assert (found.name, found.vary) == ("mine", DeepRMRanges(load=(0.5, 1.0)))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match=r"there is no file nowhere\.yaml"):
        get_distribution("nowhere.yaml")


def test_any_setting_can_have_a_range_by_its_key() -> None:
    ranges = {
        "workload.load": {"uniform": [0.7, 1.5]},
        "world.max_time": {"integer": [200, 300]},
        "objective": {"choice": ["slowdown", "makespan"]},
    }
    tasks = draws(family(**ranges).check(), 100)
    assert {t.objective for t in tasks} == {"slowdown", "makespan"}
    loads = [t.workload.load for t in tasks]
    assert 0.7 <= min(loads) < 0.75
    assert 1.45 < max(loads) <= 1.5
    assert all(200 <= t.world.max_time <= 300 for t in tasks)
    both = draws(family(**ranges, small_share=[0.3, 0.9]), 20)
    assert [t.workload.load for t in both] == loads[:20]
    assert len({t.workload.small_share for t in both}) == 20


def test_each_key_has_a_stream_of_its_own() -> None:
    load = {"workload.load": {"uniform": [0.7, 1.5]}}
    few, more = family(**load), family(**{"objective": {"choice": ["slowdown"]}}, **load)
    for a, b in zip(draws(few, 20), draws(more, 20), strict=True):
        assert a.workload == b.workload
    other = family(**{"workload.burstiness": {"uniform": [0.7, 0.9]}})
    assert draws(other, 1)[0].workload.burstiness - 0.7 != draws(few, 1)[0].workload.load - 0.7
