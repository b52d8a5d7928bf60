"""Steady operation: jobs at both ends of the arrival window are served, but do not count."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import (
    METRICS,
    PolicyGroup,
    Result,
    compare_policies,
    evaluate,
    get_metric,
    summarize,
    tune,
    win_rate,
)
from cluster_env.evaluation.metrics import episode_means
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic, get_spec
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RELEASED_RULES
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.evaluation.measured import WORLD, heuristic

JOBSETS = sample_jobsets(BimodalWorkload(load=0.9, window=40), 0, Split.VALIDATION, range(12))


def schedule_of(spec: str = "sjf") -> Schedule:
    return evaluate(heuristic(spec), JOBSETS, WORLD)


def test_only_jobs_that_arrive_between_the_two_ends_count() -> None:
    schedule = schedule_of()
    kept = (schedule.arrival >= 10) & (schedule.arrival < 30)
    summary = summarize(schedule, warmup=10)
    assert summary.mean("slowdown") == pytest.approx(schedule.slowdown[kept].mean())
    assert summary.means["num_jobs"] == kept.sum()
    assert summary.num_jobs.tolist() == [
        np.sum(kept & (schedule.episode == k)) for k in range(len(JOBSETS))
    ]
    small = kept & (schedule.duration <= 5)
    assert summary.mean("slowdown_small") == pytest.approx(schedule.slowdown[small].mean())
    assert summary.means["slowdown_p95"] == np.quantile(
        schedule.slowdown[kept], 0.95, method="inverted_cdf"
    )


@pytest.mark.parametrize("metric", ["slowdown", "slowdown_small"])
def test_jobs_of_a_warm_up_count_in_no_mean_of_an_episode(metric: str) -> None:
    """A search is judged by these means; a jobset may have a warm-up of its own."""
    marked = [one.counting(10) for one in JOBSETS]
    schedule = evaluate(heuristic("sjf"), marked, WORLD)
    means = episode_means(get_metric(metric), schedule)
    for k, mean in enumerate(means):
        kept = (schedule.episode == k) & schedule.counted
        if metric == "slowdown_small":
            kept &= schedule.duration <= 5
        assert mean == pytest.approx(schedule.slowdown[kept].mean())


def test_without_a_warm_up_every_job_counts() -> None:
    schedule = schedule_of()
    assert summarize(schedule).means == summarize(schedule, warmup=0).means
    assert summarize(schedule).means["num_jobs"] == schedule.job.size


def test_metrics_of_episodes_stay_those_of_whole_episodes() -> None:
    schedule = schedule_of()
    whole, part = summarize(schedule), summarize(schedule, warmup=15)
    for name in METRICS.names():
        if METRICS.get(name).per == "episode":
            assert part.rows(name).tolist() == whole.rows(name).tolist()


def test_each_episode_is_measured_in_its_own_window() -> None:
    schedule = schedule_of()
    window = schedule.window.copy()
    window[0] = 80
    summary = summarize(replace(schedule, window=window), warmup=10)
    assert summary.num_jobs[0] == np.sum(JOBSETS[0].arrival >= 10)
    assert summary.num_jobs[1] == np.sum((JOBSETS[1].arrival >= 10) & (JOBSETS[1].arrival < 30))


def test_jobs_that_do_not_count_may_stay_unfinished() -> None:
    schedule = schedule_of()
    late = schedule.arrival >= 30
    cut = replace(schedule, finish=np.where(late, -1, schedule.finish).astype(np.int32))
    assert summarize(cut).num_unfinished.sum() == late.sum()
    summary = summarize(cut, warmup=10)
    assert summary.num_unfinished.sum() == 0
    assert win_rate(summary, [summary]).value == 1.0


@pytest.mark.parametrize(
    ("warmup", "sentence"),
    [
        (20, "a warm-up of 20 steps is left out at both ends, which leaves nothing of an arrival "),
        (-1, "a warm-up must be 0 steps or longer, but -1 was given"),
    ],
)
def test_a_warm_up_must_leave_something(warmup: int, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        summarize(schedule_of(), warmup=warmup)
    assert summarize(schedule_of(), warmup=19).means["num_jobs"] > 0


def test_contests_and_tuning_measure_the_same_jobs() -> None:
    names = [f"hold:{number}" for number in (2, 4, 8, 16, 32)]
    groups = [PolicyGroup(name, (heuristic(name),)) for name in names]
    results = compare_policies(groups, JOBSETS, WORLD, warmup=15)
    metrics = get_spec("deeprm").metrics
    for name, result in zip(names, results, strict=True):
        assert result.means == summarize(schedule_of(name), warmup=15, metrics=metrics).means
    best = min(results, key=lambda result: result.mean("slowdown"))
    assert tune("hold", JOBSETS, WORLD, warmup=15).spec == best.name


def test_jobs_that_a_full_backlog_dropped_count_as_unfinished() -> None:
    cluster = Cluster(capacity=(2, 2), horizon=6, num_slots=1, backlog_view=1)
    # One runs, one fills the slot, one the backlog; the fourth finds no place.
    jobset = JobSet.of([1, 2, 3, 4], [4, 4, 4, 2], [[2, 2]] * 4, window=8)
    schedule = evaluate(
        get_heuristic("sjf", DeepRM(cluster)), [jobset], DeepRM(cluster, RELEASED_RULES)
    )
    assert schedule.start.tolist() == [1, 5, 9, -1]
    summary = summarize(schedule)
    assert summary.means["unfinished"] == 1
    # It counts as one that waited from its arrival to the end of the episode.
    assert schedule.completion[3] == schedule.end[0] - 4
    assert win_rate(summary, [summary]).value == 0.0


def test_quotients_and_win_rate_of_several_seeds() -> None:
    sjf, packer, random = (summarize(schedule_of(name)) for name in ("sjf", "packer", "random"))
    baseline, group = Result("sjf", (sjf,)), Result("two", (packer, random))
    quotient = group.ratio(baseline, "slowdown")
    middle = (packer.mean("slowdown") + random.mean("slowdown")) / 2
    assert quotient.value == pytest.approx(middle / sjf.mean("slowdown"))
    assert quotient.over == "seeds and jobsets"
    assert baseline.ratio(baseline, "slowdown").high == 1.0
    share = group.win_rate([baseline], "slowdown")
    assert share.value == pytest.approx(
        (win_rate(packer, [sjf]).value + win_rate(random, [sjf]).value) / 2
    )
    assert share.over == "seeds and jobsets"
    assert baseline.win_rate([baseline], "slowdown").value == 1.0
