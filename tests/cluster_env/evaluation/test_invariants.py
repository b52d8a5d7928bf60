"""The checker of schedules finds every kind of fault, and none in what the simulator makes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.invariants import ScheduleFault, check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RULES
from cluster_env.worlds.deeprm.workloads import BimodalWorkload

MAX_TIME = 400

# Jobs 0 and 1 share the cluster; job 2 starts at the instant at which job 0 finishes.
JOBSETS = [JobSet.of([0, 0, 1], [2, 4, 3], [[1, 1], [1, 3], [1, 1]], window=5)]


def worked() -> Schedule:
    return Schedule(
        episode=np.zeros(3, np.int32),
        job=np.arange(3, dtype=np.int32),
        arrival=JOBSETS[0].arrival,
        start=np.array([0, 0, 2], np.int32),
        finish=np.array([2, 4, 5], np.int32),
        duration=JOBSETS[0].duration,
        demand=JOBSETS[0].demand,
        end=np.array([5], np.int32),
        window=np.array([5], np.int32),
        jobset=np.zeros(1, np.int32),
        capacity=np.array([2, 4], np.int32),
    )


def test_a_schedule_without_fault_passes() -> None:
    check_schedule(worked(), JOBSETS, complete_until=5)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"start": [0, 0, 0], "finish": [2, 4, 3]}, "job 2 of episode 0 starts before it arrives"),
        ({"start": [0, 0, 1], "finish": [2, 4, 4]}, "job 2 of episode 0 starts when .* no room"),
        ({"finish": [2, 4, 4]}, "job 2 of episode 0 does not run for its whole length"),
        ({"start": [0, 0, 4], "finish": [2, 4, 7]}, "job 2 .* finishes after the end"),
        ({"start": [-1, 0, 2]}, "job 0 of episode 0 finishes without a start"),
        ({"finish": [2, -1, 5]}, "job 1 of episode 0 has run to its end but is not finished"),
        ({"start": [0, 0, -1], "finish": [2, 4, -1]}, "job 2 of episode 0 never finishes"),
        ({"arrival": [0, 0, 0]}, "job 2 of episode 0 has another arrival"),
        ({"duration": [2, 4, 4]}, "job 2 of episode 0 has another duration"),
        ({"demand": [[1, 1], [1, 2], [1, 1]]}, "job 1 of episode 0 has another demand"),
        ({"job_class": [0, 0, 1]}, "job 2 of episode 0 has another class"),
        ({"job": [0, 1, 3]}, "job 3 of episode 0 is not in its jobset"),
        (
            {
                "job": [0, 1, 1],
                "arrival": [0, 0, 0],
                "duration": [2, 4, 4],
                "demand": [[1, 1], [1, 3], [1, 3]],
            },
            "job 1 of episode 0 is there 2 times",
        ),
    ],
)
def test_each_fault_is_found_and_named(changes: dict[str, object], complaint: str) -> None:
    arrays = {name: np.array(values, np.int32) for name, values in changes.items()}
    with pytest.raises(ScheduleFault, match=complaint):
        check_schedule(replace(worked(), **arrays), JOBSETS, complete_until=5)


def test_a_lost_job_is_found() -> None:
    full = worked()
    per_job = (
        *("episode", "job", "arrival", "start", "finish"),
        *("duration", "demand", "job_class"),
    )
    lost = replace(full, **{name: getattr(full, name)[:2] for name in per_job})
    with pytest.raises(ScheduleFault, match="episode 0 has 2 jobs, but 3"):
        check_schedule(lost, JOBSETS)


def test_without_a_promise_of_completeness_unfinished_jobs_are_let_be() -> None:
    unfinished = replace(
        worked(), start=np.array([0, 0, -1], np.int32), finish=np.array([2, 4, -1], np.int32)
    )
    check_schedule(unfinished, JOBSETS)


@st.composite
def workloads(draw: st.DrawFn) -> BimodalWorkload:
    cluster = Cluster(
        capacity=tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))),
        horizon=draw(st.integers(4, 25)),
        num_slots=draw(st.integers(1, 12)),
    )
    longest = draw(st.integers(2, cluster.horizon))
    return BimodalWorkload.at_rate(
        draw(st.sampled_from([0.1, 0.5, 1.0])),
        cluster=cluster,
        window=draw(st.integers(2, 40)),
        small_duration=(1, 2),
        large_duration=(2, longest),
        demands=draw(st.sampled_from(["released", "paper"])),
    )


@given(
    workload=workloads(),
    heuristic=st.sampled_from(["random", "sjf", "packer", "tetris:0.01", "hold:4"]),
    seed=st.integers(0, 2**31),
)
def test_every_simulated_schedule_passes_and_loses_no_job(
    workload: BimodalWorkload, heuristic: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    jobsets = [workload.sample(rng) for _ in range(3)]
    policy = get_heuristic(heuristic, DeepRM(workload.cluster))
    schedule = evaluate(policy, jobsets, DeepRM(workload.cluster, max_time=MAX_TIME), run_seed=seed)
    check_schedule(schedule, jobsets, complete_until=MAX_TIME)
    assert schedule.job.size == sum(jobset.num_jobs for jobset in jobsets)
    if heuristic != "random":
        assert schedule.finished.all()
        _check_no_one_waits_for_nothing(schedule, jobsets)


def _check_no_one_waits_for_nothing(schedule: Schedule, jobsets: list[JobSet]) -> None:
    """An episode ends with its window or with its last job, whatever comes later."""
    for episode, jobset in enumerate(jobsets):
        finish = schedule.finish[schedule.episode == episode]
        assert schedule.end[episode] == max(jobset.window, finish.max(initial=0))


@given(seed=st.integers(0, 2**31))
def test_schedules_under_the_released_rules_are_possible_too(seed: int) -> None:
    workload = BimodalWorkload(load=1.8, window=40, first_step=1)
    jobsets = [workload.sample(np.random.default_rng(seed))]
    policy = get_heuristic("random", DeepRM(workload.cluster))
    schedule = evaluate(
        policy, jobsets, DeepRM(workload.cluster, RULES.get("released")), run_seed=seed
    )
    check_schedule(schedule, jobsets)
