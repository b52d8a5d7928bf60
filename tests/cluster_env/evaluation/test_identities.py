"""The return of an objective is its metric: exactly, for episodes that finish all jobs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import episode_keys, uniforms
from cluster_env.evaluation import METRICS, get_metric
from cluster_env.objectives import OBJECTIVES, Objective, episode_cost, get_objective, mixture
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.deeprm.stepping import step_all

# Objective, and what its return is made of: sign and scale of the metric's sum over an episode.
IDENTITIES = {
    "slowdown": -1,
    "completion_time": -1,
    "makespan": -1,
    "utilization": 1,
    "bounded_slowdown": -1,
    "weighted_completion_time": -1,
    "duration_weighted_completion_time": -1,
    "relative_completion_time": -1,
    "relative_weighted_completion_time": -1,
    "fair_slowdown": -1,
}
NOT_EXACT = {"bounded_slowdown", "relative_completion_time", "relative_weighted_completion_time"}
"""They divide by ten, or by a mean."""

HEURISTICS = ("random", "sjf", "packer", "tetris:0.002", "hold:4")


def play(
    policy: Policy, jobset: JobSet, cluster: Cluster, objective: Objective
) -> tuple[float, Schedule]:
    """Return of one episode under the paper's rules, and its schedule."""
    simulator = DeepRM(cluster, max_time=5000).simulator()
    simulator.load([jobset], objective)
    keys = episode_keys(0, 0, count=1)
    total, decision = 0.0, 0
    while simulator.active[0]:
        rewards, _ = step_all(simulator, policy.act(simulator.states, uniforms(keys, decision)))
        total += rewards[0]
        decision += 1
    return total, simulator.schedule()


def expected(name: str, schedule: Schedule) -> float:
    """What the return should be, from the schedule alone."""
    total = IDENTITIES[name] * float(METRICS.get(name).values(schedule).sum())
    if name == "bounded_slowdown":
        return total + schedule.job.size
    return total * schedule.window[0] if name == "utilization" else total


@pytest.mark.parametrize("name", IDENTITIES)
@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_return_is_the_metric(name: str, heuristic: str) -> None:
    workload = BimodalWorkload(load=1.1)
    for seed in range(5):
        jobset = workload.sample(np.random.default_rng(seed))
        policy = get_heuristic(heuristic, DeepRM(workload.cluster))
        total, schedule = play(policy, jobset, workload.cluster, get_objective(name))
        assert schedule.finished.all()
        assert total == pytest.approx(expected(name, schedule), rel=1e-12)


@given(seed=st.integers(0, 2**31), heuristic=st.sampled_from(HEURISTICS))
def test_return_is_the_metric_to_the_last_bit_in_powers_of_two(seed: int, heuristic: str) -> None:
    """Durations and capacities whose reciprocals have no rounding leave nothing to tolerate."""
    rng = np.random.default_rng(seed)
    cluster = Cluster(capacity=(8, 4), horizon=8, num_slots=4)
    count = int(rng.integers(1, 30))
    jobset = JobSet.of(
        np.sort(rng.integers(16, size=count)),
        2 ** rng.integers(0, 3, size=count, endpoint=True),
        rng.integers(1, cluster.capacity, size=(count, 2), endpoint=True),
        window=16,
    )
    policy = get_heuristic(heuristic, DeepRM(cluster))
    for name in set(IDENTITIES) - NOT_EXACT:
        total, schedule = play(policy, jobset, cluster, get_objective(name))
        assert schedule.finished.all()
        assert total == expected(name, schedule), name


@pytest.mark.parametrize(
    "weights",
    [
        {"slowdown": 0.5, "makespan": 0.25, "utilization": 2.0},
        {"fair_slowdown": 0.5, "bounded_slowdown": 3.0, "weighted_completion_time": 0.01},
        {"duration_weighted_completion_time": 0.1, "completion_time": 1.0},
    ],
)
def test_return_of_a_mixture_is_the_mixture_of_the_metrics(weights: dict[str, float]) -> None:
    workload = BimodalWorkload(load=0.9)
    jobset = workload.sample(np.random.default_rng(3))
    policy = get_heuristic("sjf", DeepRM(workload.cluster))
    total, schedule = play(policy, jobset, workload.cluster, mixture(weights))
    parts = sum(weight * expected(name, schedule) for name, weight in weights.items())
    assert total == pytest.approx(parts, rel=1e-12)
    [cost] = mixture(weights).metric.values(schedule)
    assert total == pytest.approx(-cost, rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_return_of_every_objective_is_minus_its_cost(name: str) -> None:
    workload = BimodalWorkload(load=1.2)
    jobset = workload.sample(np.random.default_rng(5))
    policy = get_heuristic("hold:4", DeepRM(workload.cluster))
    total, schedule = play(policy, jobset, workload.cluster, get_objective(name))
    [cost] = episode_cost(get_objective(name)).values(schedule)
    assert total == pytest.approx(-cost, rel=1e-12)


THREE_CLASSES = BimodalWorkload(load=1.1, cluster=Cluster(num_classes=3))


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_return_of_a_slowdown_by_class_is_the_metric(heuristic: str) -> None:
    name = "class_slowdown(0.1, 0, 7.5)"
    policy = get_heuristic(heuristic, DeepRM(THREE_CLASSES.cluster))
    for seed in range(3):
        jobset = THREE_CLASSES.sample(np.random.default_rng(seed))
        assert set(jobset.job_class) == {0, 1, 2}
        total, schedule = play(policy, jobset, THREE_CLASSES.cluster, get_objective(name))
        assert schedule.finished.all()
        by_hand = sum(
            (0.1, 0, 7.5)[jobset.job_class[job]] * (finish - arrival) / jobset.duration[job]
            for job, arrival, finish in zip(
                schedule.job, schedule.arrival, schedule.finish, strict=True
            )
        )
        metric = get_metric(name)
        assert (metric.name, metric.per, metric.higher_is_better) == (name, "job", False)
        assert metric.label == "mean slowdown, classes weighted 0.1, 0, 7.5"
        assert -total == pytest.approx(by_hand, rel=1e-12)
        assert metric.values(schedule).sum() == pytest.approx(by_hand, rel=1e-12)
        assert get_objective(name).metric.name == name


def test_idle_is_what_utilization_leaves() -> None:
    workload = BimodalWorkload(load=0.9)
    jobset = workload.sample(np.random.default_rng(2))
    policy = get_heuristic("packer", DeepRM(workload.cluster))
    total, schedule = play(policy, jobset, workload.cluster, get_objective("utilization"))
    [idle] = METRICS.get("idle").values(schedule)
    assert 0 < idle < 1
    assert total == pytest.approx(workload.window * (1 - idle), rel=1e-12)
    assert not METRICS.get("idle").higher_is_better


def test_every_objective_has_a_metric_of_its_name_and_an_identity() -> None:
    assert set(OBJECTIVES.names()) == set(IDENTITIES)
    for name in OBJECTIVES.names():
        assert get_objective(name).metric is METRICS.get(name)
