"""The return of an objective is its metric: exactly, for episodes that finish all jobs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import episode_keys, uniforms
from cluster_env.evaluation import METRICS
from cluster_env.objectives import OBJECTIVES, Objective, get_objective
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.stepping import step_all

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


@given(seed=st.integers(0, 2**31), heuristic=st.sampled_from(HEURISTICS))
def test_return_is_the_metric(seed: int, heuristic: str) -> None:
    """Durations and capacities whose reciprocals have no rounding leave nothing to tolerate."""
    rng = np.random.default_rng(seed)
    cluster = Cluster(capacity=(8, 4), horizon=16, num_slots=4)
    count = int(rng.integers(1, 30))
    jobset = JobSet.of(
        np.sort(rng.integers(16, size=count)),
        2 ** rng.integers(0, 4, size=count, endpoint=True),
        rng.integers(1, cluster.capacity, size=(count, 2), endpoint=True),
        window=16,
    )
    policy = get_heuristic(heuristic, DeepRM(cluster))
    for name in IDENTITIES:
        total, schedule = play(policy, jobset, cluster, get_objective(name))
        assert schedule.finished.all()
        rounding = 1e-12 if name in NOT_EXACT else 0
        assert total == pytest.approx(expected(name, schedule), rel=rounding, abs=0), name


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
