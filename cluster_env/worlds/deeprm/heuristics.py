"""The heuristics by name, as policies over states."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry
from cluster_env.worlds.deeprm import heuristic_kernels
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout

DEFAULT_KNOB = 0.002
DEFAULT_PATIENCE = 8
LONG_JOB = 5


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
        if self.patience < 0:
            raise InputError(
                f"the patience of hold must be 0 or larger, but {self.patience} was given"
            )
        object.__setattr__(self, "_layout", StateLayout(self.cluster))

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `Policy.act`; the uniforms are not used."""
        actions = np.empty(states.shape[0], np.int32)
        heuristic_kernels.best_startable(
            states,
            np.asarray(self.cluster.capacity, np.int32),
            self.cluster.num_slots,
            int(self._layout.slots.start),
            self._layout.since,
            self.knob,
            self.patience,
            self.long_job,
            actions,
        )
        return actions


N = TypeVar("N", int, float)
Maker = Callable[[Cluster, str], Policy]
HEURISTICS: Registry[Maker] = Registry("heuristic")


@HEURISTICS.register("random")
def _random(cluster: Cluster, argument: str) -> Policy:
    _no_argument("random", argument)
    return RandomPolicy(cluster)


@HEURISTICS.register("sjf")
def _sjf(cluster: Cluster, argument: str) -> Policy:
    _no_argument("sjf", argument)
    return ScorePolicy(cluster, "sjf", knob=0.0)


@HEURISTICS.register("packer")
def _packer(cluster: Cluster, argument: str) -> Policy:
    _no_argument("packer", argument)
    return ScorePolicy(cluster, "packer", knob=1.0)


@HEURISTICS.register("tetris")
def _tetris(cluster: Cluster, argument: str) -> Policy:
    knob = _number("tetris", argument, float, DEFAULT_KNOB)
    return ScorePolicy(cluster, f"tetris:{argument}" if argument else "tetris", knob=knob)


@HEURISTICS.register("hold")
def _hold(cluster: Cluster, argument: str) -> Policy:
    patience = _number("hold", argument, int, DEFAULT_PATIENCE)
    name = f"hold:{argument}" if argument else "hold"
    return ScorePolicy(cluster, name, knob=DEFAULT_KNOB, patience=patience)


def get_heuristic(spec: str, cluster: Cluster) -> Policy:
    """Returns a heuristic.

    Args:
        spec: a name, or a name and its number: ``sjf``, ``tetris:0.005`` (knob), ``hold:8``
            (time steps without an arrival after which long jobs may start).
        cluster: resources, horizon and slots.

    Raises:
        InputError: if there is no such heuristic, or its number is out of range.
    """
    name, _, argument = spec.partition(":")
    return HEURISTICS.get(name)(cluster, argument)


def _no_argument(name: str, argument: str) -> None:
    if argument:
        raise InputError(f"'{name}' takes no number, but '{name}:{argument}' was given")


def _number(name: str, text: str, kind: type[N], default: N) -> N:
    try:
        return kind(text) if text else default
    except ValueError as error:
        raise InputError(f"'{name}:' needs a number after the colon, not '{text}'") from error
