"""What a policy would start now is what it starts in the simulator at that moment."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from rllib_configs.snapshot import RUNNING, WAITING, Advice, Queue, SiteJob
from rllib_configs.worlds.hpc.advice import advise

WORLD = HPC(processors=16, memory=64, queue=32)
NOW = 1_800_000_000


def jobs(seed: int) -> JobSet:
    """A crowded machine, where run times are what was asked for."""
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(0, 300, 40))
    duration = rng.integers(1, 120, 40)
    demand = np.stack([rng.integers(1, 13, 40), rng.integers(0, 40, 40)], axis=1)
    return JobSet.of(arrival, duration, demand, attributes={"estimate": duration})


def queue_at(time: int, jobset: JobSet, start: np.ndarray) -> Queue:
    """The machine at a moment, before anybody has decided."""
    rows = [
        SiteJob(
            job=str(k),
            state=RUNNING if start[k] < time else WAITING,
            reason="",
            user="",
            partition="",
            eligible=NOW + int(jobset.arrival[k]),
            start=NOW + int(start[k]) if start[k] < time else 0,
            limit=int(jobset.duration[k]),
            processors=int(jobset.demand[k, 0]),
            memory=int(jobset.demand[k, 1]),
            gpus=0,
        )
        for k in range(jobset.num_jobs)
        if jobset.arrival[k] <= time and start[k] + jobset.duration[k] > time
    ]
    running = tuple(job for job in rows if job.state == RUNNING)
    held = np.array([job.demand for job in running] or [(0, 0, 0)]).sum(axis=0)
    free = (16 - int(held[0]), 64 - int(held[1]), 0)
    return Queue(NOW + time, free, running, tuple(job for job in rows if job.state == WAITING))


class Shortest:
    """No rule, but a policy that decides on states, as networks do: the shortest job that fits."""

    name = "one by one"

    def __init__(self, world: HPC) -> None:
        self._world = world

    def act(self, states, uniforms):
        items, _, allowed = self._world.features(states)
        estimate = items[:, :, self._world.feature_names[0].index("log_estimate")]
        shortest = np.where(allowed[:, :-1], estimate, np.inf).argmin(axis=1)
        return np.where(allowed[:, :-1].any(axis=1), shortest, self._world.queue).astype(np.int32)


@pytest.mark.parametrize("max_wait", [0, 60])
@pytest.mark.parametrize("spec", ["sjf:easy", "fcfs:easy", "saf:skip", "wfp3:strict", "one by one"])
def test_advice_is_what_the_simulator_does_at_each_event(spec, max_wait):
    jobset, world = jobs(seed=3), replace(WORLD, max_wait=max_wait)

    def make(world):
        return Shortest(world) if spec == Shortest.name else get_heuristic(spec, world)

    schedule = evaluate(make(world), [jobset], world)
    start = schedule.start[np.argsort(schedule.job)]
    advised = []
    for time in sorted({*start.tolist(), *jobset.arrival.tolist()}):
        queue = replace(queue_at(time, jobset, start), max_wait=max_wait)
        advised += [(int(job), time) for job in advise(WORLD, make, queue).starts]
    assert sorted(advised) == list(enumerate(start.tolist()))


def test_the_plan_says_when_the_others_start_if_nothing_else_comes():
    running = SiteJob("1", RUNNING, "", "", "", NOW - 50, NOW - 40, 100, 10, 0, 0)
    wide = SiteJob("2", WAITING, "", "", "", NOW - 30, 0, 50, 16, 0, 0)
    long = SiteJob("3", WAITING, "", "", "", NOW - 20, 0, 70, 6, 0, 0)
    short = SiteJob("4", WAITING, "", "", "", NOW - 10, 0, 60, 6, 0, 0)
    queue = Queue(NOW, (6, 64, 0), (running,), (short, long, wide))
    found = advise(WORLD, lambda world: get_heuristic("fcfs:easy", world), queue)
    assert found == Advice(("4",), {"2": NOW + 60, "3": NOW + 110}, {"2": 0.0, "3": 0.0, "4": 0.0})


def test_a_job_without_a_limit_is_believed_to_run_for_as_long_as_any():
    free, endless = (6, 64, 0), SiteJob("1", RUNNING, "", "", "", NOW - 50, NOW - 40, 0, 10, 0, 0)
    wide = SiteJob("2", WAITING, "", "", "", NOW - 30, 0, 3 * 86_400, 16, 0, 0)
    queue = Queue(NOW, free, (endless,), (wide,))
    found = advise(WORLD, lambda world: get_heuristic("fcfs:easy", world), queue)
    assert found.planned == {"2": NOW - 40 + 3 * 86_400}


def test_a_job_that_is_larger_than_the_machine_is_left_out():
    large = SiteJob("1", WAITING, "", "", "", NOW - 30, 0, 60, 17, 0, 0)
    small = replace(large, job="2", processors=1)
    queue = Queue(NOW, (16, 64, 0), (), (large, small))
    found = advise(WORLD, lambda world: get_heuristic("fcfs:strict", world), queue)
    assert (found.starts, dict(found.planned)) == (("2",), {})
