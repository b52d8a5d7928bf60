"""What a network is told of the objective, beside what it sees of a state."""

from typing import TYPE_CHECKING, cast

from cluster_env.core.world import World
from cluster_env.objectives import Objective
from rllib_configs.conditioned import Condition, ConditionedWorld, condition_of

if TYPE_CHECKING:
    from rllib_configs.config.options import TrainingSection
    from rllib_configs.config.schema import ExperimentConfig


def told(training: "TrainingSection", objective: Objective) -> Condition:
    """What a network is told of an objective.

    Returns:
        Nothing, if it is not conditioned.

    Raises:
        InputError: if the objective counts what it is not told of.
    """
    names = getattr(training, "conditioned_on", ())
    return condition_of(names, objective) if names else ()


def rewards_told(world: World) -> Condition:
    """What a network is told of its rewards before there are any: zeros by name."""
    names = ("reward_sign", *(f"reward_by_{name}" for name in world.feature_names[0]))
    return tuple((name, 0.0) for name in names)


def seen_world(training: "TrainingSection", world: World, objective: Objective) -> World:
    """The world as the network of an experiment sees it where an objective counts.

    Raises:
        InputError: if the objective counts what the network is not told of.
    """
    condition = told(training, objective)
    if getattr(training, "adapt", "") == "context":  # of maml; what rewards went with comes last
        condition = (*condition, *rewards_told(world))
    # To mypy a property is no ClassVar, as which a World has its kind.
    return cast("World", ConditionedWorld(world, condition)) if condition else world


def with_objective(
    experiment: "ExperimentConfig", objective: Objective | None
) -> "ExperimentConfig":
    """The experiment as a network that is told of the objective is to see it.

    Args:
        experiment: what the network was trained with.
        objective: what counts now; none leaves that of the experiment, and so does a network that
            is told nothing.
    """
    if objective is None or not getattr(experiment.training, "conditioned_on", ()):
        return experiment
    task = experiment.task.model_copy(update={"objective": objective.name})
    return experiment.model_copy(update={"task": task})


def told_in_words(experiment: "ExperimentConfig", objective: Objective) -> str:
    """The objective, if a network is told of it, for tables; nothing for other networks."""
    return objective.name if getattr(experiment.training, "conditioned_on", ()) else ""
