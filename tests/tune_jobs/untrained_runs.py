"""Run directories that nobody trained: small networks with random weights, made-up curves."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.worlds.deeprm.lookups import LookupLayout
from tune_jobs.runs.history import History

UNLIMITED = (
    *("training.limits={}", "training.limits_hold=each", "training.multiplier_rate=0"),
    "training.reference=''",
)
"""A search for a scorer of HPC, `hpc-order`, without limits."""

SMALL_TASK = (
    "task.world.cluster.capacity=[4, 4]",
    "task.world.cluster.horizon=8",
    "task.world.cluster.num_slots=3",
    "task.world.cluster.backlog_view=6",
    "task.workload.window=12",
    "task.workload.small_duration=[1, 2]",
    "task.workload.large_duration=[4, 5]",
    "training.hidden=4",
    "evaluation.jobsets=8",
)


def make_run(
    folder: Path, *overrides: str, seed: int = 0, iterations: int = 6, every: int = 2
) -> Path:
    """Writes what a training run would leave behind, and returns its folder."""
    config = load_config("deeprm", [*SMALL_TASK, f"seed={seed}", *overrides])
    policy = folder / "policy"
    policy.mkdir(parents=True)
    for place in (folder, policy):
        write_config(config, place / "config.yaml")
    world: Any = config.task.world
    cluster = world.cluster
    inputs = LookupLayout(StateLayout(cluster), config.training.since_column).num_inputs
    rng = np.random.default_rng(seed)
    shapes = {
        "hidden_weight": (inputs, config.training.hidden),
        "hidden_bias": (config.training.hidden,),
        "head_weight": (config.training.hidden, cluster.num_actions),
        "head_bias": (cluster.num_actions,),
    }
    weights = {
        name: torch.from_numpy(rng.normal(size=shape).astype(np.float32) / 10)
        for name, shape in shapes.items()
    }
    torch.save(weights, policy / "weights.pt")
    history = History(folder / "metrics.csv")
    for iteration in range(1, iterations + 1):
        row = {"train/return_mean": -60 + 5 * iteration, "train/return_max": -40 + 3 * iteration}
        if iteration % every == 0:
            slowdown = 2 + 6 * math.exp(-iteration / 3) + seed / 10
            row |= {"eval/slowdown": slowdown, "eval/unfinished": 0.0}
        history.append(iteration, row)
    return folder
