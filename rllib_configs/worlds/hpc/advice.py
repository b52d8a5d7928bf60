"""What a policy would start on a real machine now.

The simulator decides, so that a policy does at a site what it does in a study. A sequence of jobs
is made that leads to the present: at its beginning the jobs that run start, beside one that holds
all that is free; the others arrive as long ago as they really wait; then that one job ends. What
starts at this moment is the advice. Played on, the sequence says when the others would start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import LARGEST, JobSet
from cluster_env.core.policy import Policy, choose
from cluster_env.core.seeding import episode_keys, uniforms
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc.rules import (
    FIXED_ORDERS,
    MOVING_ORDERS,
    Rule,
    RulePolicy,
    address_of,
    moving_score,
)
from cluster_env.worlds.hpc.simulator import HPCSimulator
from cluster_env.worlds.hpc.world import HPC
from rllib_configs.snapshot import RESOURCES, Advice, Queue, SiteJob

MOST_DECISIONS = 2_000
"""Decisions of a policy that plays on, after which no more is said of when others would start."""

LEAST_LIMIT_S = 86_400  # what a job without a limit is believed to run at least
LONGEST_S = 10 * 365 * 86_400


def advise(world: HPC, make: Callable[[Any], Policy], queue: Queue) -> Advice:
    """What a policy would start now.

    Jobs without a limit are believed to run as long as the longest limit that was asked for, at
    least a day. What a policy sees of recent arrivals are the jobs that are there.

    Args:
        world: which resources count (`HPC.resources`), and how far a policy sees.
        make: makes the policy for a machine; its size is what is free and what is held.
        queue: the machine now.
    """
    machine = machine_of_queue(world, queue)
    here, running, waiting = machine.world, machine.running, machine.waiting
    if not waiting:
        return Advice((), {})
    policy = make(here)
    counted = machine.counted
    held, free = demand_of(running, counted), machine.free
    instant = _Instant(queue, running, waiting, held, free, counted)
    simulator = HPCSimulator(here)
    if isinstance(policy, RulePolicy):
        return _of_rule(policy.rule, here, simulator, instant)
    return _of_policy(policy, simulator, instant)


@dataclass(frozen=True)
class QueuedMachine:
    """A queue as a world sees it.

    Attributes:
        world: as large as what is free and what is held.
        running: jobs that hold something.
        waiting: those that the machine has room for at all, by arrival.
        counted: which of `RESOURCES` count.
        free: units of each of these, int64 ``(num_resources,)``.
    """

    world: HPC
    running: list[SiteJob]
    waiting: list[SiteJob]
    counted: list[int]
    free: NDArray[np.int64]


def machine_of_queue(world: HPC, queue: Queue) -> QueuedMachine:
    """The machine that a queue is of, where a world says what counts."""
    counted = [RESOURCES.index(name) for name in world.resources]
    free = np.array([queue.free[k] for k in counted], np.int64)
    running = [job for job in queue.running if job.processors > 0]
    capacity = free + demand_of(running, counted).sum(axis=0)
    possible = (
        job
        for job in queue.waiting  # those that the machine has room for at all
        if job.processors > 0
        and all(job.demand[k] <= units for k, units in zip(counted, capacity, strict=True))
    )
    waiting = sorted(possible, key=lambda job: (job.eligible, len(job.job), job.job))
    sizes: dict[str, Any] = {
        name: max(int(units), 1) for name, units in zip(world.resources, capacity, strict=True)
    }
    sizes["max_wait"] = queue.max_wait or world.max_wait
    sizes["site"] = None  # what a site refuses is kept away from its policy
    here = replace(
        world, **sizes, max_time=LARGEST, time_step=0, every_step=False, reward="at_start"
    )
    return QueuedMachine(here, running, waiting, counted, free)


class _Instant:
    """The sequence of jobs that leads to the present; those that wait come last in it."""

    def __init__(
        self,
        queue: Queue,
        running: Sequence[SiteJob],
        waiting: Sequence[SiteJob],
        held: NDArray[np.int64],
        free: NDArray[np.int64],
        counted: Sequence[int],
    ) -> None:
        jobs = [*running, *waiting]
        usual = max([LEAST_LIMIT_S, *(job.limit for job in jobs)])
        begun = min([queue.time, *(job.eligible for job in waiting)])
        self.now = min(queue.time - begun, LONGEST_S) + 1  # the clock of the sequence
        self.waiting = waiting
        self.time = queue.time
        self.limit = np.array([min(job.limit or usual, LONGEST_S) for job in waiting], np.int64)
        self.demand = demand_of(waiting, counted)
        left = [
            max(job.start + (job.limit or max(usual, queue.time - job.start)) - queue.time, 1)
            for job in running
        ]
        self.free = free
        first = [self.now] if free[0] > 0 else []  # else nothing can start, nor be held
        self.num_before = len(running) + len(first)
        self._duration = np.array([*first, *(self.now + min(s, LONGEST_S) for s in left)])
        self._held = np.vstack([free, held]) if first else held
        known = [min(job.limit or usual, LONGEST_S) for job in running]
        self._known = np.array([*([int(np.median(self.limit))] if first else []), *known])
        waited = [min(queue.time - job.eligible, self.now - 1) for job in waiting]
        self.arrival = self.now - np.maximum(waited, 0)

    def jobset(self) -> JobSet:
        """The sequence."""
        nothing = np.zeros(self.num_before, np.int64)
        lasting = np.concatenate([self._duration, self.limit])
        return JobSet.of(
            np.concatenate([nothing, self.arrival]),
            lasting,
            np.vstack([self._held, self.demand]),
            attributes={
                "estimate": lasting,
                "order_estimate": np.concatenate([self._known, self.limit]),
                "reserve_estimate": lasting,
            },
        )

    def advice(
        self, start: NDArray[np.int64], order: Sequence[int], scores: NDArray[np.float64] | None
    ) -> Advice:
        """From when those that wait start, -1 for never, on the clock of the sequence."""
        names = [job.job for job in self.waiting]
        planned = {
            name: self.time + int(begin - self.now)
            for name, begin in zip(names, start, strict=True)
            if begin > self.now
        }
        known = {} if scores is None else dict(zip(names, map(float, scores), strict=True))
        return Advice(tuple(names[k] for k in order), planned, known)


def _of_rule(rule: Rule, world: HPC, simulator: HPCSimulator, instant: _Instant) -> Advice:
    """A rule sees the whole queue, and plays on by itself."""
    simulator.load([instant.jobset()], get_objective("bounded_slowdown"))
    simulator.play(rule)
    start = _starts(simulator, instant)
    scores = _scores(rule, world, instant)
    ranks = np.arange(start.size) if scores is None else np.argsort(scores, kind="stable")
    return instant.advice(start, [int(k) for k in ranks if start[k] == instant.now], scores)


def _of_policy(policy: Policy, simulator: HPCSimulator, instant: _Instant) -> Advice:
    """Any other policy decides one by one on the jobs that it sees."""
    simulator.load([instant.jobset()], get_objective("bounded_slowdown"))
    row, rewards = np.zeros(1, np.int32), np.zeros(1)
    for _ in range(instant.num_before):
        simulator.step(row, row, rewards)
    keys = episode_keys(0, count=1)
    order: list[Any] = []
    for decision in range(MOST_DECISIONS):
        if not simulator.active[0]:
            break
        before = int(simulator.time[0])
        actions = choose(policy, simulator, row, uniforms(keys, decision))
        simulator.step(row, actions.astype(np.int32), rewards)
        if before == instant.now:
            start = _starts(simulator, instant)
            order += [k for k in np.flatnonzero(start == instant.now) if k not in order]
    return instant.advice(_starts(simulator, instant), [int(k) for k in order], None)


def _starts(simulator: HPCSimulator, instant: _Instant) -> NDArray[np.int64]:
    """When those that wait have started, -1 for not yet."""
    schedule = simulator.schedule()
    start = np.full(len(instant.waiting), -1, np.int64)
    chosen = schedule.job >= instant.num_before
    start[schedule.job[chosen] - instant.num_before] = schedule.start[chosen]
    return start


def _scores(rule: Rule, world: HPC, instant: _Instant) -> NDArray[np.float64] | None:
    """What the order says of each job that waits; nothing if it is chance."""
    size = instant.demand[:, 0].astype(np.float64)
    limit = instant.limit.astype(np.float64)
    arrival = instant.arrival
    if rule.order in FIXED_ORDERS:
        return FIXED_ORDERS[rule.order](limit, size, arrival.astype(np.float64))
    if rule.order not in MOVING_ORDERS:
        return None
    capacity = np.asarray(world.capacity, np.int64)
    weights = np.array([rule.weights.age, rule.weights.size, rule.weights.fair_share])
    free = instant.free
    score = getattr(moving_score, "py_func", moving_score)
    return np.array(
        [
            score(
                MOVING_ORDERS[rule.order],
                int(instant.now - arrival[k]),
                int(limit[k]),
                instant.demand[k],
                free,
                capacity,
                weights,
                1.0,
                address_of(rule.order),
            )
            for k in range(size.size)
        ]
    )


def demand_of(jobs: Sequence[SiteJob], counted: Sequence[int]) -> NDArray[np.int64]:
    """What jobs ask for of each resource that counts, int64 ``(num_jobs, num_resources)``."""
    rows = [[job.demand[k] for k in counted] for job in jobs]
    return np.array(rows, np.int64).reshape(len(rows), len(counted))
