"""A world as a policy sees it that is told what counts: the objective is a part of its features.

To a policy that is told nothing, an objective shows in the rewards alone. One that is told is the
simple rival of learning to adapt: it knows at once what the other has to find out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.world import Features, Simulator, State, World
from cluster_env.objectives import Objective
from cluster_env.objectives.classes import read_class_weights
from cluster_env.objectives.mixtures import weights_of
from cluster_env.objectives.objective import find_objective

CLASS_WEIGHT = "class_weight_"
"""Before the number of a class: what is told is the decimal logarithm of its weight, and 0 where
the objective does not weigh classes. A weight of 0 counts as a thousandth."""

_LEAST_WEIGHT = 1e-3

Condition = tuple[tuple[str, float], ...]  # what is told, by name


def check_conditions(names: Sequence[str]) -> None:
    """Makes sure that there is something to tell under each name.

    Raises:
        InputError: if a name is that of no objective and no weight of a class, or stands twice.
    """
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"a policy is told of {name} once, but it stands there twice")
        number = name.removeprefix(CLASS_WEIGHT)
        if number == name and find_objective(name) is None:
            raise InputError(
                f"a policy can be told of objectives (slowdown, makespan, ...) and of the weights "
                f"of classes ({CLASS_WEIGHT}0, ...), but '{name}' was given"
            )
        if number != name and not number.isdecimal():
            raise InputError(f"'{name}' names no class; {CLASS_WEIGHT}0 is that of the first one")


def condition_of(names: Sequence[str], objective: Objective) -> Condition:
    """What a policy is told of an objective.

    Args:
        names: of objectives, of which it is told the share of the weights, 0 to 1, and of the
            weights of classes, see `CLASS_WEIGHT`.
        objective: one of these, or a mixture of them; where weights of classes are told,
            ``class_slowdown(...)``, too.

    Raises:
        InputError: if the objective counts what the policy is not told of.
    """
    weights = weights_of(objective.name)
    total = sum(weights.values())
    of_classes: dict[str, float] = {}
    for name in weights:
        found = read_class_weights(name) or ()
        of_classes |= {f"{CLASS_WEIGHT}{k}": weight for k, weight in enumerate(found)}
        told = of_classes if found else {name: 1.0}
        unknown = [one for one in told if one not in names]
        if unknown:
            raise InputError(
                f"a policy that is told of {', '.join(names)} cannot be told of the objective "
                f"{objective.name}, which counts {unknown[0]}"
            )
    return tuple(
        (
            name,
            float(np.log10(max(of_classes.get(name, 1.0), _LEAST_WEIGHT)))
            if name.startswith(CLASS_WEIGHT)
            else weights.get(name, 0.0) / total,
        )
        for name in names
    )


@dataclass(frozen=True)
class ConditionedWorld:
    """A world whose states have further features, the same in all of them; a `World`.

    Attributes:
        world: what is acted in.
        condition: numbers by name, which stand behind the features of the context.
    """

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
        of_item, of_context = self.world.feature_names
        return of_item, (*of_context, *(f"told_{name}" for name, _ in self.condition))

    def check(self, jobset: JobSet) -> None:
        """See the world's."""
        self.world.check(jobset)

    def simulator(self) -> Simulator:
        """That of the world."""
        return self.world.simulator()

    def features(self, states: State, out: Features | None = None) -> Features:
        """Those of the world, with the condition behind the context.

        Args:
            states: ``(n, state_size)``.
            out: written if given; its context is float32 ``(n, context_size)``.
        """
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
