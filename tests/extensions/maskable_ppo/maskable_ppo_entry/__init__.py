"""sb3-contrib's MaskablePPO, trained on ``HPC-v0`` by train.py: its actor alone, with numpy."""

import json
from pathlib import Path

import numpy as np

from cluster_env.core.spec import TRAINING_DATA, Heuristic
from cluster_env.worlds import get_spec

QUEUE = 32
"""Jobs that the network sees, of those that the world shows."""


class MaskablePPOPolicy:
    name = "maskable-ppo"

    def __init__(self, world):
        self.world = world
        file = json.loads(Path(__file__).with_name("weights.json").read_text())
        arrays = {name: np.array(of, np.float16).astype(np.float32) for name, of in file.items()}
        self.layers = [(arrays[f"weight{k}"], arrays[f"bias{k}"]) for k in range(3)]

    def act(self, states, uniforms):
        seen = self.world.features(states)
        items, allowed = seen.items[:, :QUEUE], seen.allowed[:, :QUEUE]
        hidden = np.hstack([items.reshape(len(items), -1), seen.context])
        for number, (weight, bias) in enumerate(self.layers):
            hidden = hidden @ weight.T + bias
            hidden = np.tanh(hidden) if number < 2 else hidden
        # Waiting is the last action of the network, and of the world, which shows more jobs.
        allowed = np.hstack([allowed, seen.allowed[:, -1:] | ~allowed.any(axis=1, keepdims=True)])
        chosen = np.where(allowed, hidden, -np.inf).argmax(axis=1)
        return np.where(chosen == QUEUE, self.world.queue, chosen).astype(np.int32)


TRAINING_DATA.register(MaskablePPOPolicy.name)(())  # generated jobs alone
get_spec("hpc").heuristics.register(MaskablePPOPolicy.name)(
    Heuristic.unnumbered(MaskablePPOPolicy.name, MaskablePPOPolicy)
)
