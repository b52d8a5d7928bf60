"""Every metric of a schedule that was worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import METRICS, concatenate, evaluate, get_metric, summarize
from cluster_env.evaluation.metrics import size_class
from cluster_env.evaluation.summary import flat_summary
from cluster_env.objectives.standard import bounded_slowdown
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.schedules import schedule_of


def one_episode(
    arrival: list[int], start: list[int], duration: list[int], end: int, window: int = 4
) -> Schedule:
    """Jobs that hold half of the first resource and a quarter of the second."""
    return schedule_of(
        JobSet.of(arrival, duration, [[4, 1]] * len(arrival), window), start, end, (8, 4)
    )


# Slowdowns 1, 4 and 6/4; completion times 2, 4 and 6; small, small, large is not there.
DONE = one_episode([0, 0, 1], [0, 3, 3], [2, 1, 4], end=7)
# The second job was started too late to finish, the third never started.
CUT = one_episode([0, 1, 3], [0, 8, -1], [10, 5, 2], end=11)


def test_means_of_a_finished_episode() -> None:
    means = summarize(DONE).means
    assert means["slowdown"] == means["slowdown_finished"] == pytest.approx((1 + 4 + 1.5) / 3)
    assert means["bounded_slowdown"] == 1.0
    assert means["completion_time"] == 4
    assert means["makespan"] == 7
    # In steps 0-3 of the window: jobs 0 (2 steps), 1 (1 step), 2 (1 step), each 3/8 of the cluster.
    assert means["utilization"] == pytest.approx(4 * 0.375 / 4)
    assert [means[f"within_{k}"] for k in (1, 2, 3, 5)] == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])
    assert means["slowdown_p95"] == 4
    assert means["unfinished"] == 0
    assert means["num_jobs"] == 3


def test_use_up_to_the_last_finish() -> None:
    # 2, 1 and 4 steps on 3/8 of the cluster, in 7 steps; of the cut episode 10 and 3, in 11.
    assert summarize(DONE).mean("utilization_to_end") == pytest.approx(0.375)
    assert summarize(CUT).mean("utilization_to_end") == pytest.approx(13 * 0.375 / 11)


def test_of_completion_times_the_slowest_and_a_lower_bound_are_measured() -> None:
    twenty = one_episode([0] * 20, [0] * 20, list(range(1, 21)), end=20)
    names = ("completion_p95", "longest_completion", "least_completion")
    both = concatenate([twenty, DONE])
    p95, longest, least = (get_metric(name).values(both).tolist() for name in names)
    assert (p95, longest) == ([19, 6], [20, 6])
    assert least == [*range(1, 21), 2, 1, 4]
    too_large = replace(DONE, demand=np.array([[4, 1], [16, 1], [4, 6]], DONE.demand.dtype))
    assert get_metric("least_completion").values(too_large).tolist() == [2, 2, 6]


def test_jobs_are_narrow_medium_or_wide_by_what_they_hold_most_of() -> None:
    demand = [[1, 1], [2, 0], [3, 0], [8, 0], [9, 0], [1, 2], [1, 1]]
    jobs = one_episode([0] * 7, [0] * 7, [20] * 7, end=40)
    jobs = replace(jobs, demand=np.array(demand, np.int32), capacity=np.array([32, 4], np.int32))
    assert size_class(jobs).tolist() == [0, 0, 1, 1, 2, 2, 0]
    waited = replace(jobs, start=np.arange(7, dtype=np.int32), finish=np.arange(7) + 20)
    means = summarize(waited, metrics=["bounded_slowdown_wide", "bounded_slowdown_medium"]).means
    assert means["bounded_slowdown_wide"] == pytest.approx(np.mean([24, 25]) / 20)
    assert means["bounded_slowdown_medium"] == pytest.approx(np.mean([22, 23]) / 20)


def test_weighted_and_fair_means_of_a_finished_episode() -> None:
    # Areas are 2.5 units (the mean of 4 and 1) times the durations 2, 1 and 4.
    assert summarize(DONE).mean("weighted_completion_time") == (5 * 2 + 2.5 * 4 + 10 * 6) / 3
    # A large job with slowdown 30/6 = 5, a large one with 3, a small one with 40.
    waiting = one_episode([0, 0, 0], [24, 14, 39], [6, 7, 1], end=40)
    assert METRICS.get("fair_slowdown").values(waiting).tolist() == [5 + 4 * (5 - 3), 3, 40]


def test_a_mixture_is_measured_by_what_an_episode_costs() -> None:
    metric = get_metric("0.5 completion_time + 2 makespan + 10 utilization")
    [cost] = metric.values(DONE)
    assert cost == pytest.approx(0.5 * (2 + 4 + 6) + 2 * 7 - 10 * 4 * 0.375)
    assert (metric.per, metric.higher_is_better) == ("episode", False)
    summary = summarize(concatenate([DONE, CUT]), also=[metric.name])
    assert summary.rows(metric.name)[0] == cost
    spent = 10 + 10 + 8
    assert summary.rows("0.5 completion_time + 2 makespan + 10 utilization")[1] == pytest.approx(
        0.5 * spent + 2 * 11 - 10 * 4 * summary.rows("utilization")[1]
    )


def test_the_cost_of_an_episode_without_jobs_is_nothing() -> None:
    cluster = Cluster()
    empty = JobSet.of([], [], np.empty((0, 2)), window=3)
    jobsets = [empty, JobSet.of([0], [2], [[1, 1]], window=3), empty]
    name = "1 slowdown + 1 fair_slowdown"
    schedule = evaluate(get_heuristic("sjf", DeepRM(cluster)), jobsets, DeepRM(cluster))
    assert summarize(schedule, also=[name]).rows(name).tolist() == [0, 2, 0]


def test_unfinished_jobs_count_with_what_they_have_spent_and_miss_every_limit() -> None:
    means = summarize(CUT).means
    assert means["slowdown"] == pytest.approx((1 + 10 / 5 + 8 / 2) / 3)
    assert means["slowdown_finished"] == 1
    assert means["completion_time"] == pytest.approx((10 + 10 + 8) / 3)
    assert means["makespan"] == 11
    assert means["within_2"] == pytest.approx(1 / 3)
    assert means["within_5"] == pytest.approx(1 / 3)
    assert means["unfinished"] == 2


def test_small_and_large_jobs_are_split_at_five_steps() -> None:
    means = summarize(CUT).means
    assert means["slowdown_large"] == 1
    assert means["slowdown_small"] == pytest.approx((10 / 5 + 8 / 2) / 2)


def test_bounded_slowdown_counts_short_jobs_as_longer_than_they_are() -> None:
    assert bounded_slowdown(DONE, bound_steps=2).tolist() == [1, 2, 1.5]
    assert bounded_slowdown(CUT).tolist() == [1, 1, 1]


def test_utilization_ends_with_the_window_and_with_the_episode() -> None:
    values = METRICS.get("utilization").values
    late = one_episode([0], [3], [5], end=8)
    assert values(late) == pytest.approx([0.375 / 4])
    cut = replace(late, window=np.array([10], np.int32), end=np.array([5], np.int32))
    assert values(cut) == pytest.approx([2 * 0.375 / 10])


def test_means_pool_jobs_and_not_jobsets() -> None:
    lone = one_episode([0], [9], [1], end=10)
    summary = summarize(concatenate([DONE, lone]))
    assert summary.mean("slowdown") == pytest.approx((1 + 4 + 1.5 + 10) / 4)
    assert summary.rows("slowdown") == pytest.approx([6.5 / 3, 10])
    assert summary.mean("makespan") == pytest.approx(8.5)


def test_episodes_of_one_jobset_are_one_row() -> None:
    twice = concatenate([DONE, DONE])
    same = replace(twice, jobset=np.zeros(2, np.int32))
    summary = summarize(same)
    assert summary.num_jobsets == 1
    assert summary.num_jobs.tolist() == [6]
    assert summary.mean("slowdown") == summarize(DONE).mean("slowdown")


def test_jobsets_without_jobs_have_no_slowdown_and_no_makespan() -> None:
    cluster = Cluster()
    empty = JobSet.of([], [], np.empty((0, 2)), window=3)
    summary = summarize(
        evaluate(get_heuristic("sjf", DeepRM(cluster)), [empty, empty], DeepRM(cluster))
    )
    assert np.isnan(summary.means["slowdown"])
    assert np.isnan(summary.means["slowdown_p95"])
    assert np.isnan(summary.rows("slowdown")).all()
    assert np.isnan(summary.estimate("slowdown").low)
    assert summary.means["makespan"] == 0
    assert summary.means["unfinished"] == 0


def test_training_gets_flat_numbers() -> None:
    workload = BimodalWorkload()
    jobsets = sample_jobsets(workload, 0, Split.VALIDATION, range(20))
    world = DeepRM(workload.cluster)
    flat = flat_summary(evaluate(get_heuristic("sjf", world), jobsets, world), world)
    assert {"completion_time", "makespan", "utilization", "unfinished", "within_2"} <= set(flat)
    assert flat["slowdown_low"] < flat["slowdown"] < flat["slowdown_high"]
    assert all(type(value) is float for value in flat.values())


def test_a_metric_ranks_by_its_direction() -> None:
    assert METRICS.get("slowdown").rank(2.0) < METRICS.get("slowdown").rank(3.0)
    assert METRICS.get("utilization").rank(0.9) < METRICS.get("utilization").rank(0.8)
    assert METRICS.get("utilization").rank(float("nan")) == float("inf")
