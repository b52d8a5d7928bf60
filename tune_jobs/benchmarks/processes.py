"""What the processes below one process hold: memory, descriptors, threads, Python's blocks."""

import importlib
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

TOTAL = "total"
"""The process that stands for all of them together."""

_ROLES = (
    ("ray::UnitEnvRunner", "runner"),
    ("ray::IDLE", "idle worker"),
    ("ray::", "actor"),
    ("raylet/raylet", "raylet"),
    ("gcs_server", "gcs"),
    ("dashboard/agent.py", "agent"),
    ("runtime_env/agent", "environment agent"),
    ("log_monitor.py", "log monitor"),
    ("autoscaler/_private/monitor.py", "autoscaler"),
    ("tune_jobs.train", "driver"),
    ("mlflow", "mlflow"),
)


@dataclass(frozen=True)
class Reading:
    """What a process held at one moment.

    Attributes:
        minutes: since the beginning.
        process: what it is, with a number where there are several: ``runner 2``.
        heap_mib: memory that its programs have asked for and written to; what leaks, leaks here.
        uss_mib: memory that would be free without it. It falls when another process maps the same
            libraries, and rises when that one ends.
        rss_mib: memory that it sees, what it shares included.
        descriptors: open files and sockets.
        threads: of the operating system.
        blocks: of memory that Python has handed out, one or two for each object; NaN where there is
            no Python.
    """

    minutes: float
    process: str
    heap_mib: float
    uss_mib: float
    rss_mib: float
    descriptors: float
    threads: float
    blocks: float


QUANTITIES = tuple(field.name for field in fields(Reading))[2:]


class ProcessSampler:
    """Reads all processes below one, again and again.

    Args:
        root: process whose descendants are read, and not itself.
        counts: folder where each Python process writes its counts; see
            `tune_jobs.benchmarks.counting`.
    """

    def __init__(self, root: int, counts: Path) -> None:
        importlib.import_module("ray")  # puts the psutil that it brings on the path
        self._psutil = importlib.import_module("psutil")
        self._root = self._psutil.Process(root)
        self._counts = counts
        self._names: dict[int, str] = {}
        self._numbers: Counter[str] = Counter()
        self._began = time.monotonic()

    def read(self) -> list[Reading]:
        """One reading of each process, and of all together; one that ends meanwhile is left out."""
        minutes = (time.monotonic() - self._began) / 60
        readings = []
        for process in sorted(self._root.children(recursive=True), key=lambda each: each.pid):
            try:
                readings.append(self._read_one(process, minutes))
            except (self._psutil.Error, OSError):
                continue
        return [*readings, _total(readings, minutes)]

    def _read_one(self, process: Any, minutes: float) -> Reading:
        memory = process.memory_full_info()
        return Reading(
            minutes=minutes,
            process=self._name(process),
            heap_mib=_heap_bytes(process.pid) / 2**20,
            uss_mib=memory.uss / 2**20,
            rss_mib=memory.rss / 2**20,
            descriptors=process.num_fds(),
            threads=process.num_threads(),
            blocks=self._counted(process.pid),
        )

    def _counted(self, pid: int) -> float:
        try:
            return float((self._counts / str(pid)).read_text())
        except (OSError, ValueError):
            return math.nan

    def _name(self, process: Any) -> str:
        """What a process is; an idle worker that has become something else gets a new name."""
        known = self._names.get(process.pid)
        if known is not None and not known.startswith(("idle", "other")):
            return known
        role = role_of(process.cmdline())
        if known is None or not known.startswith(role):
            self._numbers[role] += 1
            self._names[process.pid] = f"{role} {self._numbers[role]}"
        return self._names[process.pid]


def role_of(command: Sequence[str]) -> str:
    """What a process does, by its command line; ``other`` if nobody knows."""
    text = " ".join(command)
    return next((role for word, role in _ROLES if word in text), "other")


def _heap_bytes(pid: int) -> float:
    """Anonymous memory of a process, which psutil does not tell; NaN for one that has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * float(line.split()[1])
    return math.nan


def _total(readings: Sequence[Reading], minutes: float) -> Reading:
    sums = {
        name: math.fsum(v for each in readings if not math.isnan(v := getattr(each, name)))
        for name in QUANTITIES
    }
    return Reading(minutes, TOTAL, **sums)
