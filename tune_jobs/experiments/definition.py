"""What an experiment is: runs to train, and calls of commands that evaluate and draw them."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from rllib_configs.config.loading import find_yaml, parse_section, read_yaml
from rllib_configs.config.sections import Count, Section, WholeNumber
from tune_jobs.commands.values import Scalar

NAMED = Path(__file__).parent / "named"

Seeds = Annotated[tuple[WholeNumber, ...], Field(min_length=1)]
_SAID_ELSEWHERE = {"seed": "seeds", "training.iterations": "iterations"}

Values = dict[str, Annotated[tuple[Scalar, ...], Field(min_length=1)]]


class RunsSection(Section):
    """Runs that differ in their seed, and in the values that vary."""

    name: str
    """Name of the folder of each run; it must hold ``{seed}`` and each name that varies."""
    preset: str
    """Preset or YAML file that the runs begin with."""
    iterations: Count
    """Iterations of each run."""
    settings: dict[str, Scalar] = Field(default_factory=dict)
    """Settings by keys like training.lr."""
    vary: Values = Field(default_factory=dict)
    """Values by name, which texts use as ``{name}``; there is a run for each combination."""
    seeds: Seeds | None = None
    """Training seeds, if not those of the experiment."""

    @field_validator("settings")
    @classmethod
    def _refuse_what_is_said_elsewhere(cls, settings: dict[str, Scalar]) -> dict[str, Scalar]:
        for key, elsewhere in _SAID_ELSEWHERE.items():
            if key in settings:
                raise PydanticCustomError(
                    "elsewhere", f"{key} is not set here, but by {elsewhere} of the experiment"
                )
        return settings


class StepSection(Section):
    """A call of a command that uses the runs, with typed options."""

    call: str
    """Name of the command."""
    options: dict[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """Its options and arguments by name, as ``task-seed``; several values where it takes several.
    ``{out}`` in a text is the experiment's folder."""
    vary: Values = Field(default_factory=dict)
    """Values by name, as for runs; the command is called once for each combination."""


class Experiment(Section):
    """Everything that makes a recorded result."""

    minutes: Annotated[int, Field(ge=1)] | None = None
    """How long all of it takes on two quiet cores, roughly."""
    with_all: bool = True
    """Whether it is made where all are asked for."""
    uses: tuple[str, ...] = ()
    """Named experiments whose runs the calls use, too, as ``{NAME}``: the folder of that name
    beside this one's. They are trained first, unless they are there."""
    takes: dict[str, str | None] = Field(default_factory=dict)
    """Options of ``metasched results`` that runs and steps use as ``{name}``, and the text that
    stands there if nobody gives them; without one they must be given. A step leaves out an
    option whose text comes out empty."""
    seeds: Seeds
    """Training seeds of all runs that name none of their own."""
    runs: tuple[RunsSection, ...]
    """What is trained, in this order for each seed."""
    steps: tuple[StepSection, ...] = ()
    """What follows when all runs are trained."""


def experiment_names() -> list[str]:
    """Names of the experiments that come with metasched."""
    return sorted(path.stem for path in NAMED.glob("*.yaml"))


def in_order() -> list[str]:
    """Those that are made where all are asked for: first what others use, then the shortest."""
    named = {name: load_experiment(name) for name in experiment_names()}
    used = {name for experiment in named.values() for name in experiment.uses}
    with_all = [name for name, experiment in named.items() if experiment.with_all]
    return sorted(with_all, key=lambda name: (name not in used, named[name].minutes or 0, name))


def find_experiment(source: str) -> Path:
    """The file that a name or a path means; raises `InputError` if there is none of that name."""
    return find_yaml("experiment", source, NAMED)


def load_experiment(source: str) -> Experiment:
    """Reads an experiment, by its name or from a YAML file.

    Raises:
        InputError: if there is no such experiment, a key is unknown, or a value impossible.
    """
    return parse_section(Experiment, read_yaml(find_experiment(source)))
