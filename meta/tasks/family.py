"""Families of tasks: a base task, and the ranges that tasks are drawn from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator

from cluster_env.core.errors import InputError
from rllib_configs.loading import parse_section, read_yaml
from rllib_configs.migration import migrate
from rllib_configs.ranges import Ranges, ranges_of
from rllib_configs.sections import Section, validated
from rllib_configs.task_schema import TaskSection

_TRIES = 64  # tasks that are drawn to find out whether a family is possible


class FamilySection(Section):
    """A distribution over tasks that a YAML file can describe; a `TaskDistribution`."""

    name: Annotated[str, Field(pattern=r"^[\w.+-]+$")] = "my-tasks"
    """What tables call it."""
    base: TaskSection = Field(default_factory=TaskSection)
    """The task that the ranges change; also what a run trains on while it warms up."""
    vary: SerializeAsAny[Ranges] = Field(default_factory=dict, validate_default=True)
    """What differs: ``workload.load: {uniform: [0.7, 1.5]}`` by the key of any setting, beside the
    ranges that the world has of its own."""

    @field_validator("vary", mode="before")
    @classmethod
    def _with_the_ranges_of_the_world(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, Mapping) or "base" not in info.data:
            return given
        return validated(ranges_of(info.data["base"].world.kind), given)

    def draw(self, rng: np.random.Generator) -> TaskSection:
        """Draws a task; see `Ranges.draw`.

        Raises:
            InputError: if the base is impossible.
        """
        return self.vary.draw(self.base, rng)

    def check(self) -> Self:
        """Makes sure that tasks can be drawn and built.

        Raises:
            InputError: if one is impossible.
        """
        self.vary.check(self.base, self.name)
        base = self.base.build()
        if base.at_point() != base:
            raise InputError(
                f"the base of the family '{self.name}' may not vary from jobset to jobset, so give "
                f"the ranges under 'vary' of the family and not under 'base.workload.vary'"
            )
        rng = np.random.default_rng(0)
        for _ in range(_TRIES):
            self.draw(rng).build()
        return self


def read_family(path: Path) -> FamilySection:
    """Reads the YAML file of a family.

    Raises:
        InputError: if it cannot be read, has an unknown key or an impossible value, or describes
            tasks that are impossible.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path} of a task distribution")
    data = {"name": path.stem, **read_yaml(path)}
    if isinstance(data.get("base"), Mapping):
        data["base"] = migrate({"task": data["base"]})["task"]
    try:
        return parse_section(FamilySection, data).check()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
