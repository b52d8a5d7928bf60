"""The log of a made-up site: 16 CPUs and 4 GPUs, jobs of minutes to days, long estimates."""

from pathlib import Path

import numpy as np

MACHINE = ("--processors", "16", "--gpus", "4")
LOAD = 0.85


def write_site_log(path: Path, num_jobs: int = 5000, seed: int = 7) -> Path:
    """Writes jobs in seconds; the same for the same seed."""
    rng = np.random.default_rng(seed)
    run = np.clip(np.exp(rng.normal(np.log(1800), 1.6, num_jobs)), 60, 5 * 86_400).astype(int)
    gpus = rng.choice([0, 0, 0, 1, 1, 2, 4], num_jobs)
    with_gpus = np.minimum(2 * gpus + rng.integers(0, 3, num_jobs), 16)
    cpus = np.where(gpus > 0, with_gpus, rng.choice([1, 1, 2, 4, 8, 16], num_jobs))
    at = np.cumsum(rng.exponential(1.0, num_jobs))
    work = max(float((run * cpus).sum()) / 16, float((run * gpus).sum()) / 4)
    arrival = (at / at[-1] * work / LOAD).astype(int)
    estimate = (np.ceil(run * rng.uniform(1, 4, num_jobs) / 900) * 900).astype(int)
    user = rng.choice(["ada", "bob", "cyd", "dan"], num_jobs, p=[0.5, 0.3, 0.15, 0.05])
    rows = zip(arrival, run, estimate, cpus, gpus, user, strict=True)
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(["arrival,duration,estimate,processors,gpus,user", *lines, ""]))
    return path
