"""What the simulators ask of a scheduler, trained or not."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Choose = Callable[[Any, NDArray[np.int32], NDArray[np.float64]], NDArray[np.int32]]
"""From a simulator, active rows and uniforms to actions, see `choose`."""

NOT_ALLOWED = np.float32(-1e9)
"""Score of an action that is not allowed: finite, so that where nothing is allowed no NaN comes."""


@runtime_checkable
class Policy(Protocol):
    """Chooses an action for each of a batch of states; it keeps nothing between calls."""

    @property
    def name(self) -> str:
        """Name in tables and figures."""

    def act(self, states: NDArray[Any], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """Chooses for states ``(n, state_size)``; int32 ``(n,)``: an item, or the last for void.

        The uniforms, float64 ``(n,)`` in [0, 1), are the only randomness that a policy may use.

        Raises:
            InputError: by a rule that decides by more than a state shows; see `choose`.
        """


@runtime_checkable
class PlayedPolicy(Policy, Protocol):
    """A policy whose whole episodes a simulator can play by itself.

    That is the fast path of rules: no decision leaves compiled code, and they see all of the queue
    where a state of fixed size shows a part.
    """

    def play(self, simulator: Any, keys: NDArray[np.uint64]) -> None:
        """Plays all episodes that are loaded to their ends.

        The keys of their random numbers are uint64 ``(num_rows,)``, see
        `cluster_env.core.seeding.episode_keys`.
        """


@runtime_checkable
class ChoosingPolicy(Policy, Protocol):
    """A rule that asks the simulator, since a state does not show all that it decides by."""

    def choose(
        self, simulator: Any, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """The actions that `PlayedPolicy.play` would take in active rows, int32 ``(m,)``.

        Rows are int32 ``(m,)``, uniforms float64 ``(m,)`` in [0, 1).
        """


@runtime_checkable
class ScoringPolicy(Policy, Protocol):
    """A policy that says how good it finds each action, and not only which is best."""

    def scores(self, states: NDArray[Any]) -> NDArray[np.float32]:
        """Scores of actions in states ``(n, state_size)``, float32 ``(n, num_actions)``.

        Those that are not allowed have `NOT_ALLOWED`.
        """


@runtime_checkable
class ViewingPolicy(Policy, Protocol):
    """A policy that expects more of jobs than they say, such as how long they will run.

    Whoever evaluates it plays the jobs in the world as it sees it. They arrive, ask for and take
    what they do without it, so that the schedule is one of these jobs.
    """

    def view(self, world: Any) -> Any:
        """A world with what the policy expects of jobs in it."""


def choose(
    policy: Policy, simulator: Any, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
) -> NDArray[np.int32]:
    """The actions of a policy in active rows of a simulator of its world, int32 ``(m,)``.

    Rows are int32 ``(m,)``, uniforms float64 ``(m,)`` in [0, 1). A `ChoosingPolicy` asks the
    simulator; any other policy sees the states of the rows.
    """
    return chooser(policy)(simulator, rows, uniforms)


def chooser(policy: Policy) -> Choose:
    """`choose` of one policy; for loops, because to look what a policy can do takes its time."""
    if isinstance(policy, ChoosingPolicy):
        return policy.choose
    return lambda simulator, rows, uniforms: policy.act(simulator.states[rows], uniforms)
