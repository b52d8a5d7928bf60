"""The typed experiment config: what a preset, a YAML file and ``--set`` may say."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import imported
from cluster_env.worlds import WORLDS
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.options import TrainingSection, training_section
from rllib_configs.config.registries import ALGORITHMS, CHOICES
from rllib_configs.config.secrets import holds_secret
from rllib_configs.config.sections import (
    Count,
    Section,
    Seed,
    WholeNumber,
    refusing_choice,
    validated,
)
from rllib_configs.config.task_schema import TaskSection

_STORE = re.compile(
    r"(https?://[^/\s]|sqlite:///\S|file:///|(postgresql|mysql|mssql)(\+\w+)?://\S|databricks)"
)


class ResourcesSection(Section):
    """Where it runs."""

    num_runners: WholeNumber = 2
    """Number of sampling processes; 0: the driver samples."""
    runner_timeout_s: Annotated[float, Field(ge=0)] = 0.0
    """Seconds without an answer after which a sampling process is replaced. 0: ten times the usual
    time of its units of work, but at least two minutes."""
    # An hour is long for an autoscaler, and short beside a run that never ends.
    wait_s: Annotated[float, Field(ge=0)] = 3600.0
    """Seconds that a run waits for free CPUs of a cluster that is shared or that an autoscaler
    extends. 0: it ends if too few are free."""


class EvaluationSection(Section):
    """How progress is measured while training."""

    every: WholeNumber = 25
    """Iterations between two evaluations; 0: only after the last iteration."""
    jobsets: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    """Number of validation jobsets, which are never used for training."""


class CheckpointSection(Section):
    """What a run can be resumed from."""

    every: WholeNumber = 25
    """Iterations between two checkpoints; 0: only after the last iteration."""
    keep: Count = 2
    """Number of checkpoints to keep, the newest ones."""


class TrackingSection(Section):
    """Where MLflow records the run."""

    enabled: bool = True
    """Whether runs are recorded in MLflow."""
    uri: str | None = None
    """Address of an MLflow server that gets a copy of the local store of runs; unset:
    MLFLOW_TRACKING_URI."""
    experiment: str = "metasched"
    """Name of the MLflow experiment."""
    model: Annotated[str, Field(pattern=r"^\w[\w .-]{0,199}$")] | None = None
    """Registered model in MLflow of which the finished run's policy becomes a new version; unset:
    the model stays with its run only."""

    @field_validator("uri")
    @classmethod
    def _check_address(cls, uri: str | None) -> str | None:
        """A run would wait for an unknown store for ever, and config.yaml is to hold no secret."""
        if uri is not None and holds_secret(uri):
            raise InputError(
                "an address must hold no password, because it is written to the run's folder; "
                "set MLFLOW_TRACKING_URI in the environment instead, or MLFLOW_TRACKING_USERNAME "
                "and MLFLOW_TRACKING_PASSWORD"
            )
        if uri is not None and not _STORE.match(uri):
            raise InputError(
                f"input should be the address of an MLflow server or database: http://, https://, "
                f"sqlite:///, postgresql://, mysql://, mssql://, file:// or databricks, but "
                f"'{shortened(uri)}' was given"
            )
        return uri


_LONGEST = 200  # characters of a name, so that a file can have it


class ExperimentConfig(Section):
    """Everything that a training run depends on."""

    name: str = "deeprm"
    """Name of the experiment; the names of its run folders begin with it."""
    seed: Seed = 0
    """Seed of all random numbers of the run."""
    runs: Path = Path("runs")
    """Folder in which run folders are created."""
    task: TaskSection = Field(default_factory=TaskSection)
    training: SerializeAsAny[TrainingSection] = Field(default_factory=lambda: training_section()())
    resources: ResourcesSection = ResourcesSection()
    evaluation: EvaluationSection = EvaluationSection()
    checkpoint: CheckpointSection = CheckpointSection()
    tracking: TrackingSection = TrackingSection()

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        """It stands in tables on terminals and in files, for which a stranger may have made it."""
        if not name.isprintable() or name[:1] in ("", "=", "+", "-", "@") or len(name) > _LONGEST:
            raise InputError(
                f"a name has 1 to {_LONGEST} printable characters and does not begin with '=', "
                f"'+', '-' or '@', but {shortened(name)!r} was given"
            )
        return name

    @field_validator("training", mode="before")
    @classmethod
    def _with_the_options_of_what_is_chosen(cls, training: Any) -> Any:
        """The section has the options of its algorithm and its network."""
        if not isinstance(training, Mapping):
            return training
        load_extensions()
        names = {}
        for registry in CHOICES:
            default = TrainingSection.model_fields[registry.kind].default
            names[registry.kind] = str(training.get(registry.kind, default))
            with refusing_choice(registry.kind):
                registry.get(names[registry.kind])
        return validated(training_section(**names), training)

    @model_validator(mode="after")
    def _discount_once(self) -> Self:
        """Between decisions the rewards do it, and from decision to decision the same may go on."""
        world, training = self.task.world, self.training
        within = WORLDS.get(world.kind).training.discount(world)
        goes_on = getattr(training, "discount_per", "") == "time_unit" and training.gamma == within
        if within != 1 and training.gamma != 1 and not goes_on:
            raise InputError(
                f"the world's rewards discount a time unit by {within:g} already (eq. 2.18), so "
                f"training.gamma must be 1, or {within:g} with training.discount_per=time_unit, "
                f"but it is {training.gamma:g}"
            )
        return self

    def require_units(self) -> None:
        """Makes sure that each runner has something to do in an iteration.

        Raises:
            InputError: if there are more runners than units of work.
        """
        runners, units = self.resources.num_runners, self.training.num_units
        if units is not None and runners > units:
            more = self.training.MORE_UNITS
            raise InputError(
                f"{runners} runners were asked for, but an iteration of {self.name} has {units} "
                f"unit{'s' if units > 1 else ''} of work, so use at most --runners {units}"
                + (f", or {more}" if more else "")
            )

    def to_dict(self) -> dict[str, Any]:
        """The whole config as plain data, for YAML and for MLflow."""
        return self.model_dump(mode="json")


def prepare(config: ExperimentConfig) -> ExperimentConfig:
    """What a run with this config trains with: the algorithm may complete it.

    Raises:
        InputError: if the algorithm cannot use it.
    """
    step = ALGORITHMS.get(config.training.algorithm).prepare
    made: ExperimentConfig = config if step is None else imported(step)(config)
    return made
