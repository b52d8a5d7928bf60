"""Trains the entry and writes its weights: ``python train.py OUT.json [STEPS]``."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger

import cluster_env  # noqa: F401  registers the environments

OPTIONS = {
    "world": {"kind": "hpc", "queue": 32},
    "workload": {"kind": "lublin", "jobs": 128, "load": 1.0, "estimates": "tsafrir"},
    "observation": "flat",
    "reward_scale": 0.001,
}
STEPS = 200_000


def train(out, steps=STEPS):
    torch.set_num_threads(1)
    model = MaskablePPO(
        "MlpPolicy",
        make_vec_env("HPC-v0", n_envs=8, seed=0, env_kwargs=OPTIONS),
        n_steps=256,
        batch_size=256,
        learning_rate=3e-4,
        gamma=1.0,
        gae_lambda=0.97,
        seed=0,
        device="cpu",
    )
    model.set_logger(Logger(folder=None, output_formats=[]))  # its own leaves a folder behind
    model.learn(steps)
    actor = [model.policy.mlp_extractor.policy_net[k] for k in (0, 2)] + [model.policy.action_net]
    arrays = {}
    for number, layer in enumerate(actor):
        arrays[f"weight{number}"] = layer.weight.detach().numpy().astype(np.float16)
        arrays[f"bias{number}"] = layer.bias.detach().numpy().astype(np.float16)
    Path(out).write_text(json.dumps({name: array.tolist() for name, array in arrays.items()}))


if __name__ == "__main__":
    train(sys.argv[1], int((sys.argv[2:] or [STEPS])[0]))
    print(f"CPU {time.process_time():.0f} s")
