"""What differs from task to task in a family: ranges of settings, by their keys."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from cluster_env.core.errors import InputError
from cluster_env.core.registry import imported
from cluster_env.core.seeding import Purpose, generator
from rllib_configs.config.changes import change
from rllib_configs.config.dimensions import Dimension
from rllib_configs.config.loading import parse_section
from rllib_configs.config.registries import RANGES
from rllib_configs.config.sections import Section
from rllib_configs.config.task_schema import TaskSection


def streams(rng: np.random.Generator) -> Callable[[str], np.random.Generator]:
    """A stream for each key: one more key leaves the numbers of the others as they are."""
    seed = int(rng.integers(2**63))
    return lambda key: generator(seed, Purpose.TASK, zlib.crc32(key.encode()))


class TaskRanges(Section):
    """Values of a task's settings, as ``workload.load: {uniform: [0.7, 1.5]}``.

    What has no range stays as in the base. A world may have a class of its own, with ranges that
    know how its settings hang together (`RANGES`).
    """

    keys: dict[str, Dimension] = Field(default_factory=dict)
    """Values by the key of the setting; in a file they stand beside the other ranges."""

    @model_validator(mode="before")
    @classmethod
    def _collect(cls, given: Any) -> Any:
        """A table under a name that is no field is the range of that setting."""
        if not isinstance(given, Mapping) or "keys" in given:
            return given
        keys = {
            name: value
            for name, value in given.items()
            if name not in cls.model_fields and isinstance(value, Mapping | Dimension)
        }
        rest = {name: value for name, value in given.items() if name not in keys}
        return {**rest, "keys": keys} if keys else rest

    def draw(self, base: TaskSection, rng: np.random.Generator) -> TaskSection:
        """Draws a task.

        Raises:
            InputError: if there is no such setting, or it cannot have the value.
        """
        if not self.keys:
            return base
        stream = streams(rng)
        values = {f"task.{key}": values.draw(stream(key)) for key, values in self.keys.items()}
        data = {"task": base.model_dump(mode="json")}
        change(data, values)
        return parse_section(TaskSection, data["task"])

    def check(self, base: TaskSection, family: str) -> None:
        """Makes sure that each value is possible beside the base's other settings.

        Args:
            base: the task that the ranges change.
            family: its name, for errors.

        Raises:
            InputError: if one is not.
        """
        for key, values in self.keys.items():
            for value in values.examples():
                data = {"task": base.model_dump(mode="json")}
                try:
                    change(data, {f"task.{key}": value})
                    parse_section(TaskSection, data["task"]).build()
                except InputError as error:
                    raise InputError(
                        f"the family '{family}' cannot have the {key} {value}: {error}"
                    ) from None


def ranges_of(world: str) -> type[TaskRanges]:
    """The ranges that a family of tasks in a world may have, by the name of the world's kind."""
    return imported(RANGES.get(world)) if world in RANGES.names() else TaskRanges
