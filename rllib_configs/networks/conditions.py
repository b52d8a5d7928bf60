"""What a network is told of the objective, beside what it sees of a state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from cluster_env.core.conditioned import Condition, ConditionedWorld, condition_of, limits_in
from cluster_env.core.world import World
from cluster_env.objectives import Objective

if TYPE_CHECKING:
    from rllib_configs.schema import ExperimentConfig, TrainingSection


def told(training: "TrainingSection", objective: Objective) -> Condition:
    """What a network is told of an objective, and of the limits of its training, if it has some.

    Returns:
        Nothing, if it is not conditioned.

    Raises:
        InputError: if the objective counts what it is not told of.
    """
    names = getattr(training, "conditioned_on", ())
    return condition_of(names, objective, getattr(training, "limits", None)) if names else ()


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


@dataclass(frozen=True)
class Wanted:
    """What a network can be told.

    Attributes:
        objective: what counts.
        limits: by what share metrics may be worse than a reference's; none leaves those of the
            experiment.
    """

    objective: Objective
    limits: Mapping[str, float] | None = None


def with_wanted(experiment: "ExperimentConfig", wanted: Wanted | None) -> "ExperimentConfig":
    """The experiment as a network that is told of the objective is to see it.

    Args:
        experiment: what the network was trained with.
        wanted: what counts now; none leaves that of the experiment, and so does a network that is
            told nothing.
    """
    names = getattr(experiment.training, "conditioned_on", ())
    if wanted is None or not names:
        return experiment
    task = experiment.task.model_copy(update={"objective": wanted.objective.name})
    changed = experiment.model_copy(update={"task": task})
    told_limits = limits_in(names)
    if wanted.limits is None or not told_limits:
        return changed
    limits = {name: wanted.limits[name] for name in told_limits if name in wanted.limits}
    # From 100 % on there is nothing to tell, whichever way a metric is better; see `LIMIT`.
    limits = {name: worse for name, worse in limits.items() if worse < 1.0}
    training = experiment.training.model_copy(update={"limits": limits})
    return changed.model_copy(update={"training": training})


def told_in_words(experiment: "ExperimentConfig", wanted: Wanted | None) -> str:
    """What a network is told, for tables: ``utilization 10%, wait 25%, longest_wait off``.

    Args:
        experiment: what the network was trained with.
        wanted: see `with_wanted`.

    Returns:
        The objective, if it is told of that, and each limit that it knows; nothing for a network
        that is told nothing.
    """
    names = getattr(experiment.training, "conditioned_on", ())
    known = limits_in(names)
    acting = with_wanted(experiment, wanted)
    words = [acting.task.build_objective().name] if len(known) < len(names) else []
    given = acting.training.limits if known else {}
    words += [
        f"{name} {100 * given[name]:g}%" if name in given else f"{name} off" for name in known
    ]
    return ", ".join(words)
