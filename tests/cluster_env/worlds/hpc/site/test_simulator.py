"""What the simulator of a site hands out: many episodes, clocks of logs, costs and refusals."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation.rollouts import evaluate
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Outage, Partition, Site
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.play import play
from cluster_env.worlds.hpc.rules import Rule
from cluster_env.worlds.hpc.scorer import Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import played

SITE = Site((NodeGroup("n", 2, 4),), (Partition("a", ("n1",)), Partition("b")))


def many_jobs(seed: int, **attributes) -> JobSet:
    rng, count = np.random.default_rng(seed), 60
    run = rng.integers(1, 30, count)
    columns = {"estimate": run + rng.integers(0, 20, count), **attributes}
    columns["partition"] = rng.integers(0, 2, count)
    arrival = np.cumsum(rng.integers(0, 9, count))
    return JobSet.of(arrival, run, rng.integers(1, 5, (count, 1)), attributes=columns)


def test_episodes_and_jobsets_are_played_one_by_one() -> None:
    """Two jobsets, of which each runs twice, come out as each does alone; nothing is left over."""
    jobsets, world = [many_jobs(0), many_jobs(1)], HPC(site=SITE)
    simulator = world.simulator()
    simulator.load(jobsets, get_objective("bounded_slowdown"), episodes_per_jobset=2)
    kernels = set()
    for rule in (Rule("saf", "strict"), Rule("saf", "easy")):
        simulator.reset()
        assert simulator.active.all()
        assert not simulator.schedule().job.size
        simulator.play(rule)
        schedule = simulator.schedule()
        check_schedule(schedule, jobsets, complete_until=world.max_time)
        alone = [played(world, [one], rule).start.tolist() for one in jobsets]
        assert schedule.start.tolist() == [*alone[0], *alone[0], *alone[1], *alone[1]]
        kernels.add(len(play.signatures))
    assert len(kernels) == 1


@pytest.mark.parametrize(
    ("world", "count"),
    [(HPC(site=Site((NodeGroup("n", 200, 4),))), 6000), (HPC(processors=800), 30_000)],
    ids=["site", "pool"],
)
def test_a_long_replay_heeds_signals(world: HPC, count: int) -> None:
    """Estimates that never hold make a plan of a long queue again and again, for many seconds."""
    rng = np.random.default_rng(0)
    run = rng.integers(50, 100, count)
    jobset = JobSet.of(
        np.arange(count), run, rng.integers(1, 200, (count, 1)), attributes={"estimate": run + 50}
    )
    few, rule = jobset.select(slice(50)), Rule("fcfs", "conservative")
    expected = played(world, [few], rule).start.tolist()  # and nothing is left to be compiled

    def stop(number: int, frame: object) -> None:
        raise InterruptedError

    simulator = world.simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    before, begin = signal.signal(signal.SIGTERM, stop), time.process_time()
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    try:
        timer.start()
        with pytest.raises(InterruptedError):
            simulator.play(rule)
    finally:
        timer.join()
        signal.signal(signal.SIGTERM, before)
    assert time.process_time() - begin < 0.5 + 2  # of the processor: others may hold it, too
    # The next one begins anew.
    simulator.load([few], get_objective("bounded_slowdown"))
    simulator.play(rule)
    assert simulator.schedule().start.tolist() == expected


def test_the_calendar_goes_by_the_clock_of_the_log() -> None:
    """A window that begins at 1,000 of the log meets the outage of 1,010 at its 10th second."""
    site = replace(SITE, calendar=(Outage(1010, 1020, ("n1",)),))
    jobset = JobSet.of([0, 0], [5, 12], [[4], [4]], attributes={"submit": np.array([1000, 1000])})
    jobset = replace(jobset, attributes={**jobset.attributes, "partition": np.zeros(2, int)})
    assert played(HPC(site=site), [jobset], Rule()).start.tolist() == [0, 20]


def test_an_episode_is_cut_at_its_longest_time() -> None:
    jobset = JobSet.of([0, 1, 50], [10, 20, 5], [[4], [4], [4]])
    world = HPC(site=Site((NodeGroup("n", 1, 4),)), max_time=25)
    schedule = played(world, [jobset], Rule())
    assert schedule.start.tolist() == [0, 10]
    assert schedule.finish.tolist() == [10, -1]
    assert schedule.end.tolist() == [25]


def test_costs_are_those_of_jobs_in_the_order_in_which_they_came() -> None:
    """Job 1 follows job 2 in a closed loop, and comes at 12: waits are 0, 0 and 0, turnarounds
    4, 6 and 3."""
    jobset = JobSet.of(
        [0, 5, 9],
        [4, 6, 3],
        [[1], [1], [1]],
        attributes={
            "job_id": np.array([1, 2, 3]),
            "after": np.array([-1, 3, -1]),
            "think_s": np.zeros(3, int),
        },
    )
    schedule = played(HPC(site=SITE), [jobset], Rule())
    assert schedule.arrival.tolist() == [0, 12, 9]
    cost = get_objective("completion_time").cost_of_jobs(schedule)
    assert cost.tolist() == [4, 6, 3]
    cost = get_objective("slowdown").cost_of_episodes(schedule)
    assert cost == pytest.approx([3.0])


def test_rules_are_evaluated_at_a_site() -> None:
    world = HPC(site=SITE)
    results = evaluate(get_heuristic("saf:easy", world), [many_jobs(0)], world)
    assert results.start.tolist() == played(world, [many_jobs(0)], Rule("saf")).start.tolist()


def test_a_scorer_plays_at_a_site() -> None:
    simulator = HPC(site=SITE).simulator()
    simulator.load([many_jobs(0)], get_objective("bounded_slowdown"))
    simulator.play(Scorer.linear("easy", log_estimate=1.0))
    assert simulator.schedule().finished.all()
