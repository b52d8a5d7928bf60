"""Jobs, clusters, seeds, registries and objectives: what they promise and refuse."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.schedule import Pieces, Schedule, join_attributes
from cluster_env.core.seeding import Purpose, Split, episode_keys, generator, uniforms
from cluster_env.evaluation import concatenate, get_metric
from cluster_env.objectives import class_slowdown, get_objective, mixture, read_class_weights
from cluster_env.worlds.deeprm.cluster import Cluster
from tests.cluster_env.schedules import schedule_of

ONE = JobSet.of([0, 2], [3, 1], [[1, 2], [4, 0]], window=5)


@pytest.mark.parametrize(
    ("arrival", "duration", "demand", "message"),
    [
        ([2, 0], [1, 1], [[1, 1], [1, 1]], "sorted"),
        ([-1, 0], [1, 1], [[1, 1], [1, 1]], "0 or later"),
        ([0, 5], [1, 1], [[1, 1], [1, 1]], "window"),
        ([0, 1], [0, 1], [[1, 1], [1, 1]], "at least 1 time step"),
        ([0, 1], [1, 1], [[0, 0], [1, 1]], "at least 1 unit"),
        ([0], [1, 1], [[1, 1], [1, 1]], "one arrival"),
    ],
)
def test_impossible_jobsets_are_refused(
    arrival: list[int], duration: list[int], demand: list[list[int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        JobSet.of(arrival, duration, demand, window=5)


def test_cluster_refuses_jobs_that_can_never_run() -> None:
    Cluster().check(ONE)
    for jobset, message in (
        (JobSet.of([0], [1], [[11, 1]], 5), "job 0 asks for"),
        (JobSet.of([0], [21], [[1, 1]], 5), "horizon"),
        (JobSet.of([0], [1], [[1]], 5), "1 resources"),
    ):
        with pytest.raises(InputError, match=message):
            Cluster().check(jobset)


def test_jobs_have_classes_of_their_own_or_class_0() -> None:
    assert ONE.job_class.tolist() == [0, 0]
    assert ONE.job_class.dtype == np.uint8
    given = JobSet.of([0, 2], [3, 1], [[1, 2], [4, 0]], 5, job_class=[2, 1])
    assert given.job_class.tolist() == [2, 1]
    assert pickle.loads(pickle.dumps(given)).job_class.tolist() == [2, 1]
    for wrong, message in (([1], "one class per job"), ([1, 300], "0..255"), ([-1, 0], "0..255")):
        with pytest.raises(InputError, match=message):
            JobSet.of([0, 2], [3, 1], [[1, 2], [4, 0]], 5, job_class=wrong)
    with pytest.raises(InputError, match="one class per job"):
        JobSet(ONE.arrival, ONE.duration, ONE.demand, 5, np.zeros(2, np.int32))  # type: ignore[arg-type]


def test_cluster_refuses_classes_that_it_does_not_have() -> None:
    jobset = JobSet.of([0, 2], [3, 1], [[1, 2], [4, 0]], 5, job_class=[0, 2])
    Cluster(num_classes=3).check(jobset)
    for num_classes in (1, 2):
        with pytest.raises(InputError, match=f"job 1 has class 2, .*num_classes={num_classes}"):
            Cluster(num_classes=num_classes).check(jobset)
    for wrong in (0, 17):
        with pytest.raises(InputError, match=r"num_classes must lie in 1\.\.16"):
            Cluster(num_classes=wrong)


def test_a_window_that_is_not_given_ends_after_the_last_arrival() -> None:
    given = (np.int32([0, 2]), np.int32([3, 1]), np.int32([[1], [1]]))
    assert JobSet(*given).window == JobSet.of(*given).window == JobSet.of(*given, window=0).window
    assert JobSet(*given).window == 3
    assert JobSet.of(*given, window=None).window == 3
    assert JobSet.of([], [], np.empty((0, 1))).window == 1


def with_attributes() -> JobSet:
    columns = {"estimate": [5, 2, 9], "offer": [[1, 0], [0, 1], [2, 2]]}
    return JobSet.of([1, 2, 4], [3, 1, 2], [[1]] * 3, 6, [2, 0, 1], attributes=columns)


def test_further_columns_of_jobs_travel_with_them_and_cannot_be_changed() -> None:
    jobset = with_attributes()
    assert not ONE.attributes
    assert list(jobset.attributes) == ["estimate", "offer"]
    for same in (jobset, pickle.loads(pickle.dumps(jobset))):
        assert same.attributes["offer"].tolist() == [[1, 0], [0, 1], [2, 2]]
        with pytest.raises(ValueError, match="read-only"):
            same.attributes["estimate"][0] = 7
        with pytest.raises(TypeError):
            same.attributes["estimate"] = np.zeros(3)  # type: ignore[index]
    with pytest.raises(InputError, match="unknown attribute of jobs 'estimat': did you mean 'est"):
        jobset.attributes["estimat"]
    assert jobset.attributes.get("weight") is None
    assert "weight" not in jobset.attributes


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1, 2], r"one row for each of 3 jobs, but its shape is \(2,\)"),
        (np.zeros((3, 1, 1)), "one value or one row"),
        ([1.0, np.nan, 2.0], "finite numbers"),
        (["a", "b", "c"], "finite numbers"),
    ],
)
def test_columns_that_do_not_fit_the_jobs_are_refused(column: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        JobSet.of([0, 1, 2], [1] * 3, [[1]] * 3, attributes={"weight": column})  # type: ignore[dict-item]


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([1, 2]), np.array([False, True, True])])
def test_some_jobs_of_a_jobset_keep_all_their_columns(rows: slice | np.ndarray) -> None:
    some = with_attributes().select(rows)
    assert (some.arrival.tolist(), some.duration.tolist()) == ([2, 4], [1, 2])
    assert (some.window, some.job_class.tolist()) == (6, [0, 1])
    assert some.attributes["estimate"].tolist() == [2, 9]
    assert some.attributes["offer"].tolist() == [[0, 1], [2, 2]]
    assert with_attributes().select(rows, window=9).window == 9


def at_once(jobset: JobSet, pieces: Pieces | None = None) -> Schedule:
    """Each job starts as it arrives."""
    return schedule_of(jobset, jobset.arrival.tolist(), 20, [4], pieces=pieces)


def test_attributes_of_schedules_come_from_their_jobsets_and_are_joined() -> None:
    jobset = with_attributes()
    other = JobSet.of([0], [1], [[1]], attributes={"estimate": [4], "offer": [[8, 8]]})
    schedule = concatenate([at_once(jobset), at_once(other)])
    assert schedule.attributes["estimate"].tolist() == [5, 2, 9, 4]
    assert schedule.attributes["offer"][3].tolist() == [8, 8]
    assert [part.attributes["estimate"].tolist() for _, part in schedule.by_episode] == [
        [5, 2, 9],
        [4],
    ]
    for wrong in (ONE, JobSet.of([0], [1], [[1]], attributes={"estimate": [4]})):
        with pytest.raises(InputError, match="need the same attributes"):
            join_attributes([jobset.attributes, wrong.attributes])
    with pytest.raises(InputError, match="each of 3 jobs"):
        replace(at_once(jobset), attributes={"estimate": np.zeros(2)})


def test_pieces_of_joined_schedules_count_their_jobs_on() -> None:
    def pieces_of(jobset: JobSet, node: bool) -> Pieces:
        jobs = np.arange(jobset.num_jobs, dtype=np.int32)
        end = jobset.arrival + jobset.duration
        return Pieces(jobs, jobset.arrival, end, jobset.demand, jobs if node else None)

    jobset = with_attributes()
    with_nodes = at_once(jobset, pieces_of(jobset, node=True))
    joined = concatenate([with_nodes, with_nodes]).pieces
    assert joined.job.tolist() == [0, 1, 2, 3, 4, 5]
    assert joined.begin.tolist() == [1, 2, 4, 1, 2, 4]
    assert joined.node.tolist() == [0, 1, 2, 0, 1, 2]
    assert joined.units.shape == (6, 1)
    assert concatenate([at_once(jobset)]).pieces is None
    for other in (at_once(jobset), at_once(jobset, pieces_of(jobset, node=False))):
        with pytest.raises(InputError, match="in all of them or in none"):
            concatenate([with_nodes, other])
    with pytest.raises(InputError, match="pieces need one job, begin, end"):
        Pieces(np.int32([0]), np.int32([0, 1]), np.int32([1]), np.int32([[1]]))


@pytest.mark.parametrize("options", [{"capacity": ()}, {"capacity": (0,)}, {"horizon": 256}])
def test_impossible_clusters_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Cluster(**options)  # type: ignore[arg-type]


def test_streams_of_different_purposes_and_keys_differ() -> None:
    drawn = {
        tuple(generator(0, purpose, *keys).integers(1 << 30, size=3))
        for purpose in Purpose
        for keys in ((), (0,), (1,), (0, 1))
    }
    assert len(drawn) == len(Purpose) * 4
    with pytest.raises(InputError):
        generator(-1, Purpose.TASK)


def test_uniforms_do_not_depend_on_the_batch_and_look_uniform() -> None:
    keys = episode_keys(0, Split.TRAIN, 5, count=20_000)
    drawn = uniforms(keys, 3)
    assert np.array_equal(uniforms(keys[100:110], 3), drawn[100:110])
    assert np.all((drawn >= 0) & (drawn < 1))
    counts, _ = np.histogram(drawn, 20, (0, 1))
    assert np.sum((counts - 1000) ** 2 / 1000) < 43.8  # chi square, 19 degrees, 0.1 %
    assert abs(np.corrcoef(drawn, uniforms(keys, 4))[0, 1]) < 0.03


def test_unknown_names_are_answered_with_the_nearest() -> None:
    registry: Registry[int] = Registry("thing")
    registry.register("alpha")(1)
    registry.register("beta")(2)
    assert registry.names() == ("alpha", "beta")
    assert registry.get("alpha") == 1
    with pytest.raises(InputError, match="unknown thing 'alpah': did you mean 'alpha'"):
        registry.get("alpah")
    figures = Registry("figure", {"first-fig4": 1, "second-fig4": 2, "second-fig40": 3})
    with pytest.raises(InputError, match=r"'first-fig4' or 'second-fig4'\? known"):
        figures.get("fig4")
    with pytest.raises(InputError, match=r"figure 'fig4': none is known$"):
        Registry[int]("figure").get("fig4")


def test_a_name_that_is_gone_is_answered_with_what_to_use_instead() -> None:
    heuristics = Registry("heuristic", {"saf": 1})
    with pytest.raises(InputError, match=r"'rls:sjf' was removed: .*take sjf:easy"):
        heuristics.get("rls:sjf")
    with pytest.raises(InputError, match="unknown heuristic 'learned': known are saf"):
        heuristics.get("learned")  # a correction of run times had that name


def test_slowdown_by_class_weighs_each_job_by_its_class() -> None:
    jobset = JobSet.of([0, 0, 1], [2, 4, 5], [[1], [1], [1]], window=2, job_class=[2, 0, 1])
    objective = get_objective("class_slowdown(0.1,1, 10)")
    assert objective.name == "class_slowdown(0.1, 1, 10)"
    assert objective.job_cost(jobset) == pytest.approx([10 / 2, 0.1 / 4, 1 / 5])
    metric = get_metric(objective.name)
    assert (metric.name, metric.per, metric.higher_is_better) == (objective.name, "job", False)
    assert metric.label == "mean slowdown, classes weighted 0.1, 1, 10"
    assert metric.values(at_once(jobset)).tolist() == pytest.approx([10, 0.1, 1])
    assert objective.metric.name == objective.name
    mixed = get_objective("2 class_slowdown(0.1, 1, 10) + 3 completion_time")
    assert mixed.name == "2 class_slowdown(0.1, 1, 10) + 3 completion_time"
    assert mixed.job_cost(jobset) == pytest.approx(2 * objective.job_cost(jobset) + 3)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=16).filter(any))
def test_weights_of_classes_survive_the_name_to_the_last_bit(weights: list[float]) -> None:
    name = class_slowdown(weights).name
    assert read_class_weights(name) == tuple(weights)
    assert get_objective(name).name == name
    assert get_objective(f"2 {name} + 1 makespan").name == f"2 {name} + 1 makespan"


@pytest.mark.parametrize(
    "name",
    [
        *("class_slowdown", "class_slowdown()", "class_slowdown(1, 2", "class_slowdown(1,,2)"),
        *("class_slowdown(-1, 2)", "class_slowdown(0, 0)", "class_slowdown(nan, 1)"),
        *("class_slowdown(one)", "class_slowdown(1, inf)", "class_slowdown 1, 2)"),
    ],
)
def test_weights_of_classes_that_cannot_be_used_are_refused_in_one_sentence(name: str) -> None:
    if name == "class_slowdown 1, 2)":
        expected = "unknown objective"
    else:
        expected = re.escape(f"as in class_slowdown(0.1, 1, 10), but '{name}' was given")
    for found in (get_objective, get_metric):
        with pytest.raises(InputError, match=expected.replace("objective", "(objective|metric)")):
            found(name)


def test_a_class_without_a_weight_is_named() -> None:
    jobset = JobSet.of([0, 0], [2, 4], [[1], [1]], window=1, job_class=[0, 2])
    message = r"jobs of class 2, but class_slowdown\(1, 2\) has weights for the classes 0\.\.1 only"
    with pytest.raises(InputError, match=message):
        class_slowdown((1, 2)).job_cost(jobset)
    with pytest.raises(InputError, match=message):
        get_metric("class_slowdown(1, 2)").values(at_once(jobset))


def test_mixture_is_the_weighted_sum_of_its_parts() -> None:
    mixed = mixture({"slowdown": 2, "completion_time": 0.5, "makespan": 3, "utilization": 0.25})
    assert np.allclose(mixed.job_cost(ONE), 2 / ONE.duration + 0.5)
    assert (mixed.busy_cost, mixed.utilization_gain) == (3, 0.25)
    for weights in ({}, {"slowdown": -1}, {"slowdown": 0}, {"slowdown": float("nan")}):
        with pytest.raises(InputError, match="mixture"):
            mixture(weights)
    with pytest.raises(InputError, match="did you mean 'slowdown'"):
        get_objective("slowdon")


def test_late_costs_of_a_mixture_keep_their_own_steps() -> None:
    mixed = mixture({"fair_slowdown": 2, "bounded_slowdown": 3})
    fair, bounded = mixed.late_costs
    jobset = JobSet.of([0, 0], [2, 12], [[1], [1]], window=1)
    assert fair.cost(jobset) == pytest.approx([0, 2 * 4 / 12])
    assert fair.after(jobset).tolist() == [6, 36]
    assert bounded.cost(jobset) == pytest.approx([3 / 10, 3 / 12])
    assert bounded.after(jobset).tolist() == [10, 12]


def test_a_mixture_can_be_read_from_its_name() -> None:
    weights = {"slowdown": 1 / 3, "makespan": 2, "utilization": 1e-5}
    name = mixture(weights).name
    assert name == "0.3333333333333333 slowdown + 2 makespan + 1e-05 utilization"
    read = get_objective(name)
    assert read.name == name
    assert (read.busy_cost, read.utilization_gain) == (2, 1e-5)
    assert read.job_cost(ONE).tolist() == mixture(weights).job_cost(ONE).tolist()  # to the last bit
    assert mixture({"slowdown": 0.1, "makespan": 12}).name == "0.1 slowdown + 12 makespan"
    with pytest.raises(InputError, match="did you mean 'makespan'"):
        get_objective("1 slowdown + 2 makespam")
    for wrong in ("1 slowdown + makespan", "slowdown makespan", "nan"):
        with pytest.raises(InputError, match=f"unknown objective '{re.escape(wrong)}'"):
            get_objective(wrong)
