"""A world in one file: one machine, jobs with weights, all there at time 0 (1 || sum w_j C_j).

The best order is known: weight over duration (Smith, 1956). All that a world needs is in this file.
"""

from dataclasses import asdict, dataclass

import numpy as np
from gymnasium import spaces

from cluster_env.core import spec
from cluster_env.core.checks import require_option_types, require_states
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.record_simulator import RecordSimulator
from cluster_env.core.world import Features
from cluster_env.objectives import OBJECTIVES, Objective

LARGEST = 20  # duration and weight

OBJECTIVES.register("weighted_flow")(Objective("weighted_flow", lambda j: j.attributes["weight"]))


@dataclass(frozen=True)
class SingleMachine:
    """One machine that runs a job to its end. An action is a job; time passes until it is done."""

    kind = "single_machine"
    feature_names = ("present", "duration", "weight"), ("jobs_left",)
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
        jobs = self.batch.job_of_place.reshape(-1, self.world.num_jobs)
        duration = self.batch.column("duration", np.int32)
        weight = self.batch.column(lambda jobset: jobset.attributes["weight"], np.int32)
        return np.hstack([duration[jobs], weight[jobs]])

    def decide(self, row, action):
        num_jobs = self.world.num_jobs
        left = np.flatnonzero(self.states[row, :num_jobs])
        job = action if action in left else left[0]
        self.start[row, job] = self.time[row]
        self.time[row] += self.states[row, job]  # its duration
        self.states[row, [job, num_jobs + job]] = 0
        self.active[row] = left.size > 1


@dataclass(frozen=True)
class UniformJobs:
    """Durations and weights, whole numbers, uniform from 1."""

    num_jobs: int = 8
    largest_weight: int = LARGEST

    def sample(self, rng):
        most = [[LARGEST], [self.largest_weight]]
        duration, weight = rng.integers(1, most, (2, self.num_jobs), endpoint=True)
        demand = np.ones((self.num_jobs, 1))
        return JobSet.of(0 * duration, duration, demand, attributes={"weight": weight})


@dataclass(frozen=True)
class Order:
    """Takes the shortest job, or that of least duration over weight."""

    name: str
    world: SingleMachine

    def act(self, states, uniforms):
        require_states(states, self.world.state_space)
        duration, weight = np.split(states, 2, axis=1)
        value = (weight if self.name == "wspt" else 1) / np.maximum(duration, 1)
        return np.where(duration > 0, value, -1).argmax(axis=1).astype(np.int32)


SPEC = spec.WorldSpec(
    world=SingleMachine,
    baselines=("spt", "wspt"),
    metrics=("weighted_flow", "completion_time", "makespan"),
    presentation=spec.Presentation(axis=spec.Axis("workload.largest_weight")),
    environments=spec.Environments({"SingleMachine-v0": {"world": {"kind": "single_machine"}}}),
)
SPEC.workloads.register("uniform")(spec.WorkloadSpec(UniformJobs, from_world=asdict))
SPEC.heuristics.register("spt")(spec.Heuristic(lambda world, _: Order("spt", world)))
SPEC.heuristics.register("wspt")(spec.Heuristic(lambda world, _: Order("wspt", world)))
spec.WORLDS.register("single_machine")(SPEC)
