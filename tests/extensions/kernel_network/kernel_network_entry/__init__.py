"""RLScheduler's kernel network (Zhang et al., SC 2020, section IV-B), trained by train.py.

One network of three layers with 32, 16 and 8 units looks at each waiting job by itself: how long it
has waited, its requested time, its processors and whether it fits. A softmax over the jobs decides.

Differences: times are logarithms (`cluster_env.worlds.hpc.features`), since those of logs span six
orders of magnitude. ``HPC-v0`` offers jobs that fit, so that no chosen job blocks the others.
"""

import json
from pathlib import Path

import numpy as np

from cluster_env.core.spec import TRAINING_DATA, Heuristic
from cluster_env.worlds import get_spec

COLUMNS = ("log_waited", "log_estimate", "size", "fits")
UNITS = (len(COLUMNS), 32, 16, 8, 1)


class KernelNetwork:
    name = "kernel-network"

    def __init__(self, world):
        self.world = world
        names, _ = world.feature_names
        self.columns = [names.index(name) for name in COLUMNS]
        file = json.loads(Path(__file__).with_name("weights.json").read_text())
        arrays = {name: np.array(of, np.float32) for name, of in file.items()}
        self.layers = [(arrays[f"weight{k}"], arrays[f"bias{k}"]) for k in range(len(UNITS) - 1)]

    def act(self, states, uniforms):
        seen = self.world.features(states)
        # Of so many jobs that wait, the rest of the queue is empty places.
        most = max(int(seen.items[:, :, 0].sum(axis=1).max()), 1)
        allowed, hidden = seen.allowed[:, :most], seen.items[:, :most, self.columns]
        for number, (weight, bias) in enumerate(self.layers):
            hidden = hidden @ weight.T + bias
            hidden = np.maximum(hidden, 0) if number < len(self.layers) - 1 else hidden
        scores = np.where(allowed, hidden[:, :, 0], -np.inf)
        nobody = ~allowed.any(axis=1)
        return np.where(nobody, self.world.queue, scores.argmax(axis=1)).astype(np.int32)


TRAINING_DATA.register(KernelNetwork.name)(())  # generated jobs alone
get_spec("hpc").heuristics.register(KernelNetwork.name)(
    Heuristic.unnumbered(KernelNetwork.name, KernelNetwork)
)
