"""The heuristics by name: rules over states that nobody trained."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry, number_of
from cluster_env.core.spec import Heuristic
from cluster_env.worlds.deeprm.state import SATURATED, StateShape, first_free, first_start
from cluster_env.worlds.deeprm.world import DeepRM

DEFAULT_KNOB = 0.002
DEFAULT_PATIENCE = 8
LONG_JOB = 5


@dataclass(frozen=True)
class RandomPolicy:
    """A uniformly random action: any slot, filled or not, or void."""

    world: DeepRM
    name: str = "random"

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `Policy.act`."""
        require_states(states, self.world.state_space)
        return (uniforms * self.world.num_actions).astype(np.int32)


@dataclass(frozen=True)
class ScorePolicy:
    """Starts, of the jobs that can start now, the one of highest score; the first slot of equals.

    The score of a job is ``knob * (free units now . demand) + (1 - knob) / duration``, which is
    SJF at 0, the Packer at 1, and Tetris* in between (DeepRM, section 4.1, after Grandl et al.,
    2014). With `patience`, a job longer than `long_job` is delayed until nothing has arrived for
    that many time steps.

    Attributes:
        knob: weight of packing against shortness, 0 to 1.
        patience: time steps without an arrival after which long jobs may start.
        long_job: longest duration that is never delayed.
    """

    world: DeepRM
    name: str
    knob: float
    patience: int = 0
    long_job: int = LONG_JOB

    def __post_init__(self) -> None:
        if not 0 <= self.knob <= 1:
            raise InputError(f"the knob of tetris must lie in 0..1, but {self.knob:g} was given")
        if not 0 <= self.patience <= SATURATED:
            raise InputError(
                f"the patience of hold must lie in 0..{SATURATED}, but {self.patience} was given"
            )

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `Policy.act`; the uniforms are not used."""
        require_states(states, self.world.state_space)
        actions = np.empty(states.shape[0], np.int32)
        shape = self.world.layout.shape
        _best_startable(states, shape, self.knob, self.patience, self.long_job, actions)
        return actions


@dataclass(frozen=True)
class QueuePolicy:
    """Starts jobs in the order of their arrival; first come, first served (FCFS).

    The first job blocks those behind it until it fits. With `backfills` one of them may start
    before it if the first one then starts no later than it would have: EASY backfilling (D. Lifka,
    The ANL/IBM SP scheduling system, 1995), with a reservation in all resources, exact durations,
    and as much of the queue as the slots show.
    """

    world: DeepRM
    name: str
    backfills: bool

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `Policy.act`; the uniforms are not used."""
        require_states(states, self.world.state_space)
        actions = np.empty(states.shape[0], np.int32)
        _first_come(states, self.world.layout.shape, self.backfills, actions)
        return actions


HEURISTICS: Registry[Heuristic] = Registry("heuristic")


_UNNUMBERED: dict[str, Callable[[DeepRM], Policy]] = {
    "random": RandomPolicy,
    "fcfs": lambda world: QueuePolicy(world, "fcfs", backfills=False),
    "easy": lambda world: QueuePolicy(world, "easy", backfills=True),
    "sjf": lambda world: ScorePolicy(world, "sjf", knob=0.0),
    "packer": lambda world: ScorePolicy(world, "packer", knob=1.0),
}
for _name, _make in _UNNUMBERED.items():
    HEURISTICS.register(_name)(Heuristic.unnumbered(_name, _make))


def _tetris(world: DeepRM, argument: str) -> Policy:
    knob = number_of("tetris", argument, float, DEFAULT_KNOB)
    return ScorePolicy(world, f"tetris:{argument}" if argument else "tetris", knob=knob)


def _hold(world: DeepRM, argument: str) -> Policy:
    patience = number_of("hold", argument, int, DEFAULT_PATIENCE)
    name = f"hold:{argument}" if argument else "hold"
    return ScorePolicy(world, name, knob=DEFAULT_KNOB, patience=patience)


HEURISTICS.register("tetris")(
    Heuristic(_tetris, ("0.0005", "0.001", "0.002", "0.005", "0.01", "0.05", "0.5"))
)
HEURISTICS.register("hold")(Heuristic(_hold, ("1", "2", "3", "4", "6", "8", "12", "16", "32")))


@njit_kernel
def _best_startable(
    states: NDArray[np.uint8],
    shape: StateShape,
    knob: float,
    patience: int,
    long_job: int,
    actions: NDArray[np.int32],
) -> None:
    """Writes, for each state, the slot of highest score that can start now, or void."""
    capacity, resources = shape.capacity, shape.capacity.size
    for i in range(states.shape[0]):
        state = states[i]
        best = -np.inf
        actions[i] = shape.num_slots
        for slot in range(shape.num_slots):
            place = shape.slots_at + slot * (1 + resources)
            duration = state[place]
            # Empty, delayed, or without room now.
            if duration == 0 or (duration > long_job and state[shape.since_at] < patience):
                continue
            if first_start(states, i, place, capacity, 0) < 0:
                continue
            # The score is rounded as in the released code: (1 - knob) / duration has other last
            # bits than (1 - knob) * (1 / duration), so that other jobs would tie.
            alignment = 0.0
            for r in range(resources):
                alignment += (capacity[r] - state[r]) * state[place + 1 + r]
            score = knob * alignment + (1.0 - knob) * (1.0 / duration)
            # Strictly better only: the lowest slot wins ties, as there.
            if score > best:
                best = score
                actions[i] = slot


@njit_kernel
def _first_come(
    states: NDArray[np.uint8], shape: StateShape, backfills: bool, actions: NDArray[np.int32]
) -> None:
    """Writes, for each state, the slot of the job that arrived first, if it can start now.

    If it cannot, void; or with `backfills` the slot of the next one that can start now without
    that the first one starts later. The lowest slot wins among jobs that arrived at one instant.
    """
    capacity, num_slots, waited_at = shape.capacity, shape.num_slots, shape.waited_at
    width = 1 + capacity.size
    for i in range(states.shape[0]):
        state = states[i]
        actions[i] = num_slots
        # The head of the queue: the job that has waited longest.
        head = -1
        for slot in range(num_slots):
            if state[shape.slots_at + slot * width] == 0:
                continue
            if head < 0 or state[waited_at + slot] > state[waited_at + head]:
                head = slot
        if head < 0:
            continue
        head_place = shape.slots_at + head * width
        if first_start(states, i, head_place, capacity, 0) == 0:
            actions[i] = head
            continue
        if not backfills:
            continue
        # EASY: the head has a reservation, and the next job that fits beside it starts.
        reserved = first_free(states, i, head_place, capacity, shape.horizon)
        longest = -1
        for slot in range(num_slots):
            if slot == head or state[waited_at + slot] <= longest:
                continue
            place = shape.slots_at + slot * width
            if _fits_beside(state, place, head_place, reserved, capacity):
                longest = int(state[waited_at + slot])
                actions[i] = slot


@njit_inlined
def _fits_beside(
    state: NDArray[np.uint8],
    place: int,
    reserved_place: int,
    reserved: int,
    capacity: NDArray[np.int64],
) -> bool:
    """Whether a job can run from now on, although another one begins at the step `reserved`."""
    resources = capacity.size
    duration, other = np.int64(state[place]), np.int64(state[reserved_place])
    # The reservation holds its units in every resource, from its first step to its last.
    for step in range(duration):
        for r in range(resources):
            used = np.int64(state[step * resources + r]) + state[place + 1 + r]
            if reserved <= step < reserved + other:
                used += state[reserved_place + 1 + r]
            if used > capacity[r]:
                return False
    return bool(duration > 0)
