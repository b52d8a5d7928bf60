"""MAML's options, and what it makes of a config before a run begins. Needs no Ray."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from rllib_configs.options import ClippedOptions
from rllib_configs.registries import ALGORITHMS, Algorithm
from rllib_configs.schema import ExperimentConfig
from rllib_configs.sections import ADJUSTABLE, Count, Positive, Share
from rllib_configs.task_schema import TaskSection


class MAMLOptions(ClippedOptions):
    """How a policy learns to adapt; see `meta.maml`.

    Usual names: order first with surrogate ratio is first-order MAML, second with log_probability
    MAML as published, second with ratio near ProMP; adapt head is ANIL; no inner steps, joint
    training on all tasks.
    """

    family: str = "objectives"
    """Where tasks come from: name of a distribution over tasks, a YAML file that describes one, or
    module:attribute of one in Python. A relative path counts from where the config is made."""
    tasks: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Tasks of an iteration. Of each, every stage samples jobsets x
    episodes_per_jobset episodes."""
    MORE_UNITS: ClassVar[str] = "set training.tasks higher"

    @property
    def num_units(self) -> int:
        """Pieces of work of an iteration: its tasks."""
        return self.tasks

    tasks_per_update: Annotated[Count, ADJUSTABLE] = 2
    """Tasks of an update; more make it less noisy, and an iteration has fewer of them."""
    inner_steps: Annotated[int, Field(ge=0, le=1000)] = 1
    """Steps of adaptation before the stage that counts; 0 trains one policy for all tasks."""
    order: Literal["first", "second"] = "first"
    """Whether the outer gradient sees how the inner ones change with the parameters."""
    surrogate: Literal["ratio", "log_probability"] = "ratio"
    """What an inner step ascends, times the advantage: the ratio of new to old probability, or the
    logarithm of the new one."""
    inner_rate: Positive = 1.0
    """Length of an inner step, at the start if it is learned."""
    learn_rates: bool = True
    """Whether each block of parameters learns an inner rate of its own."""
    adapt: Literal["all", "head", "direct", "context"] = "all"
    """What inner steps change: all parameters, the layers after the pooling, or the few numbers
    that count directly in scores (the skip connection and the bias of waiting); with context none,
    and the policy is conditioned on what its rewards so far went with instead."""
    advantage_floor: Annotated[float, Field(ge=0), ADJUSTABLE] = 0.03
    """Share of a task's mean return that its advantages are divided by, beside their spread."""
    relative_gains: bool = True
    """Whether outer steps weigh tasks by the share of their cost that can be saved, instead of all
    alike."""
    gradient_clip: Annotated[Positive, ADJUSTABLE] = 0.5
    """Largest norm of an inner gradient; not used with normalize."""
    normalize: bool = False
    """Whether the inner gradient of each block gets length 1, so that inner rates are lengths of
    steps. For worlds where gradients of blocks differ by orders of magnitude."""
    shrink: bool = True
    """Whether an inner step is shortened to what the gradients of its jobsets agree on, so that a
    policy that is good already does not follow noise; it needs at least 2 jobsets."""
    rates_lr: Annotated[Positive, ADJUSTABLE] = 20.0
    """Learning rate of the logarithms of the inner rates, in units of lr."""
    entropy_target: Annotated[float, Field(ge=0), ADJUSTABLE] = 0.25
    """Mean entropy of adapted policies that the entropy bonus aims at, in nats of a decision that
    leaves a choice; a policy without any has nothing left to adapt."""
    warm_up: Share = 0.0
    """Share of the run, at its beginning, that learns the family's base task without inner steps;
    not needed with start."""

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
        InputError: if there is no such family, or another task was given.
    """
    from meta.tasks import get_distribution

    family = experiment.training.family
    base = get_distribution(family).base
    if experiment.task not in (TaskSection(), base):
        raise InputError(
            f"the algorithm maml takes its tasks from training.family ({family}), so leave out "
            f"the section task, or describe a family of your own in a YAML file"
        )
    return experiment.model_copy(update={"task": base})


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
