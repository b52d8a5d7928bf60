"""Decisions one by one at a site: they give what is played, and one node gives the pool."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Outage, Site
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, Rule
from cluster_env.worlds.hpc.scorer import MODES, SIZE, Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, played, small_jobsets
from tests.cluster_env.worlds.hpc.site.small_sites import jobs_of, sites
from tests.cluster_env.worlds.hpc.site.test_pool import wide, with_site
from tests.cluster_env.worlds.stepping import play_to_the_end

ORDERS = ("fcfs", "saf", "wfp3", "tetris", "priority")
POOL = HPC(processors=PROCESSORS, queue=16, memory=20, gpus=4)
OBJECTIVES = ("slowdown", "bounded_slowdown", "completion_time", "makespan", "utilization")


@st.composite
def worlds(draw) -> tuple[HPC, JobSet]:
    """A site with limits and a calendar, a model of run times, and jobs that follow others."""
    site = draw(sites(more=True, limits=True, calendar=True))
    bound, run_times = draw(
        st.sampled_from([(0, "user"), (3, "user"), (0, "recent"), (0, "mixed")])
    )
    world = HPC(site=site, queue=64, max_wait=bound, run_times=run_times)
    return world, draw(jobs_of(site, follow=True))


def stepped(world: HPC, jobset: JobSet, rule: Rule | Scorer, objective: str = "slowdown"):
    """The schedule of decisions one by one, and the sum of their rewards."""
    simulator = world.simulator()
    simulator.load([jobset], get_objective(objective))
    rewards = play_to_the_end(simulator, lambda rows: simulator.choose(rule, rows))
    return simulator.schedule(), rewards


def assert_played(world: HPC, jobset: JobSet, rule: Rule | Scorer) -> None:
    one_by_one, whole = stepped(world, jobset, rule)[0], played(world, [jobset], rule)
    for column in ("job", "arrival", "start", "finish", "end"):
        assert getattr(one_by_one, column).tolist() == getattr(whole, column).tolist()


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(case=worlds(), order=st.sampled_from(ORDERS))
@settings(max_examples=30)
def test_decisions_one_by_one_give_the_schedule_that_is_played(
    order: str, backfilling: str, case: tuple[HPC, JobSet]
) -> None:
    assert_played(*case, Rule(order, backfilling))


@pytest.mark.parametrize("mode", MODES)
@given(case=worlds(), seed=st.integers(0, 99))
@settings(max_examples=12)
def test_decisions_of_scorers_give_the_schedule_that_is_played(
    mode: str, case: tuple[HPC, JobSet], seed: int
) -> None:
    weights = np.random.default_rng(seed).standard_normal((SIZE, SIZE))
    assert_played(*case, Scorer(weights, mode))


@given(
    jobset=small_jobsets(corrected=True),
    max_wait=st.sampled_from([0, 3]),
    horizon=st.sampled_from([0, 4]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_a_site_of_one_node_decides_and_rewards_as_the_pool(
    jobset: JobSet, max_wait: int, horizon: int, seed: int
) -> None:
    """Random actions: states, features and rewards are the same, to the last bit."""
    memory = seed % 2
    pool = replace(POOL, max_wait=max_wait, horizon=horizon)
    if not memory:
        pool = replace(pool, memory=0, gpus=0)
    world_names = pool.feature_names[0]
    jobs, rng = [wide(jobset, seed) if memory else jobset] * 2, np.random.default_rng(seed)
    here, there = with_site(pool).simulator(), pool.simulator()
    for simulator in (here, there):
        simulator.load(jobs, get_objective("bounded_slowdown"))
    while there.active.any():
        same = [(one.world.layout, one.states) for one in (here, there)]
        (mine, states), (theirs, others) = same
        assert states[:, : mine.jobs_at].tolist() == others[:, : theirs.jobs_at].tolist()
        width = theirs.job_size
        assert mine.jobs(states)[:, :, :width].tolist() == theirs.jobs(others).tolist()
        assert states[:, mine.clock_at :].tolist() == others[:, theirs.clock_at :].tolist()
        seen = [one.world.features(one.states) for one in (here, there)]
        # A pool's flag of backfilling looks at processors alone.
        backfills = world_names.index("backfills")
        for one in seen:
            one.items[:, :, backfills] *= not memory
        for part in ("items", "context"):
            assert np.array_equal(*(getattr(one, part) for one in seen))
        ours, allowed = (one.allowed for one in seen)
        assert ours[:, :-1].tolist() == allowed[:, :-1].tolist()
        # At a site an empty machine may wait, too: for a reservation, or the end of an outage.
        assert ours[:, -1].all()
        rows = np.flatnonzero(there.active).astype(np.int32)
        actions = np.array([rng.choice(np.flatnonzero(allowed[row])) for row in rows], np.int32)
        rewards = [np.zeros(rows.size) for _ in same]
        left = [one.step(rows, actions, r) for one, r in zip((here, there), rewards, strict=True)]
        assert left[0] == left[1]
        assert rewards[0].tolist() == rewards[1].tolist()


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(case=worlds())
@settings(max_examples=12)
def test_what_is_not_rewarded_is_what_the_schedule_costs(
    objective: str, case: tuple[HPC, JobSet]
) -> None:
    """Also where nodes fail, and runs that are cut short begin anew."""
    world, jobset = case
    world = replace(world, site=replace(world.site, when_node_fails="requeue"))
    schedule, rewards = stepped(world, jobset, Rule("saf", "easy"), objective)
    if objective == "makespan" and schedule.job.size < jobset.num_jobs:
        return  # the clock also runs to the arrival of a job that never enters the queue
    if (schedule.start < 0).all():
        return  # nobody was asked, so that nothing can be charged
    cost = get_objective(objective).cost_of_episodes(schedule)
    assert rewards == pytest.approx(-cost, rel=1e-9, abs=1e-9)


@given(case=worlds(), steps=st.integers(0, 20))
@settings(max_examples=40)
def test_an_episode_that_is_taken_over_goes_on_as_the_first(
    case: tuple[HPC, JobSet], steps: int
) -> None:
    """Into another simulator, in which other jobsets number sets and counters otherwise."""
    world, jobset = case
    first, second = world.simulator(), world.simulator()
    first.load([jobset], get_objective("slowdown"))
    half = jobset.select(slice(0, max(1, jobset.num_jobs // 2)))
    second.load([half, jobset], get_objective("slowdown"))
    rule, row, reward = Rule("saf", "easy"), np.zeros(1, np.int32), np.zeros(1)
    for _ in range(steps):
        if first.active[0]:
            first.step(row, first.choose(rule, row), reward)
    second.take_over(first, row, row + 1)
    assert np.array_equal(second.states[1], first.states[0])
    while first.active[0]:
        actions = [one.choose(rule, row + k) for k, one in enumerate((first, second))]
        assert actions[0] == actions[1]
        first.step(row, actions[0], reward)
        second.step(row + 1, actions[1], reward)
    assert not second.active[1]
    schedules = [one.schedule() for one in (first, second)]
    own = schedules[1].episode == 1
    assert schedules[0].start.tolist() == schedules[1].start[own].tolist()


def jobs(arrival: list[int], run: list[int], size: list[int]) -> JobSet:
    return JobSet.of(arrival, run, np.array(size)[:, None], attributes={"estimate": np.array(run)})


def act(world: HPC, jobset: JobSet, actions: list[int]) -> tuple[list[int], list[float]]:
    """When jobs start under these actions, and their rewards."""
    simulator, row, reward = world.simulator(), np.zeros(1, np.int32), np.zeros(1)
    simulator.load([jobset], get_objective("completion_time"))
    rewards = []
    for action in actions:
        simulator.step(row, np.array([action], np.int32), reward)
        rewards.append(float(reward[0]))
    assert not simulator.active[0]
    return simulator.schedule().start.tolist(), rewards


def test_runs_that_are_cut_short_are_paid_back() -> None:
    """The only node fails from 4 to 6: a job of 10 seconds begins again at 6, and ends at 16."""
    outage = Outage(4, 6, kind="failure")
    world = HPC(site=Site((NodeGroup("n", 1, 2),), calendar=(outage,)), queue=4)
    assert act(world, jobs([0], [10], [2]), [0, 0]) == ([6], [0.0, -16.0])


def test_nobody_starts_before_a_job_that_is_overdue() -> None:
    """On two nodes of 2, job 0 has one until 20, and job 1, which wants both, is overdue at 10.

    Then come two more: job 2 would end in time, and may start; job 3 would not, and waits.
    """
    world = HPC(site=Site((NodeGroup("n", 2, 2),)), queue=4, max_wait=5)
    jobset = jobs([0, 1, 10, 10], [20, 5, 10, 11], [2, 4, 2, 2])
    assert act(world, jobset, [0, 1, 2, 0])[0] == [0, 20, 10, 25]
    assert act(world, jobset, [0, 2, 2, 0, 0])[0] == [0, 20, 25, 25]


def test_a_look_at_the_states_leaves_what_was_played() -> None:
    """There is room for states once they are asked for, and then the episode is over."""
    simulator = HPC(site=Site((NodeGroup("n", 2, 2),)), queue=4).simulator()
    simulator.load([jobs([0, 1], [5, 5], [4, 4])], get_objective("slowdown"))
    simulator.play(Rule("fcfs", "easy"))
    assert not simulator.states.any()
    assert simulator.schedule().start.tolist() == [0, 5]
    simulator.reset()
    assert simulator.active.all()
    assert simulator.states.any()
    assert (simulator.schedule().start < 0).all()


@pytest.mark.parametrize("room", [1, 2])
def test_decisions_lose_no_booking_in_silence(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are overdue when another comes at 10, and both have to be booked."""
    num_nodes = 2
    monkeypatch.setattr("cluster_env.worlds.hpc.site.compiling._MOST_CHECKED", room * num_nodes)
    world = HPC(site=Site((NodeGroup("n", num_nodes, 2),)), queue=4, max_wait=5)
    jobset = jobs([0, 1, 2, 10], [20, 5, 5, 5], [2, 4, 4, 1])
    simulator, row, reward = world.simulator(), np.zeros(1, np.int32), np.zeros(1)
    simulator.load([jobset], get_objective("slowdown"))
    simulator.step(row, row, reward)
    if room == 1:
        with pytest.raises(InputError, match="can be booked ahead"):
            simulator.step(row, row, reward)
        return
    simulator.step(row, row, reward)
    assert simulator.time[0] == 20
