"""Actors that an advisor makes, each once, when its specification is first seen."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.world import State
from meta.panda.advisor import TREES, PolicyAdvisor

_SPEC = slice(1, 6)
"""Where a state has the specification: left, cores, memory, core type and topology."""
_MOST_SEEN = 100_000

Inputs = dict[bytes, NDArray[np.float32]]


class Actors:
    """The weights of the actors that rows of states act with.

    Args:
        network: the advisor; its weights are read once.
        world: where it acts.
    """

    def __init__(self, network: PolicyAdvisor, world: Any) -> None:
        self._network, self._world = network, world
        weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
        self._shared = weights["shared"]
        self._weights = weights
        self._of: dict[bytes, int] = {}
        self.thetas = self._shared[None] if network.kind == "none" else self._shared[None][:0]
        topology = b""
        if network.kind in TREES:
            topology = b"".join(
                weights[f"tree_{name}"].tobytes() for name in ("statistics", "parent", "model")
            )
        # What an advisor sees does not depend on what a search changes: candidates see the same.
        self._seen = _seen_by(world, topology)

    def of(self, states: State) -> NDArray[np.int64]:
        """Places in ``thetas`` of the actors of some rows, int64 ``(n,)``; new ones are made."""
        if self._network.kind == "none":
            return np.zeros(len(states), np.int64)
        specs = np.ascontiguousarray(states[:, _SPEC])
        keys = specs.view(np.dtype((np.void, specs.shape[1] * specs.itemsize)))[:, 0].tolist()
        new = {key: row for row, key in enumerate(keys) if key not in self._of}
        if new:
            self._of.update(
                zip(new, range(len(self.thetas), len(self.thetas) + len(new)), strict=True)
            )
            self.thetas = np.concatenate([self.thetas, self._made(states, new)])
        return np.array([self._of[key] for key in keys], np.int64)

    def _made(self, states: State, new: dict[bytes, int]) -> NDArray[np.float64]:
        """Weights of new actors; see `PolicyAdvisor.advise`, which it is in numpy."""
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        self._look(states, [(key, row) for key, row in new.items() if key not in self._seen])
        seen = np.stack([self._seen[key] for key in new]).astype(np.float64)
        given, bias, made = (self._weights[name] for name in ("given", "bias", "made"))
        size = given.shape[0]
        units = np.maximum(seen[:, :size] @ given + bias, 0.0)
        if self._network.kind in TREES:
            units *= np.repeat(seen[:, size:], self._network.units, axis=1)
        return np.asarray(self._shared + (units @ made) * made.shape[0] ** -0.5)

    def _look(self, states: State, unknown: list[tuple[bytes, int]]) -> None:
        """Finds the specification as the advisor sees it, and the gates of the tree."""
        if not unknown:
            return
        rows = [row for _, row in unknown]
        context = torch.from_numpy(self._world.features(states[rows]).context)
        parts = [context[:, self._network.columns]]
        if self._network.kind in TREES:
            parts.append(self._network.gates(parts[0]))
        found = torch.cat(parts, dim=1).numpy()
        self._seen.update((key, found[k]) for k, (key, _) in enumerate(unknown))


@lru_cache(maxsize=4)
def _seen_by(world: Any, topology: bytes) -> Inputs:
    """What advisors with a topology have seen in a world, by specification."""
    return {}
