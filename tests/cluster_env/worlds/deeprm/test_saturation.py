"""What a state counts in one byte stops at 255, however long an episode runs."""

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from tests.cluster_env.worlds.stepping import step_one


def test_times_and_numbers_stop_at_what_a_byte_holds() -> None:
    cluster = Cluster(capacity=(2,), horizon=3, num_slots=1, backlog_view=3)
    jobset = JobSet.of([0] * 300, [1] * 300, [[1]] * 300, window=1000)
    simulator = DeepRM(cluster, max_time=2000).simulator()
    simulator.load([jobset], get_objective("slowdown"))
    layout = simulator.layout
    (waited_at,) = range(layout.size)[layout.waited]
    for time in range(600):
        state = simulator.states[0]
        assert simulator.time[0] == time
        assert state[layout.since] == min(time, 255)
        assert state[waited_at] == min(time, 255)
        step_one(simulator, 1)
    assert simulator.states[0, layout.backlog] == 255
    assert simulator.states[0, layout.window] == 255

    # A job that comes from the backlog into a slot has waited since it arrived, too.
    step_one(simulator, 0)
    assert simulator.states[0, waited_at] == 255
    for _ in range(298):
        step_one(simulator, 0)
    assert simulator.states[0, layout.backlog] < 255


def test_of_jobs_that_wait_for_long_each_keeps_behind_those_that_came_before() -> None:
    """Three slots, arrivals at 0, 3 twice, and 7, and nothing starts before step 300."""
    cluster = Cluster(capacity=(2,), horizon=3, num_slots=3, backlog_view=3)
    jobset = JobSet.of([0, 3, 3, 7], [1] * 4, [[1]] * 4, window=8)
    simulator = DeepRM(cluster, max_time=2000).simulator()
    simulator.load([jobset], get_objective("slowdown"))
    shown = simulator.states[0, simulator.layout.waited]
    for time in range(300):
        arrived = [time >= 0, time >= 3, time >= 3]
        expected = [min(time, 255), min(time - 3, 254), min(time - 3, 254)]
        assert shown.tolist() == [w if a else 0 for a, w in zip(arrived, expected, strict=True)]
        step_one(simulator, 3)
    step_one(simulator, 0)  # the first starts, and the fourth takes its slot
    assert shown.tolist() == [253, 255, 255]
    step_one(simulator, 1)
    assert shown.tolist() == [254, 0, 255]
