"""Ranges of the HPC world's tasks: sites with machines, jobs and objectives of their own."""

import math
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from cluster_env.objectives import mixture
from rllib_configs.conditioned import draw_weights
from rllib_configs.config.dimensions import Dimension
from rllib_configs.config.loading import parse_section
from rllib_configs.config.ranges import TaskRanges, streams
from rllib_configs.config.sections import Count
from rllib_configs.config.task_schema import TaskSection


class HPCRanges(TaskRanges):
    """What differs from site to site; what has no range stays as in the base."""

    objective_weights: tuple[str, ...] = ()
    """Objectives whose weights are drawn for each task; their sum is 1."""
    processors: tuple[Count, Count] | None = None
    """Smallest and largest machine, with equally likely orders of magnitude."""
    workloads: dict[str, dict[str, Dimension]] = Field(default_factory=dict)
    """Workloads by kind, all equally often, each with the ranges of its own settings; the number of
    jobs is that of the base."""

    @field_validator("objective_weights")
    @classmethod
    def _check_objectives(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if names:
            mixture(dict.fromkeys(names, 1.0))
        return names

    def draw(self, base: TaskSection, rng: np.random.Generator) -> TaskSection:
        """Draws a task; see `TaskRanges.draw`.

        Raises:
            InputError: if the base is impossible, or cannot have a value.
        """
        stream = streams(rng)
        data: dict[str, Any] = base.model_dump(mode="json")
        if self.objective_weights:
            weights = draw_weights(self.objective_weights, stream("objective"))
            data["objective"] = next(iter(weights)) if len(weights) == 1 else mixture(weights).name
        if self.processors is not None:
            low, high = map(math.log, self.processors)
            data["world"]["processors"] = round(math.exp(stream("processors").uniform(low, high)))
        if self.workloads:
            kinds = sorted(self.workloads)
            kind = kinds[int(stream("workload").integers(len(kinds)))]
            data["workload"] = {"kind": kind, "jobs": base.workload.jobs} | {
                name: values.draw(stream(f"{kind}.{name}"))
                for name, values in self.workloads[kind].items()
            }
        return super().draw(parse_section(TaskSection, data), rng)
