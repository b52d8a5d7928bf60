"""What a sweep is: the settings that all trials share, those that differ, and who decides."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from cluster_env.core.registry import unknown
from rllib_configs.config.dimensions import Dimension
from rllib_configs.config.loading import find_yaml, parse_section, read_yaml
from rllib_configs.config.sections import Count, Section, Seed, WholeNumber
from tune_jobs.sweeps.searched import AshaSection, PbtSection
from tune_jobs.sweeps.searches import SEARCHES, Search
from tune_jobs.terminal.files import write_whole

NAMED = Path(__file__).parent / "named"
PRESET = "preset"


class Sweep(Section):
    """Everything that a sweep depends on."""

    name: str = "sweep"
    """First part of the folder's name, and name of the parent run in MLflow."""
    preset: str = "deeprm-ppo"
    """Preset or YAML file that all trials begin with; a space may hold preset, too."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of all trials, by keys like training.lr."""
    space: Annotated[dict[str, Dimension], Field(min_length=1)]
    """Settings that differ, by the same kind of keys."""
    search: str = "random"
    """grid: every combination; random: drawn beforehand; asha: the same, and those that fall behind
    others of their task are stopped; pbt: a population whose worst take over from the best; optuna:
    what to try next depends on what came out of trials of the same task (TPE)."""
    trials: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Draws for each combination of the grids; with grid alone, repetitions with other seeds."""
    metric: str = "eval/ratio"
    """Column of metrics.csv that ranks trials; eval/ratio is the validation metric over that of the
    best heuristic on the same jobsets, which is comparable between objectives and seeds."""
    mode: Literal["min", "max"] = "min"
    """Whether a lower or a higher metric is better."""
    average: Count = 1
    """Newest values of the metric that are averaged; for metrics that are noisy."""
    seed: Seed = 0
    """Seed of the trials' settings and of their own seeds."""
    concurrent: WholeNumber = 0
    """Trials at a time; 0 for as many as there are CPUs for."""
    asha: AshaSection = AshaSection()
    pbt: PbtSection = PbtSection()

    @field_validator("search")
    @classmethod
    def _known(cls, search: str) -> str:
        if search not in SEARCHES.names():
            message = str(unknown("search", search, SEARCHES.names()))
            raise PydanticCustomError("search", message, {})
        return search

    @field_validator("name")
    @classmethod
    def _fit_for_a_folder(cls, name: str) -> str:
        if not re.fullmatch(r"\w[\w.+-]*", name):
            raise PydanticCustomError(
                "name", "a sweep's name may hold letters, digits and '._+-'", {}
            )
        return name

    @model_validator(mode="after")
    def _check(self) -> Self:
        both = next((key for key in self.space if key in self.settings), None)
        if both is not None:
            raise PydanticCustomError(
                "both", "{key} is in the space already, so it cannot be set", {"key": both}
            )
        self.strategy.check(self)
        return self

    @property
    def strategy(self) -> Search:
        """The search itself."""
        return SEARCHES.get(self.search)

    @property
    def task_keys(self) -> list[str]:
        """Settings that give trials different tasks, between which scores say nothing.

        Only lists of values: of the numbers in a range, no two trials get the same.
        """
        return [
            key
            for key, dimension in self.space.items()
            if key.startswith("task.") and dimension.values is not None
        ]

    def to_dict(self) -> dict[str, Any]:
        """The whole definition as plain data, for YAML and for MLflow."""
        data = self.model_dump(mode="json")
        data["space"] = {
            key: {kind: value for kind, value in dimension.items() if value is not None}
            for key, dimension in data["space"].items()
        }
        return data


def sweep_names() -> list[str]:
    """Names of the sweeps that come with metasched."""
    return sorted(path.stem for path in NAMED.glob("*.yaml"))


def load_sweep(source: str | Path, changes: Iterable[tuple[str, Any]] = ()) -> Sweep:
    """Reads a sweep.

    Args:
        source: name of a sweep, or path of a YAML file.
        changes: fields to replace, by name; a key like ``settings.training.lr`` replaces one of the
            settings.

    Raises:
        InputError: if there is no such sweep, a field is unknown, or a value impossible.
    """
    path = find_yaml("sweep", source, NAMED)
    data = read_yaml(path)
    data.setdefault("name", path.stem)
    for name, value in changes:
        section, dot, key = name.partition(".")
        if dot and section == "settings":
            data["settings"] = {**(data.get("settings") or {}), key: value}
        else:
            data[name] = value
    sweep = parse_section(Sweep, data)
    if Path(sweep.preset).suffix in (".yaml", ".yml"):
        absolute = str(Path(sweep.preset).expanduser().absolute())
        return sweep.model_copy(update={"preset": absolute})
    return sweep


def write_sweep(sweep: Sweep, path: Path) -> None:
    """Writes the whole definition, as YAML that `load_sweep` reads back."""
    write_whole(path, yaml.safe_dump(sweep.to_dict(), sort_keys=False))
