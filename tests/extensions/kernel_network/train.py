"""Trains the entry by PPO and writes its weights: ``python train.py OUT.json [ITERATIONS]``.

Several episodes of each jobset are played. What a decision is worth is the return that follows it
less the mean of the episodes of its jobset at the same place, as a share of what the jobset costs.
The paper has a value network instead.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from cluster_env.core.seeding import Split
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.hpc.workloads import LublinWorkload
from cluster_env.worlds.hpc.world import HPC

COLUMNS, UNITS = ("log_waited", "log_estimate", "size", "fits"), (4, 32, 16, 8, 1)
JOBSETS, EPISODES, ITERATIONS, EPOCHS, CLIP = 4, 8, 200, 4, 0.2
WORLD, WORKLOAD = HPC(), LublinWorkload(jobs=256, load=1.0, estimates="tsafrir")


def network():
    layers = []
    for k in range(len(UNITS) - 1):
        layers += [nn.Linear(UNITS[k], UNITS[k + 1]), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def play(kernel, jobsets, rng):
    """Views, masks, choices and their worth, of all decisions among several jobs."""
    simulator = WORLD.simulator()
    simulator.load(jobsets, get_objective("bounded_slowdown"), EPISODES)
    names, _ = WORLD.feature_names
    columns = [names.index(name) for name in COLUMNS]
    rewards, steps = np.zeros(simulator.num_rows), []
    rows = np.flatnonzero(simulator.active).astype(np.int32)
    while rows.size:
        seen = WORLD.features(simulator.states[rows])
        jobs, allowed = seen.items[:, :, columns].copy(), seen.allowed[:, :-1].copy()
        with torch.no_grad():
            logits = kernel(torch.from_numpy(jobs))[:, :, 0].numpy()
        noise = rng.gumbel(size=logits.shape)  # the largest sum is a draw of the softmax
        chosen = np.where(allowed, logits + noise, -np.inf).argmax(axis=1)
        actions = np.where(allowed.any(axis=1), chosen, WORLD.queue).astype(np.int32)
        simulator.step(rows, actions, rewards)
        steps.append((rows, jobs, allowed, chosen, rewards[rows].copy()))
        rows = np.flatnonzero(simulator.active).astype(np.int32)
    paid = np.zeros((len(steps), simulator.num_rows))
    for number, (rows, *_, reward) in enumerate(steps):
        paid[number, rows] = reward
    left = paid[::-1].cumsum(axis=0)[::-1].reshape(len(steps), len(jobsets), EPISODES)
    worth = (left - left.mean(axis=2, keepdims=True)) / -left[:1].mean(axis=2, keepdims=True)
    worth = worth.reshape(len(steps), -1)
    worth = np.concatenate([worth[k, rows] for k, (rows, *_) in enumerate(steps)])
    jobs, allowed, chosen = (np.concatenate([step[k] for step in steps]) for k in (1, 2, 3))
    matters = allowed.sum(axis=1) > 1
    worth = worth[matters] / (worth[matters].std() + 1e-9)
    columns = jobs[matters], allowed[matters], chosen[matters], worth.astype(np.float32)
    return [torch.from_numpy(column) for column in columns], -left[0].mean() / jobsets[0].num_jobs


def train(out, iterations=ITERATIONS):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng, kernel = np.random.default_rng(0), network()
    optimizer = torch.optim.Adam(kernel.parameters(), lr=1e-3)
    for iteration in range(iterations):
        first = iteration * JOBSETS
        jobsets = sample_jobsets(WORKLOAD, 0, Split.TRAIN, range(first, first + JOBSETS))
        (jobs, allowed, chosen, worth), slowdown = play(kernel, jobsets, rng)
        before = None
        for _ in range(EPOCHS):
            logits = kernel(jobs)[:, :, 0].masked_fill(~allowed, -1e9)
            chances = torch.log_softmax(logits, dim=1).gather(1, chosen[:, None])[:, 0]
            before = chances.detach() if before is None else before
            ratio = torch.exp(chances - before)
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            loss = -torch.minimum(ratio * worth, clipped * worth).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{iteration}: mean bounded slowdown {slowdown:.2f}", flush=True)
    layers = [layer for layer in kernel if isinstance(layer, nn.Linear)]
    arrays = {f"weight{k}": layer.weight.detach().numpy() for k, layer in enumerate(layers)}
    arrays |= {f"bias{k}": layer.bias.detach().numpy() for k, layer in enumerate(layers)}
    Path(out).write_text(json.dumps({name: array.tolist() for name, array in arrays.items()}))


if __name__ == "__main__":
    train(sys.argv[1], int((sys.argv[2:] or [ITERATIONS])[0]))
    print(f"CPU {time.process_time():.0f} s")
