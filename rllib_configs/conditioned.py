"""Worlds for policies that are conditioned on the objective: it is a part of the features.

Without it an objective shows in the rewards alone. A conditioned policy is the simple rival of
meta-learning: it acts for a new objective at once, where the other needs gradient steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cluster_env.core.batch import served
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.world import Features, Simulator, State, World
from cluster_env.objectives import Objective
from cluster_env.objectives.classes import read_class_weights
from cluster_env.objectives.mixtures import weights_of
from cluster_env.objectives.registry import find_objective

CLASS_WEIGHT = "class_weight_"
"""Before the number of a class: the feature is the decimal logarithm of its weight, and 0 where the
objective does not weigh classes. A weight of 0 counts as a thousandth."""

_LEAST_WEIGHT = 1e-3

_CONCENTRATION = 0.15
"""Of the Dirichlet distribution of weights: mostly one objective counts, the others a little."""

_LEAST_SHARE = 0.005

Condition = tuple[tuple[str, float], ...]  # features by name


def check_conditions(names: Sequence[str]) -> None:
    """Makes sure that a policy can be conditioned on each name.

    Raises:
        InputError: if a name is that of no objective and no weight of a class, or stands twice.
    """
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"conditioned_on names {name} twice; name it once")
        number = name.removeprefix(CLASS_WEIGHT)
        if number != name and not number.isdecimal():
            raise InputError(f"'{name}' names no class; {CLASS_WEIGHT}0 is that of the first one")
        if number == name and find_objective(name) is None:
            raise InputError(
                "a policy can be conditioned on objectives (slowdown, makespan, ...) and on "
                f"the weights of classes ({CLASS_WEIGHT}0, ...), but '{name}' was given"
            )


def objectives_of(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names of a condition that are objectives."""
    return tuple(name for name in names if not name.startswith(CLASS_WEIGHT))


def draw_weights(names: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
    """Draws weights of objectives that sum up to 1 but for rounding; small ones are left out."""
    drawn = rng.dirichlet([_CONCENTRATION] * len(names)).round(2)
    return {name: float(w) for name, w in zip(names, drawn, strict=True) if w > _LEAST_SHARE}


def condition_of(names: Sequence[str], objective: Objective) -> Condition:
    """The features of a policy that is conditioned on an objective.

    Args:
        names: of objectives, whose features are their shares of the weights, 0 to 1; and of weights
            of classes, see `CLASS_WEIGHT`.
        objective: one of these, or a mixture of them; ``class_slowdown(...)``, too, where weights
            of classes are named.

    Raises:
        InputError: if the objective counts something that is not named.
    """
    weights = weights_of(objective.name)
    total = sum(weights.values())
    of_classes: dict[str, float] = {}
    for name in weights:
        class_weights = read_class_weights(name) or ()
        of_classes |= {f"{CLASS_WEIGHT}{k}": weight for k, weight in enumerate(class_weights)}
        unknown = [one for one in (of_classes if class_weights else (name,)) if one not in names]
        if unknown:
            raise InputError(
                f"a policy that is conditioned on {', '.join(names)} cannot be used for the "
                f"objective {objective.name}, which counts {unknown[0]}"
            )
    features = {name: weights.get(name, 0.0) / total for name in objectives_of(names)}
    # What is named and has no value is neutral: a weight of 1.
    features |= {name: 0.0 for name in names if name.startswith(CLASS_WEIGHT)}
    features |= {name: math.log10(max(w, _LEAST_WEIGHT)) for name, w in of_classes.items()}
    return tuple((name, features[name]) for name in names)


@dataclass(frozen=True)
class ConditionedWorld:
    """A `World` whose states have further features, the same in all of them, behind the context."""

    world: World
    condition: Condition

    @property
    def kind(self) -> str:
        """That of the world."""
        return self.world.kind

    @property
    def state_space(self) -> Any:
        """That of the world."""
        return self.world.state_space

    @property
    def num_actions(self) -> int:
        """That of the world."""
        return self.world.num_actions

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Those of the world, and ``told_`` with each name of the condition."""
        # Shipped policies name their features so.
        of_item, of_context = self.world.feature_names
        return of_item, (*of_context, *(f"told_{name}" for name, _ in self.condition))

    def check(self, jobset: JobSet) -> None:
        """See the world's."""
        self.world.check(jobset)

    def served(self, jobset: JobSet) -> JobSet:
        """See `cluster_env.core.batch.served`."""
        return served(self.world, jobset)

    def simulator(self) -> Simulator:
        """That of the world."""
        return self.world.simulator()

    def features(self, states: State, out: Features | None = None) -> Features:
        """Those of the world, with the condition behind the context."""
        size = len(self.world.feature_names[1])
        seen = self.world.features(states)
        if out is None:
            out = seen._replace(
                context=np.empty((states.shape[0], size + len(self.condition)), np.float32)
            )
        else:
            out.items[:], out.allowed[:] = seen.items, seen.allowed
        out.context[:, :size] = seen.context
        out.context[:, size:] = [value for _, value in self.condition]
        return out
