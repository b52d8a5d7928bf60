"""One rule for every random number of the project.

Each generator comes from ``numpy.random.SeedSequence(run_seed, spawn_key=(purpose, *keys))``, so
that two streams with different purposes or keys are independent, and so that a number depends on
*what* it is drawn for and never on which process draws it or in which order. (The keys are not
put into the entropy itself: numpy pads that with zeros, and keys ``()`` and ``(0,)`` would
collide.) Policies draw from a counter-based stream: the uniform of decision ``i`` of an episode
is a function of the episode's key and ``i`` alone, whatever the batch it is computed in.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.errors import InputError

_AGENT = np.uint64(0xD1342543DE82EF95)  # odd, so that no two agents of an episode share a key
_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 1.0 / (1 << 53)


class Purpose(IntEnum):
    """What a random stream is for. Numbers are part of every published result: never reuse one."""

    TASK = 1
    JOBSET = 2
    ESTIMATES = 3
    POLICY = 4
    INIT = 5
    SHUFFLE = 6
    SWEEP = 7
    EVOLUTION = 8
    FUTURE = 9


class Split(IntEnum):
    """Which jobsets a stream stands for; streams of different splits are independent."""

    TRAIN = 0
    VALIDATION = 1
    HELD_OUT = 2


def generator(run_seed: int, purpose: Purpose, *keys: int) -> np.random.Generator:
    """The generator of a purpose; keys say which, for instance ``(split, jobset index)``.

    Raises:
        InputError: if the seed or a key is negative.
    """
    return np.random.default_rng(_sequence(run_seed, purpose, keys))


def episode_keys(run_seed: int, *keys: int, count: int) -> NDArray[np.uint64]:
    """One key per episode for `uniforms`, uint64 ``(count,)``.

    The keys say what the episodes belong to, for instance ``(split, iteration, unit)``.
    """
    drawn = _sequence(run_seed, Purpose.POLICY, keys).generate_state(count, np.uint64)
    return drawn.astype(np.uint64, copy=False)


def row_keys(keys: NDArray[np.uint64], episode: NDArray[np.int32]) -> NDArray[np.uint64]:
    """A key for each decider: that of its episode for the first one, others for the rest.

    From the keys of the episodes, uint64 ``(num_episodes,)``, and the episode of each decider,
    int32 ``(num_rows,)`` and never decreasing; uint64 ``(num_rows,)``.
    """
    _, first, counts = np.unique(episode, return_index=True, return_counts=True)
    agent = np.arange(episode.size) - np.repeat(first, counts)
    found: NDArray[np.uint64] = keys[episode] + agent.astype(np.uint64) * _AGENT
    return found


@njit(cache=True, inline="always")
def uniform(key: np.uint64, decision: int) -> float:
    """The uniform number in [0, 1) of one decision of one episode (SplitMix64 output function)."""
    # The state of SplitMix64 after so many steps from the key, and then its three mixing rounds.
    z = key + (np.uint64(decision) + np.uint64(1)) * _GOLDEN_GAMMA
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    z = z ^ (z >> np.uint64(31))
    # A double holds 53 bits.
    return float(z >> np.uint64(11)) * _TO_UNIT


@njit(cache=True)
def uniforms(keys: NDArray[np.uint64], decision: int) -> NDArray[np.float64]:
    """The uniform number in [0, 1) of one decision of each episode, float64 ``(num_episodes,)``.

    From keys of `episode_keys` and the index of the decision within its episode.
    """
    out = np.empty(keys.size, np.float64)
    for i in range(keys.size):
        out[i] = uniform(keys[i], decision)
    return out


def _sequence(run_seed: int, purpose: Purpose, keys: tuple[int, ...]) -> np.random.SeedSequence:
    if run_seed < 0 or any(key < 0 for key in keys):
        raise InputError(f"a seed must be 0 or larger, but {run_seed} was given")
    return np.random.SeedSequence(run_seed, spawn_key=(int(purpose), *(int(key) for key in keys)))
