"""A second world: one machine, jobs with weights, all there at time 0 (1 || sum w_j C_j).

The best order is known: weight over duration (Smith, 1956). All that a world needs is in this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule, schedule_of_starts
from cluster_env.core.spec import WORLDS, Axis, Heuristic, WorkloadSpec, WorldSpec
from cluster_env.core.world import Features
from cluster_env.objectives import OBJECTIVES, Objective

LARGEST = 20  # duration and weight

OBJECTIVES.register("weighted_flow")(Objective("weighted_flow", lambda j: j.attributes["weight"]))


@dataclass(frozen=True)
class SingleMachine:
    """One machine that runs a job to its end. An action is a job; time passes until it is done."""

    kind: ClassVar[str] = "single_machine"
    num_jobs: int = 8

    @property
    def state_space(self) -> spaces.Box:
        return spaces.Box(0, LARGEST, (2 * self.num_jobs,), np.int32)

    @property
    def num_actions(self) -> int:
        return self.num_jobs + 1

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return ("present", "duration", "weight"), ("jobs_left",)

    def check(self, jobset: JobSet) -> None:
        if jobset.num_jobs != self.num_jobs or jobset.arrival.any():
            raise InputError(f"this machine takes {self.num_jobs} jobs, all at time 0")

    def simulator(self) -> "Machine":
        return Machine(self)

    def features(self, states: NDArray[Any], out: Features | None = None) -> Features:
        present = states[:, : self.num_jobs] > 0
        logs = np.log(np.maximum(np.split(states, 2, axis=1), 1)) / np.log(LARGEST)
        items = (np.stack([present, *logs], axis=2) * present[:, :, None]).astype(np.float32)
        context = present.mean(axis=1, keepdims=True).astype(np.float32)
        found = Features(items, context, np.column_stack([present, ~present.any(axis=1)]))
        for own, given in zip(found, out or (), strict=False):
            given[:] = own
        return found


class Machine:
    """The simulator of `SingleMachine`; a decision without a job takes the first that is left."""

    def __init__(self, world: SingleMachine) -> None:
        self._world, self._num_jobs = world, world.num_jobs

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        for jobset in jobsets:
            self._world.check(jobset)
        each = np.repeat(np.arange(len(jobsets), dtype=np.int32), episodes_per_jobset)
        self._jobsets, self._jobset, self.num_rows = jobsets, each, each.size
        self._duration = np.stack([jobset.duration for jobset in jobsets])[each]
        weight = np.stack([jobset.attributes["weight"] for jobset in jobsets])[each]
        self._first = np.hstack([self._duration, weight])
        self._cost = np.stack([objective.job_cost(jobset) for jobset in jobsets])[each]
        self.episode = np.arange(self.num_rows, dtype=np.int32)
        self.states = self._first.astype(np.int32)
        self.time, (self.active, self.truncated) = each * 0, np.zeros((2, each.size), np.bool_)
        self._start = np.full((self.num_rows, self._num_jobs), -1, np.int32)
        self.reset()

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        rows = self.episode if rows is None else rows
        self.states[rows] = self._first[rows]
        self.time[rows], self._start[rows], self.active[rows] = 0, -1, True

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        rewards[: rows.size] = 0
        for k, (row, action) in enumerate(zip(rows, actions, strict=True)):
            left = np.flatnonzero(self.states[row, : self._num_jobs])
            if left.size:
                job = action if action in left else left[0]
                self._start[row, job] = self.time[row]
                self.time[row] += self._duration[row, job]
                rewards[k] = -self._cost[row, left].sum() * self._duration[row, job]
                self.states[row, [job, self._num_jobs + job]] = 0
            self.active[row] = left.size > 1
        return int(self.active[rows].sum())

    def take_over(self, other: Any, source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
        for name in ("states", "time", "active", "_start"):
            getattr(self, name)[target] = getattr(other, name)[source]

    def schedule(self) -> Schedule:
        return schedule_of_starts(self._jobsets, self._jobset, self._start, self.time, [1])


@dataclass(frozen=True)
class UniformJobs:
    """Durations and weights, whole numbers, uniform from 1."""

    num_jobs: int = 8
    largest_weight: int = LARGEST

    def sample(self, rng: np.random.Generator) -> JobSet:
        duration = rng.integers(1, LARGEST, self.num_jobs, endpoint=True).astype(np.int32)
        weight = rng.integers(1, self.largest_weight, self.num_jobs, endpoint=True)
        arrival, demand = np.zeros_like(duration), np.ones((self.num_jobs, 1), np.int32)
        return JobSet(arrival, duration, demand, attributes={"weight": weight})


@dataclass(frozen=True)
class Order:
    """Takes the job with the shortest duration, or duration over weight."""

    name: str

    def act(self, states: NDArray[Any], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        duration, weight = np.split(states, 2, axis=1)
        value = (weight if self.name == "wspt" else 1) / np.maximum(duration, 1)
        return np.where(duration > 0, value, -1).argmax(axis=1).astype(np.int32)


SPEC = WorldSpec(
    world=SingleMachine,
    baselines=("spt", "wspt"),
    metrics=("weighted_flow", "completion_time", "makespan"),
    axis=Axis("workload.largest_weight"),
)
SPEC.workloads.register("uniform")(WorkloadSpec(UniformJobs, lambda w: {"num_jobs": w.num_jobs}))
SPEC.heuristics.register("spt")(Heuristic(lambda world, _: Order("spt")))
SPEC.heuristics.register("wspt")(Heuristic(lambda world, _: Order("wspt")))
WORLDS.register("single_machine")(SPEC)
