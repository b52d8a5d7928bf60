"""The simulator beside a real Slurm: when it starts the jobs that limited.py has recorded."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cluster_env.evaluation import evaluate
from cluster_env.workloads.formats import read_log
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Weights
from cluster_env.worlds.hpc.site.reading import read_site
from cluster_env.worlds.hpc.site.recorded_jobs import on_site

FILES = ("slurm.conf", "qos.txt", "assoc.txt", "reservations.txt")
RULE = "priority:conservative"
HELD_ON_S = 1
"""Slurm starts jobs in passes, one a second, so what ends makes room at the next pass."""


@dataclass(frozen=True)
class Replayed:
    """Jobs in the order of the log.

    Attributes:
        job: int64 ``(num_jobs,)``, the line of each in the log.
        waited: int64 ``(num_jobs,)``, seconds that each waited at Slurm.
        late: int64 ``(num_jobs,)``, seconds by which the simulator starts it later than Slurm did.
    """

    job: NDArray[np.int64]
    waited: NDArray[np.int64]
    late: NDArray[np.int64]

    def share_within(self, seconds: int) -> float:
        """Share of the jobs whose starts differ by no more."""
        return float((np.abs(self.late) <= seconds).mean())


def replay(folder: Path, held_on_s: int = HELD_ON_S) -> Replayed:
    """Plays a record with what Slurm says of itself.

    Args:
        folder: the record.
        held_on_s: seconds for which a job holds its nodes beyond its end.
    """
    site = read_site(",".join(str(folder / name) for name in FILES))
    log = on_site(read_log(folder / "sacct.txt"), site)
    jobset = log.jobset()
    jobset = replace(jobset, duration=jobset.duration + held_on_s)
    weights = site.weights
    assert isinstance(weights, Weights)
    capacity = dict(zip(site.resources, map(int, site.capacity), strict=True))
    world = HPC(site=site, priority=weights, **capacity)
    schedule = evaluate(get_heuristic(RULE, world), [jobset], world)
    start = np.full(jobset.num_jobs, -1)
    start[schedule.job] = schedule.start
    assert log.wait is not None
    return Replayed(log.line, log.wait, start - jobset.arrival - log.wait)
