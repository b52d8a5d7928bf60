"""What the controller's log says: when jobs were submitted, released, started and ended.

So it shows whether a real Slurm started jobs in the order in which a steerer released them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.slurm.private_slurm import PrivateSlurm
from tune_jobs.site.journal import read_journal

_LINE = re.compile(r"\[([\d:.T-]+)\] (.*?JobId=(\d+).*)")
_SAYS = {
    "submit": "_slurm_rpc_submit_batch_job: ",
    "release": "release hold on ",
    "start": "sched: Allocate ",
    "backfill": "_start_job: Started ",
    "end": "_job_complete: ",
}


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
    started = [job for job in times(slurm, "start") if job in tick]
    order = [tick[job] for job in started]
    pairs = sum(one > other for k, one in enumerate(order) for other in order[k + 1 :])
    return Order(len(tick), len(started), pairs, reheld, len(ticks))


def times(slurm: PrivateSlurm, event: str) -> dict[int, float]:
    """When something last happened to each job, in seconds with milliseconds.

    Args:
        slurm: whose log is read.
        event: ``submit``, ``release``, ``start`` or ``end``.

    Returns:
        Times by the number of the job, in the order of the log.
    """
    return {job: time for said, job, time in _events(slurm) if said == event}


def _events(slurm: PrivateSlurm) -> Iterator[tuple[str, int, float]]:
    for line in (slurm.folder / "slurmctld.log").read_text(errors="replace").splitlines():
        if found := _LINE.match(line):
            for event, words in _SAYS.items():
                if words in found[2]:
                    name = "start" if event == "backfill" else event
                    yield name, int(found[3]), datetime.fromisoformat(found[1]).timestamp()
