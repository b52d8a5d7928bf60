"""The world behind the seam: decisions, rewards, features, environments."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import get_heuristic
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC, state
from cluster_env.worlds.hpc.state import HEADER
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, small_jobsets
from tests.cluster_env.worlds.stepping import play_to_the_end, step_one

WORLD = HPC(PROCESSORS, queue=16)


def stepped(world: HPC, jobset: JobSet, choose, objective: str) -> tuple[Schedule, float]:
    """The schedule and the return of actions that are chosen."""
    simulator = world.simulator()
    simulator.load([jobset], get_objective(objective))
    [total] = play_to_the_end(simulator, partial(choose, simulator))
    return simulator.schedule(), total


OBJECTIVES = ("slowdown", "bounded_slowdown", "makespan", "utilization", "fair_slowdown")


@given(small_jobsets(), st.integers(0, 9), st.sampled_from(OBJECTIVES), st.integers(5, 80))
def test_returns_are_what_schedules_cost(
    jobset: JobSet, seed: int, objective: str, max_time: int
) -> None:
    """Also where an episode is cut."""
    world = HPC(PROCESSORS, queue=16, max_time=max_time)
    rng = np.random.default_rng(seed)

    def anything(simulator, rows):
        """Any action, allowed or not, and often none."""
        return rng.integers(-1, WORLD.num_actions + 3, rows.size).astype(np.int32)

    schedule, total = stepped(world, jobset, anything, objective)
    check_schedule(schedule, [jobset], complete_until=max_time - 1)
    cost = get_objective(objective).cost_of_episodes(schedule)[0]
    if objective == "makespan" and not schedule.finished.all():
        return  # a makespan of unfinished jobs is a lower bound
    assert total == pytest.approx(-cost, abs=1e-9)


@pytest.mark.parametrize("objective", ["completion_time", "slowdown"])
def test_jobs_that_are_killed_cost_what_their_schedule_says(objective: str) -> None:
    """Three jobs of 100 s that asked for 50 s, one after the other."""
    world = HPC(processors=10, queue=8, kill_at_estimate=True)
    jobset = jobset_of([0, 1, 2], [100] * 3, [50] * 3, [10] * 3)
    fcfs = get_heuristic("fcfs", world)
    schedule, total = stepped(
        world, jobset, lambda one, rows: one.choose(fcfs.rule, rows), objective
    )
    cost = get_objective(objective)
    assert total == pytest.approx(-cost.cost_of_episodes(schedule)[0], abs=1e-9)
    assert total == pytest.approx(-cost.metric.values(schedule).sum(), abs=1e-9)
    assert schedule.duration.tolist() == [50] * 3
    assert schedule.attributes["run_time"].tolist() == [100] * 3
    served = world.served(jobset)
    assert world.served(served) is served
    assert HPC(10).served(jobset) is jobset


def test_an_empty_machine_may_not_wait() -> None:
    simulator = WORLD.simulator()
    jobset = jobset_of([0, 0], [5, 5], [5, 5], [8, 8])
    simulator.load([jobset], get_objective("slowdown"))
    allowed = WORLD.features(simulator.states).allowed[0]
    assert np.flatnonzero(allowed).tolist() == [0, 1]
    step_one(simulator, WORLD.queue)
    assert simulator.schedule().start.tolist() == [0, -1]
    assert simulator.time.tolist() == [5]  # nothing could start before


def test_features_are_those_of_the_jobs_that_wait() -> None:
    simulator = WORLD.simulator()
    jobset = jobset_of([0, 3, 3], [10, 4, 9], [10, 4, 9], [6, 8, 2])
    simulator.load([jobset], get_objective("slowdown"))
    step_one(simulator, 0)
    items, context, _ = WORLD.features(simulator.states)
    names = dict(zip(WORLD.feature_names[0], items[0].T, strict=True))
    assert simulator.time.tolist() == [3]
    assert names["present"].tolist() == [1, 1] + [0] * 14
    assert names["size"][:2].tolist() == [1.0, 0.25]
    assert names["fits"][:2].tolist() == [0, 1]
    assert names["log_estimate"][1] == pytest.approx(np.log(9) / 12)
    assert names["backfills"][:2].tolist() == [0, 0]  # job 2 would end at 12, job 1 can start at 10
    shown = dict(zip(WORLD.feature_names[1], context[0], strict=True))
    assert shown["free_processors"] == 0.25
    assert shown["reservation"] == pytest.approx(np.log(1 + 7) / 12)


def test_a_policy_sees_corrected_estimates_and_reservations_that_are_raised() -> None:
    """Job 0 was to end at 3; at 4 that is past, and twice the time, 6, is expected.

    At 7 that is past, too, and its user's 10 seconds hold; job 2 needs all eight processors.
    """
    jobset = jobset_of(
        *([0, 1, 2, 4, 7], [12, 9, 5, 5, 5], [10, 9, 9, 9, 9], [6, 8, 2, 1, 1]),
        order_estimate=np.array([4, 8, 6, 5, 5]),
        reserve_estimate=np.array([3, 9, 9, 9, 9]),
    )
    simulator = WORLD.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    seen = []
    for action in (0, WORLD.queue, WORLD.queue):
        step_one(simulator, action)
        shown = dict(zip(HEADER, simulator.states[0], strict=False))
        seen.append((int(simulator.time[0]), shown["reservation"], shown["running_work"]))
    assert seen == [(2, 1, 1), (4, 2, 2), (7, 3, 2)]  # six of eight processors for 1, 2, 3 seconds
    jobs = simulator.states[0, WORLD.layout.jobs_at :].reshape(WORLD.queue, -1)
    assert jobs[:4, 0].tolist() == [8, 6, 5, 5]


def test_features_do_not_know_the_size_of_the_machine() -> None:
    small, large = HPC(64, queue=8), HPC(64_000, queue=8)
    jobs = [(10, 4), (30, 64), (7, 32)]
    seen = []
    for world, unit in ((small, 1), (large, 1000)):
        run, size = np.array(jobs).T
        simulator = world.simulator()
        simulator.load([jobset_of([0, 1, 2], run, run, size * unit)], get_objective("slowdown"))
        step_one(simulator, 0)
        seen.append(world.features(simulator.states))
    names = WORLD.feature_names[0]
    kept = [k for k, name in enumerate(names) if name != "log_size"]
    np.testing.assert_allclose(seen[0].items[:, :, kept], seen[1].items[:, :, kept], atol=2e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processors": 0}, "a machine needs 1 to"),
        ({"queue": 0}, "a queue of 1 to 4096 jobs"),
        ({"backfilling": "eazy"}, "did you mean 'easy'"),
        ({"gpus": -1}, "gpus must be 0"),
        ({"max_time": 0}, "max_time must be 1"),
    ],
)
def test_impossible_machines_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        HPC(**options)


def test_columns_of_states_are_called_as_they_are_listed() -> None:
    for names in (state.HEADER, state.JOB):
        assert [getattr(state, name.upper()) for name in names] == list(range(len(names)))


def test_jobs_that_cannot_run_are_refused() -> None:
    for size, words in ((9, "more than the machine has"), (0, "no processor")):
        demand = [[size, 1]]
        with pytest.raises(InputError, match=words):
            HPC(8, memory=4).check(jobset_of([0], [1], [1], demand))
    with pytest.raises(InputError, match="ask for processors and memory"):
        HPC(8, memory=4).check(jobset_of([0], [1], [1], [1]))
    with pytest.raises(InputError, match="estimates must be 1 to"):
        HPC(8).check(jobset_of([0], [1], [0], [1]))
