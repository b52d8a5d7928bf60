"""Whether a real Slurm started jobs in the order in which a steerer released them."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.private_slurm import PrivateSlurm
from tune_jobs.site.journal import read_journal


@dataclass(frozen=True)
class Order:
    """What became of decisions.

    Attributes:
        released: jobs that were released.
        started: of these, those that the controller says it has started.
        reversed: pairs of jobs of two ticks, of which the one that was released at the later tick
            started first. The tick of a job is that of its last release before it started. What
            one tick released may start in any order.
        reheld: how often a job was held again.
        ticks: at which something was released.
    """

    released: int
    started: int
    reversed: int
    reheld: int
    ticks: int


def order_of(journal: Path, slurm: PrivateSlurm) -> Order:
    """Compares a steerer's record with the log of the controller, which has milliseconds."""
    tick: dict[int, int] = {}
    reheld, ticks = 0, Counter[int]()
    for entry in read_journal(journal):
        reheld += len(entry.get("rehold", ()))
        for job in entry.get("release", ()):
            tick[int(job)] = entry["tick"]
            ticks[entry["tick"]] += 1
    started = [job for job in dict.fromkeys(_starts(slurm)) if job in tick]
    order = [tick[job] for job in started]
    pairs = sum(one > other for k, one in enumerate(order) for other in order[k + 1 :])
    return Order(len(tick), len(started), pairs, reheld, len(ticks))


def _starts(slurm: PrivateSlurm) -> list[int]:
    lines = (slurm.folder / "slurmctld.log").read_text(errors="replace").splitlines()
    return [
        int(line.partition("JobId=")[2].split()[0])
        for line in lines
        if "JobId=" in line and (" Allocate " in line or "Started JobId" in line)
    ]
