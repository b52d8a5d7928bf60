"""The heuristics by name, as policies over states."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry
from cluster_env.core.spec import Heuristic, no_argument, number_of
from cluster_env.worlds.deeprm import heuristic_kernels
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.world import DeepRM

DEFAULT_KNOB = 0.002
DEFAULT_PATIENCE = 8
LONG_JOB = 5
MOST_PATIENCE = 255  # the time since the last arrival that a state can hold


@dataclass(frozen=True)
class RandomPolicy:
    """A uniformly random action: any slot, filled or not, or void."""

    cluster: Cluster
    name: str = "random"

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `Policy.act`."""
        return (uniforms * self.cluster.num_actions).astype(np.int32)


@dataclass(frozen=True)
class ScorePolicy:
    """Starts, of the jobs that can start now, the one of highest score; the first slot of equals.

    The score of a job is ``knob * (free units now . demand) + (1 - knob) / duration``, which is
    SJF at 0, the Packer at 1, and Tetris* in between (DeepRM, section 4.1, after Grandl et al.,
    2014). With `patience`, a job longer than `long_job` is withheld until nothing has arrived for
    that many time steps.

    Attributes:
        cluster: resources, horizon and slots.
        name: what tables call it.
        knob: weight of packing against shortness, 0 to 1.
        patience: time steps without an arrival after which long jobs may start.
        long_job: longest duration that is never withheld.
    """

    cluster: Cluster
    name: str
    knob: float
    patience: int = 0
    long_job: int = LONG_JOB
    _layout: StateLayout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.knob <= 1:
            raise InputError(f"the knob of tetris must lie in 0..1, but {self.knob:g} was given")
        if not 0 <= self.patience <= MOST_PATIENCE:
            raise InputError(
                f"the patience of hold must lie in 0..{MOST_PATIENCE}, but {self.patience} was "
                f"given"
            )
        object.__setattr__(self, "_layout", StateLayout(self.cluster))

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `Policy.act`; the uniforms are not used."""
        actions = np.empty(states.shape[0], np.int32)
        heuristic_kernels.best_startable(
            states,
            np.asarray(self.cluster.capacity, np.int64),
            self.cluster.num_slots,
            int(self._layout.slots.start),
            self._layout.since,
            self.knob,
            self.patience,
            self.long_job,
            actions,
        )
        return actions


@dataclass(frozen=True)
class QueuePolicy:
    """Starts jobs in the order of their arrival; first come, first served (FCFS).

    The first job blocks those behind it until it fits. With `backfills` one of them may start
    before it if the first one then starts no later than it would have: EASY backfilling (D. Lifka,
    The ANL/IBM SP scheduling system, 1995), with a reservation in all resources, exact durations,
    and as much of the queue as the slots show.

    Attributes:
        cluster: resources, horizon and slots.
        name: what tables call it.
        backfills: whether jobs may overtake the first one.
    """

    cluster: Cluster
    name: str
    backfills: bool
    _layout: StateLayout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_layout", StateLayout(self.cluster))

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `Policy.act`; the uniforms are not used."""
        actions = np.empty(states.shape[0], np.int32)
        heuristic_kernels.first_come(
            states,
            np.asarray(self.cluster.capacity, np.int64),
            self.cluster.horizon,
            self.cluster.num_slots,
            int(self._layout.slots.start),
            int(self._layout.waited.start),
            self.backfills,
            actions,
        )
        return actions


HEURISTICS: Registry[Heuristic] = Registry("heuristic")


def _random(world: DeepRM, argument: str) -> Policy:
    no_argument("random", argument)
    return RandomPolicy(world.cluster)


def _sjf(world: DeepRM, argument: str) -> Policy:
    no_argument("sjf", argument)
    return ScorePolicy(world.cluster, "sjf", knob=0.0)


def _packer(world: DeepRM, argument: str) -> Policy:
    no_argument("packer", argument)
    return ScorePolicy(world.cluster, "packer", knob=1.0)


def _tetris(world: DeepRM, argument: str) -> Policy:
    knob = number_of("tetris", argument, float, DEFAULT_KNOB)
    return ScorePolicy(world.cluster, f"tetris:{argument}" if argument else "tetris", knob=knob)


def _hold(world: DeepRM, argument: str) -> Policy:
    patience = number_of("hold", argument, int, DEFAULT_PATIENCE)
    name = f"hold:{argument}" if argument else "hold"
    return ScorePolicy(world.cluster, name, knob=DEFAULT_KNOB, patience=patience)


def _fcfs(world: DeepRM, argument: str) -> Policy:
    no_argument("fcfs", argument)
    return QueuePolicy(world.cluster, "fcfs", backfills=False)


def _easy(world: DeepRM, argument: str) -> Policy:
    no_argument("easy", argument)
    return QueuePolicy(world.cluster, "easy", backfills=True)


HEURISTICS.register("random")(Heuristic(_random))
HEURISTICS.register("fcfs")(Heuristic(_fcfs))
HEURISTICS.register("easy")(Heuristic(_easy))
HEURISTICS.register("sjf")(Heuristic(_sjf))
HEURISTICS.register("packer")(Heuristic(_packer))
HEURISTICS.register("tetris")(
    Heuristic(_tetris, ("0.0005", "0.001", "0.002", "0.005", "0.01", "0.05", "0.5"))
)
HEURISTICS.register("hold")(Heuristic(_hold, ("1", "2", "3", "4", "6", "8", "12", "16", "32")))
