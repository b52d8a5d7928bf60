"""A world as a policy sees it that is told what counts: the objective is a part of its features.

To a policy that is told nothing, an objective shows in the rewards alone. One that is told is the
simple rival of learning to adapt: it knows at once what the other has to find out.
"""

import math
from collections.abc import Mapping, Sequence
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

LIMIT = "limit_"
"""Before the name of a metric: what is told is how tight its limit is, 1 where it may be no worse
than the reference's, 0 where it may be twice as bad, or has no limit."""

_CONCENTRATION = 0.15
"""Of the Dirichlet distribution of weights: mostly one objective counts, the others a little."""

_LEAST_SHARE = 0.005

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
        if number != name and not number.isdecimal():
            raise InputError(f"'{name}' names no class; {CLASS_WEIGHT}0 is that of the first one")
        if number == name and not name.startswith(LIMIT) and find_objective(name) is None:
            raise InputError(
                f"a policy can be told of objectives (slowdown, makespan, ...), of the weights of "
                f"classes ({CLASS_WEIGHT}0, ...) and of limits ({LIMIT}wait, ...), but '{name}' "
                f"was given"
            )


def objectives_of(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names of a condition that are objectives."""
    return tuple(name for name in names if not name.startswith((CLASS_WEIGHT, LIMIT)))


def limits_in(names: Sequence[str]) -> tuple[str, ...]:
    """The metrics whose limits a condition tells."""
    return tuple(name.removeprefix(LIMIT) for name in names if name.startswith(LIMIT))


def draw_weights(names: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
    """Draws weights of objectives that sum up to 1 but for rounding; small ones are left out."""
    drawn = rng.dirichlet([_CONCENTRATION] * len(names)).round(2)
    return {name: float(w) for name, w in zip(names, drawn, strict=True) if w > _LEAST_SHARE}


def condition_of(
    names: Sequence[str], objective: Objective, limits: Mapping[str, float] | None = None
) -> Condition:
    """What a policy is told of an objective.

    Args:
        names: of objectives, of which it is told the share of the weights, 0 to 1, of the weights
            of classes, see `CLASS_WEIGHT`, and of limits, see `LIMIT`.
        objective: one of these, or a mixture of them; where weights of classes are told,
            ``class_slowdown(...)``, too; any, where limits alone are told.
        limits: by what share a metric may be worse than a reference's, at least 0.

    Raises:
        InputError: if the objective counts what the policy is not told of.
    """
    only_limits = all(name.startswith(LIMIT) for name in names)  # of the objective there is no word
    weights = {} if only_limits else weights_of(objective.name)
    total = sum(weights.values())
    of_classes: dict[str, float] = {}
    for name in weights:
        found = read_class_weights(name) or ()
        of_classes |= {f"{CLASS_WEIGHT}{k}": weight for k, weight in enumerate(found)}
        unknown = [one for one in (of_classes if found else (name,)) if one not in names]
        if unknown:
            raise InputError(
                f"a policy that is told of {', '.join(names)} cannot be told of the objective "
                f"{objective.name}, which counts {unknown[0]}"
            )
    told = {name: weights.get(name, 0.0) / total for name in objectives_of(names)}
    told |= {name: 0.0 for name in names if name.startswith(CLASS_WEIGHT)}
    told |= {name: math.log10(max(w, _LEAST_WEIGHT)) for name, w in of_classes.items()}
    told |= {f"{LIMIT}{name}": 0.0 for name in limits_in(names)}
    told |= {f"{LIMIT}{name}": max(1.0 - worse, 0.0) for name, worse in (limits or {}).items()}
    return tuple((name, told[name]) for name in names)


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
