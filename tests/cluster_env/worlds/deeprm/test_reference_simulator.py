"""The compiled simulator against a slow one that is written from the paper alone."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from tests.cluster_env.worlds.stepping import step_all

CLASS_WEIGHTS = tuple((7 * c % 5) / 2 for c in range(16))
BY_CLASS = f"class_slowdown({', '.join(map(str, CLASS_WEIGHTS))})"
OBJECTIVES = (
    "slowdown",
    "completion_time",
    "makespan",
    "utilization",
    "bounded_slowdown",
    "weighted_completion_time",
    "duration_weighted_completion_time",
    "fair_slowdown",
    BY_CLASS,
)
# Areas are thousands of units times steps, and so much larger is their rounding error.
TOLERANCE = {name: 1e-9 if name == "weighted_completion_time" else 1e-12 for name in OBJECTIVES}


@dataclass
class Reference:
    """One episode of DeepRM's model, section 3: lists and loops, nothing else.

    The state is the clock, the start of each placed job, and the queue; all the rest is computed
    from these anew whenever it is asked for.
    """

    cluster: Cluster
    jobset: JobSet
    max_time: int
    clock: int = 0
    starts: dict[int, int] = field(default_factory=dict)
    slots: list[int | None] = field(default_factory=list)
    backlog: list[int] = field(default_factory=list)
    arrived: int = 0
    last_arrival: int = 0
    ended: bool = False

    def __post_init__(self) -> None:
        self.slots = [None] * self.cluster.num_slots
        self._arrive()

    def finish(self, job: int) -> int:
        return self.starts[job] + int(self.jobset.duration[job])

    def in_use(self, time: int, resource: int) -> int:
        return sum(
            int(self.jobset.demand[job, resource])
            for job, start in self.starts.items()
            if start <= time < self.finish(job)
        )

    def waiting(self) -> list[int]:
        return [job for job in self.slots if job is not None] + self.backlog

    def in_system(self) -> list[int]:
        return [job for job in self.starts if self.finish(job) > self.clock] + self.waiting()

    def age(self, job: int) -> int:
        return self.clock - int(self.jobset.arrival[job])

    def bounded(self, job: int) -> float:
        """How much the bounded slowdown of a job, 10 steps or more, grows in this step."""
        bound = max(10, int(self.jobset.duration[job]))
        return 1 / bound if self.age(job) >= bound else 0.0

    def fair(self, job: int) -> float:
        """How much the slowdown of a job grows, five times as fast for a large one above 3."""
        duration = int(self.jobset.duration[job])
        return (5 if duration > 5 and self.age(job) >= 3 * duration else 1) / duration

    def by_class(self, job: int) -> float:
        return CLASS_WEIGHTS[int(self.jobset.job_class[job])] / int(self.jobset.duration[job])

    def area(self, job: int) -> float:
        demand = self.jobset.demand[job].tolist()
        return int(self.jobset.duration[job]) * sum(demand) / len(demand)

    def step(self, action: int) -> dict[str, float]:
        """Returns the reward of every objective."""
        if self._place(action):
            return dict.fromkeys(OBJECTIVES, 0.0)
        inside = self.clock < self.jobset.window
        shares = [
            self.in_use(self.clock, r) / units for r, units in enumerate(self.cluster.capacity)
        ]
        left = len(self.in_system()) + self.jobset.num_jobs - self.arrived
        rewards = {
            "slowdown": -math.fsum(1 / int(self.jobset.duration[job]) for job in self.in_system()),
            "completion_time": -float(len(self.in_system())),
            "makespan": -float(left > 0),
            "utilization": sum(shares) / len(shares) if inside else 0.0,
            "bounded_slowdown": -math.fsum(map(self.bounded, self.in_system())),
            "weighted_completion_time": -math.fsum(map(self.area, self.in_system())),
            "duration_weighted_completion_time": -float(
                sum(int(self.jobset.duration[job]) for job in self.in_system())
            ),
            "fair_slowdown": -math.fsum(map(self.fair, self.in_system())),
            BY_CLASS: -math.fsum(map(self.by_class, self.in_system())),
        }
        self.clock += 1
        if (
            self.clock >= self.jobset.window and not self.in_system()
        ) or self.clock > self.max_time:
            self.ended = True
        else:
            self._arrive()
        return rewards

    def state(self) -> list[int]:
        cluster = self.cluster
        occupied = [
            self.in_use(self.clock + step, r)
            for step in range(cluster.horizon)
            for r in range(cluster.num_resources)
        ]
        slots: list[int] = []
        for job in self.slots:
            demand = (
                [0] * cluster.num_resources if job is None else self.jobset.demand[job].tolist()
            )
            slots += [0 if job is None else int(self.jobset.duration[job]), *demand]
        since = self.clock - self.last_arrival
        waited = [
            0 if job is None else min(self.clock - int(self.jobset.arrival[job]), 255)
            for job in self.slots
        ]
        classes = [0 if job is None else int(self.jobset.job_class[job]) for job in self.slots]
        ends = [min(self.jobset.window, 255)]
        state = [*occupied, *slots, min(len(self.backlog), 255), min(since, 255), *waited, *ends]
        return state + classes if cluster.num_classes > 1 else state

    def _arrive(self) -> None:
        for job in np.flatnonzero(self.jobset.arrival == self.clock).tolist():
            self.arrived += 1
            self.last_arrival = self.clock
            if None in self.slots:
                self.slots[self.slots.index(None)] = job
            else:
                self.backlog.append(job)

    def _fits(self, job: int, start: int) -> bool:
        return all(
            self.in_use(time, r) + int(self.jobset.demand[job, r]) <= units
            for time in range(start, start + int(self.jobset.duration[job]))
            for r, units in enumerate(self.cluster.capacity)
        )

    def _place(self, action: int) -> bool:
        job = self.slots[action] if 0 <= action < self.cluster.num_slots else None
        if job is None:
            return False
        last = self.clock + self.cluster.horizon - int(self.jobset.duration[job])
        for start in range(self.clock, last + 1):
            if self._fits(job, start):
                self.starts[job] = start
                self.slots[action] = self.backlog.pop(0) if self.backlog else None
                return True
        return False


CLUSTERS = (
    Cluster(),
    Cluster(capacity=(1,), horizon=1, num_slots=1, backlog_view=0),
    Cluster(capacity=(4,), horizon=6, num_slots=2, backlog_view=3),
    Cluster(capacity=(7, 3, 5), horizon=9, num_slots=4, backlog_view=5),
    Cluster(capacity=(255, 2), horizon=30, num_slots=3, backlog_view=2),
    Cluster(capacity=(3, 4), horizon=5, num_slots=3, backlog_view=4, num_classes=3),
    Cluster(capacity=(9,), horizon=7, num_slots=1, backlog_view=2, num_classes=16),
)


def random_jobset(rng: np.random.Generator, cluster: Cluster, window: int, at_most: int) -> JobSet:
    """Jobs of any size that the cluster can run, several of them at one instant."""
    count = int(rng.integers(at_most + 1))
    arrival = np.sort(rng.integers(window, size=count))
    duration = rng.integers(1, cluster.horizon, size=count, endpoint=True)
    demand = rng.integers(0, cluster.capacity, size=(count, cluster.num_resources), endpoint=True)
    empty = demand.max(axis=1, initial=0) == 0
    demand[empty, 0] = 1
    job_class = rng.integers(cluster.num_classes, size=count)
    return JobSet.of(arrival, duration, demand, window, job_class)


def random_actions(rng: np.random.Generator, cluster: Cluster, busy: float) -> NDArray[np.int32]:
    """Mostly slots, sometimes void, sometimes numbers that mean nothing."""
    slots = rng.integers(cluster.num_slots, size=4000)
    others = rng.integers(-2, cluster.num_actions + 2, size=4000)
    return np.where(rng.random(4000) < busy, slots, others).astype(np.int32)


def play(cluster: Cluster, jobset: JobSet, actions: NDArray[np.int32], max_time: int) -> None:
    """Drives both simulators through one episode and compares all that can be seen."""
    compiled = {name: DeepRM(cluster, max_time=max_time).simulator() for name in OBJECTIVES}
    for name, simulator in compiled.items():
        simulator.load([jobset], get_objective(name))
    reference = Reference(cluster, jobset, max_time)
    first = compiled["slowdown"]
    for k, action in enumerate(actions):
        assert first.states[0].tolist() == reference.state(), k
        assert first.time[0] == reference.clock
        expected = reference.step(int(action))
        for name, simulator in compiled.items():
            rewards, ended = step_all(simulator, np.array([action], np.int32))
            assert abs(rewards[0] - expected[name]) <= TOLERANCE[name], (k, name)
            assert ended[0] == reference.ended, (k, name)
        if reference.ended:
            break
    assert reference.ended
    schedule = first.schedule()
    assert schedule.job.tolist() == list(range(reference.arrived))
    assert schedule.start.tolist() == [reference.starts.get(j, -1) for j in schedule.job.tolist()]
    assert schedule.end.tolist() == [reference.clock]
    check_schedule(schedule, [jobset], complete_until=max_time)


@given(
    shape=st.integers(0, len(CLUSTERS) - 1),
    window=st.integers(1, 12),
    at_most=st.integers(0, 25),
    busy=st.sampled_from([0.0, 0.5, 0.95]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_step_is_that_of_the_reference(
    shape: int, window: int, at_most: int, busy: float, seed: int
) -> None:
    rng, cluster = np.random.default_rng(seed), CLUSTERS[shape]
    jobset = random_jobset(rng, cluster, window, at_most)
    play(cluster, jobset, random_actions(rng, cluster, busy), max_time=window + 60)


def test_reference_agrees_with_a_schedule_worked_by_hand() -> None:
    # Two units. Job 0 (3 steps, both units) runs 0-3; job 1 (1 step) is booked behind it, at 3;
    # job 2 (2 steps) is booked beside job 1.
    cluster = Cluster(capacity=(2,), horizon=6, num_slots=2, backlog_view=0)
    jobset = JobSet.of([0, 0, 0], [3, 1, 2], [[2], [1], [1]], window=1)
    reference = Reference(cluster, jobset, max_time=50)
    rewards = [reference.step(action)["slowdown"] for action in (0, 1, 0, 2, 2, 2, 2, 2)]
    assert reference.starts == {0: 0, 1: 3, 2: 3}
    assert reference.ended
    assert reference.clock == 5
    assert rewards[:3] == [0.0, 0.0, 0.0]
    assert sum(rewards) == pytest.approx(-(3 / 3 + 4 / 1 + 5 / 2))
    play(cluster, jobset, np.array([0, 1, 0, 2, 2, 2, 2, 2], np.int32), max_time=50)
