"""MAML's options, and what it makes of a config before a run begins. Needs no Ray."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from rllib_configs.config.options import ClippedOptions
from rllib_configs.config.registries import ALGORITHMS, Algorithm
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.sections import ADJUSTABLE, Count, Positive, Share
from rllib_configs.config.task_schema import TaskSection


class MAMLOptions(ClippedOptions):
    """How a policy learns to adapt; see `meta.maml`.

    Usual names: order first with surrogate ratio is first-order MAML, second with log_probability
    MAML as published, second with ratio near ProMP; adapt head is ANIL; no inner steps, joint
    training on all tasks.
    """

    family: str = "objectives"
    """Distribution over tasks: its name, a YAML file that describes it, or module:attribute in
    Python. Relative paths start at the current directory."""
    tasks: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Tasks per iteration. Each stage of a task samples jobsets x episodes_per_jobset episodes."""
    MORE_UNITS: ClassVar[str] = "set training.tasks higher"

    @property
    def num_units(self) -> int:
        """Pieces of work of an iteration: its tasks."""
        return self.tasks

    tasks_per_update: Annotated[Count, ADJUSTABLE] = 2
    """Tasks per parameter update. More tasks make updates less noisy but fewer in an iteration."""
    inner_steps: Annotated[int, Field(ge=0, le=1000)] = 1
    """Adaptation steps before the stage whose return the outer update improves; 0: one policy is
    trained for all tasks (joint training)."""
    order: Literal["first", "second"] = "first"
    """Order of the outer gradient: second includes how the inner gradients change with the
    parameters, first does not."""
    surrogate: Literal["ratio", "log_probability"] = "ratio"
    """What an inner step ascends, times the advantage: the ratio of new to old probability (ratio),
    or the logarithm of the new probability (log_probability)."""
    inner_rate: Positive = 1.0
    """Step size of inner steps; the initial one if learn_rates is on."""
    learn_rates: bool = True
    """Whether each block of parameters learns its own inner step size."""
    adapt: Literal["all", "head", "direct", "classes", "context"] = "all"
    """What inner steps change: all parameters (all), the layers after the pooling (head), the skip
    connection and the bias of waiting (direct), or of these what jobs' classes count alone
    (classes). context: nothing changes, and the policy is conditioned on its past rewards
    instead."""
    advantage_floor: Annotated[float, Field(ge=0), ADJUSTABLE] = 0.03
    """Share of a task's mean return that is added to the spread by which its advantages are
    divided."""
    relative_gains: bool = True
    """Whether outer steps weigh tasks by the share of their cost that can be saved; otherwise all
    tasks weigh the same."""
    trace: Share = 1.0
    """How much of the rewards after a decision counts, per discount_per, beside values that are
    fitted to the stage: 1 trusts rewards alone, lower values suit long windows."""
    decision_stride: Count = 1
    """Every how many-th decision with a choice is learned from. In long windows a part of them says
    nearly as much, and gradients cost less."""
    gradient_clip: Annotated[Positive, ADJUSTABLE] = 0.5
    """Largest norm of an inner gradient; without effect if normalize is on."""
    normalize: bool = False
    """Whether the inner gradient of each block is scaled to length 1, so that inner rates are step
    lengths. For worlds whose blocks have gradients of different orders of magnitude."""
    shrink: bool = True
    """Whether an inner step is shortened to what the gradients of its jobsets agree on, so that a
    good policy does not follow noise. It needs at least 2 jobsets."""
    rates_lr: Annotated[Positive, ADJUSTABLE] = 20.0
    """Learning rate of the logarithms of the inner rates, as a multiple of lr."""
    entropy_target: Annotated[float, Field(ge=0), ADJUSTABLE] = 0.25
    """Mean entropy of adapted policies that the entropy bonus aims at, in nats per decision with a
    choice. A policy without entropy cannot adapt."""
    warm_up: Share = 0.0
    """Share of the run, from its beginning, that trains on the family's base task without inner
    steps. Not needed if training.start is set."""

    @model_validator(mode="after")
    def _check_context(self) -> Self:
        if self.adapt == "context" and not self.inner_steps:
            raise PydanticCustomError(
                "adapt",
                "adapt=context conditions a policy on the rewards of earlier stages, so "
                "training.inner_steps must be 1 or more",
            )
        return self

    @field_validator("family")
    @classmethod
    def _make_family_absolute(cls, family: str) -> str:
        """Lets a run be resumed from elsewhere."""
        return str(Path(family).absolute()) if family.endswith((".yaml", ".yml")) else family


def prepare(experiment: ExperimentConfig) -> ExperimentConfig:
    """Gives a maml experiment the base of its family as its task, on which it is validated.

    Raises:
        InputError: if there is no such family, another task was given, or nothing could be adapted.
    """
    from meta.tasks import get_distribution

    family = experiment.training.family
    if experiment.training.order == "second" and experiment.training.network != "set_scorer":
        raise InputError(
            f"training.order=second needs the network set_scorer, because derivatives of second "
            f"order come from PyTorch, but {experiment.training.network} was given"
        )
    base = get_distribution(family).base
    if experiment.task not in (TaskSection(), base):
        raise InputError(
            f"the algorithm maml takes its tasks from training.family ({family}), so leave out "
            f"the section task, or describe a family of your own in a YAML file"
        )
    if experiment.training.adapt == "classes" and not _weighs_classes(experiment, base):
        raise InputError(
            f"training.adapt=classes changes what classes of jobs count, but jobs of the family "
            f"{family} have none, or the network does not weigh them; set_scorer needs "
            f"training.skip_connection=true for that"
        )
    return experiment.model_copy(update={"task": base})


def _weighs_classes(experiment: ExperimentConfig, base: TaskSection) -> bool:
    of_item, _ = base.world.feature_names
    classes = any(name.startswith("class_") for name in of_item)
    training = experiment.training
    return classes and (training.skip_connection or training.network != "set_scorer")


def maml_options(experiment: ExperimentConfig) -> MAMLOptions:
    """MAML's options of an experiment, or their defaults if it was trained by another algorithm."""
    training: Any = experiment.training
    return training if isinstance(training, MAMLOptions) else MAMLOptions()


ALGORITHMS.register("maml")(
    Algorithm(
        MAMLOptions,
        "meta.maml.algorithm:MAMLConfig",
        needs_item_scores=True,
        varies_objective=True,
        prepare="meta.maml.options:prepare",
    )
)
