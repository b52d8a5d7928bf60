"""The simulator beside a real Slurm: when it starts the jobs that limited.py has recorded.

python -m tests.slurm.replayed tests/slurm/recorded
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cluster_env.evaluation import evaluate
from cluster_env.sites.reading import read_site
from cluster_env.sites.recorded_jobs import on_site
from cluster_env.sites.weights import Weights
from cluster_env.workloads.formats import read_log
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from tests.slurm.limited import INTERVAL_S

FILES = ("slurm.conf", "qos.txt", "assoc.txt", "reservations.txt")
RULE = "priority:conservative"


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

    def share_of_waiting(self, seconds: int) -> float:
        """The same of those that waited for longer than that."""
        return float((np.abs(self.late) <= seconds)[self.waited > seconds].mean())


def replay(folder: Path) -> Replayed:
    """Plays a record on the site that Slurm's own files describe."""
    site = read_site(",".join(str(folder / name) for name in FILES))
    log = on_site(read_log(folder / "sacct.txt"), site)
    jobset = log.jobset()
    weights = site.weights
    assert isinstance(weights, Weights)
    processors, memory, gpus = map(int, site.capacity)
    world = HPC(processors=processors, memory=memory, gpus=gpus, site=site, priority=weights)
    schedule = evaluate(get_heuristic(RULE, world), [jobset], world)
    start = np.full(jobset.num_jobs, -1)
    start[schedule.job] = schedule.start
    assert log.wait is not None
    return Replayed(log.line, log.wait, start - jobset.arrival - log.wait)


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        found = replay(folder)
        for job, waited, late in zip(found.job, found.waited, found.late, strict=True):
            if abs(late) > INTERVAL_S:
                print(f"line {job}: waited {waited} s, is {late} s later in the simulator")
        shares = f"{found.share_within(INTERVAL_S):.3f} of {found.late.size} jobs, "
        shares += f"{found.share_of_waiting(INTERVAL_S):.3f} of those that waited for longer"
        print(f"{folder}: within {INTERVAL_S} s {shares}")
