"""A small CSV file of jobs, as a user might bring along."""

from pathlib import Path

import numpy as np

JOBS_PER_100_STEPS = 40


def make_trace(path: Path, steps: int = 500, first: int = 0, seed: int = 0) -> Path:
    """Writes jobs that a cluster of 10 and 10 units with a horizon of 20 can run.

    The first job arrives at step `first`, the last one `steps` - 1 later; their lines are not in
    the order of their arrival.
    """
    rng = np.random.default_rng(seed)
    inside = rng.choice(np.arange(1, steps - 1), steps * JOBS_PER_100_STEPS // 100 - 2)
    arrival = first + rng.permutation([0, *inside, steps - 1])
    duration = np.where(rng.random(arrival.size) < 0.8, 2, 12)
    demand = rng.integers(1, 8, (arrival.size, 2))
    rows = np.column_stack([arrival, duration, demand])
    lines = ["arrival,duration,cpu,memory", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
