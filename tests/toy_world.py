"""A world in one file: one machine, jobs with weights, all there at time 0 (1 || sum w_j C_j)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from cluster_env.core import spec
from cluster_env.core.checks import require_option_types, require_states
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.record_simulator import RecordSimulator
from cluster_env.core.registry import Registry
from cluster_env.core.world import Features
from cluster_env.objectives import OBJECTIVES, Objective

LARGEST = 20  # duration and weight
RULES = ("spt", "wspt")
FLOW = Objective("weighted_flow", lambda jobset: jobset.attributes["weight"])
OBJECTIVES.register(FLOW.name)(FLOW)


@dataclass(frozen=True)
class SingleMachine:
    """One machine that runs a job to its end. An action is a job; time passes until it is done."""

    kind: ClassVar[str] = "single_machine"
    feature_names: ClassVar = ("present", "duration", "weight"), ("jobs_left",)
    num_jobs: int = 8

    def __post_init__(self):
        require_option_types(self)

    @property
    def state_space(self):
        return spaces.Box(0, LARGEST, (2 * self.num_jobs,), np.int32)

    @property
    def num_actions(self):
        return self.num_jobs + 1

    def check(self, jobset):
        if jobset.num_jobs != self.num_jobs or jobset.arrival.any():
            raise InputError(f"this machine takes {self.num_jobs} jobs, all at time 0")

    def simulator(self):
        return Machine(self)

    def features(self, states, out=None):
        require_states(states, self.state_space)
        present = states[:, : self.num_jobs] > 0
        logs = np.log(np.maximum(np.split(states, 2, axis=1), 1)) / np.log(LARGEST)
        items = np.stack([present, *logs], axis=2) * present[:, :, None]
        allowed = np.column_stack([present, ~present.any(axis=1)])
        return Features.of(items, present.mean(axis=1, keepdims=True), allowed, out)


class Machine(RecordSimulator):
    """The simulator of `SingleMachine`; a decision without a job takes the first that is left."""

    def begin(self):
        self._jobs = self.batch.job_of_place.reshape(-1, self.world.num_jobs)
        columns = [self.batch.column(term, np.int32) for term in ("duration", FLOW.job_cost)]
        return np.hstack([column[self._jobs] for column in columns])

    def step(self, rows, actions, rewards):
        for k, (row, action) in enumerate(zip(rows, actions, strict=True)):
            left, rewards[k] = np.flatnonzero(self.states[row, : self.world.num_jobs]), 0
            if left.size:
                job = action if action in left else left[0]
                self.start[row, job], duration = self.time[row], self.states[row, job]
                rewards[k] = -self.batch.costs.rate[self._jobs[row, left]].sum() * duration
                self.time[row] += duration
                self.states[row, [job, self.world.num_jobs + job]] = 0
            self.active[row] = left.size > 1
        return int(self.active[rows].sum())


@dataclass(frozen=True)
class UniformJobs:
    """Durations and weights, whole numbers, uniform from 1."""

    num_jobs: int = 8
    largest_weight: int = LARGEST

    def sample(self, rng):
        most = [[LARGEST], [self.largest_weight]]
        duration, weight = rng.integers(1, most, (2, self.num_jobs), endpoint=True)
        ones = np.ones((self.num_jobs, 1))
        return JobSet.of(0 * duration, duration, ones, attributes={"weight": weight})


@dataclass(frozen=True)
class Order:
    """Takes the shortest job, or that of least duration over weight: the optimum (Smith, 1956)."""

    name: str
    world: SingleMachine

    def act(self, states, uniforms):
        require_states(states, self.world.state_space)
        duration, weight = np.split(states, 2, axis=1)
        value = (weight if self.name == "wspt" else 1) / np.maximum(duration, 1)
        return np.where(duration > 0, value, -1).argmax(axis=1).astype(np.int32)


WORKLOAD = spec.WorkloadSpec(UniformJobs, lambda world: {"num_jobs": world.num_jobs})
ORDERS = {name: spec.Heuristic(lambda world, _, name=name: Order(name, world)) for name in RULES}
spec.WORLDS.register("single_machine")(
    spec.WorldSpec(
        world=SingleMachine,
        workloads=Registry("workload", {"uniform": WORKLOAD}),
        heuristics=Registry("heuristic", ORDERS),
        baselines=RULES,
        metrics=("weighted_flow", "completion_time", "makespan"),
        presentation=spec.Presentation(axis=spec.Axis("workload.largest_weight")),
        environments=spec.Environments({"SingleMachine-v0": {"world": {"kind": "single_machine"}}}),
    )
)
