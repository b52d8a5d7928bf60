"""The seam between schedulers and what they act in: a world, its simulator and what a policy sees.

Networks see features and never states. States are small arrays of integers that travel between
machines; features are a deterministic function of a state and its world. A row is one decider: an
episode where one agent decides, a pair of episode and agent where several do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.objective import Objective
from cluster_env.core.schedule import Schedule

State = NDArray[Any]  # (n, state_size), of the type of the world's state space
Mask = NDArray[np.bool_]  # (n, num_actions)


class Features(NamedTuple):
    """What a network sees of n states.

    Items are what a policy chooses from: waiting jobs, candidate next states, nodes. The first
    feature of an item is 1, or 0 for a place where none is, whose other features are 0 too.
    """

    items: NDArray[np.float32]  # (n, num_items, item_size)
    context: NDArray[np.float32]  # (n, context_size)
    allowed: Mask  # (n, num_items + 1); the last action, void, takes none

    @classmethod
    def of(
        cls,
        items: NDArray[Any],
        context: NDArray[Any],
        allowed: NDArray[Any],
        out: "Features | None" = None,
    ) -> "Features":
        """Features of arrays of any type, for worlds that compute them in numpy."""
        if out is None:
            return cls(items.astype(np.float32), context.astype(np.float32), allowed.astype(bool))
        out.items[:], out.context[:], out.allowed[:] = items, context, allowed
        return out


class Simulator(Protocol):
    """Many episodes of a world side by side."""

    @property
    def num_rows(self) -> int:
        """Number of deciders that are loaded."""

    @property
    def episode(self) -> NDArray[np.int32]:
        """Index of each row's episode, int32 ``(num_rows,)``."""

    @property
    def states(self) -> State:
        """The states of all rows, ``(num_rows, state_size)``: a view that changes."""

    @property
    def time(self) -> NDArray[Any]:
        """The clock of each row in the world's unit, integers ``(num_rows,)``: a view."""

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which rows are to decide, bool ``(num_rows,)``: a view.

        Where several rows share an episode, one may become active later: agents arrive.
        """

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which rows were cut at the world's end of time, bool ``(num_rows,)``: a view."""

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets.

        Episode ``e`` runs ``jobsets[e // episodes_per_jobset]``; the objective is what rewards are.

        Raises:
            InputError: if there is no jobset, or a job cannot run in this world.
        """

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all rows, or the given ones, back to the beginning of their jobsets."""

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some rows, without allocating; returns how many are still active.

        Rows and actions are int32 ``(m,)``; where rows share an episode, all active ones of it.
        Of the rewards, float64, the first m are written.
        """

    def take_over(self, other: Any, source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
        """Copies the states of rows under way, all that the rest of an episode depends on.

        In the other simulator, of the same world, each source row runs the same jobset under the
        same objective as its target row does here; both are int32 ``(m,)``. In worlds whose futures
        can be sampled (`cluster_env.core.spec.Futures`), jobs that have not arrived may differ.
        """

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""


class World(Protocol):
    """What a scheduler acts in: a frozen dataclass of its options.

    In Graham's three fields a world is alpha, the machines; a workload is beta, the jobs; an
    objective is gamma.
    """

    kind: ClassVar[str]

    @property
    def state_space(self) -> spaces.Box:
        """Of the state of one row; its shape is ``(state_size,)``."""

    @property
    def num_actions(self) -> int:
        """One for each item, and void, the last one."""

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the features of an item, and of the context."""

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can run.

        Raises:
            InputError: if one cannot.
        """

    def simulator(self) -> Simulator:
        """A new simulator, with nothing loaded."""

    def features(self, states: State, out: Features | None = None) -> Features:
        """What a network sees of states; written to ``out`` if that is given."""


def differences(
    world: Any, other: Any, ignored: Sequence[str] = ()
) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which two worlds differ, with both values; of parts, theirs."""
    if type(world) is not type(other):
        yield "the kind", getattr(world, "kind", world), getattr(other, "kind", other)
        return
    for entry in fields(other):
        one, two = getattr(world, entry.name), getattr(other, entry.name)
        if entry.name in ignored or one == two:
            continue
        if is_dataclass(two):
            yield from differences(one, two)
        else:
            yield entry.name, one, two
