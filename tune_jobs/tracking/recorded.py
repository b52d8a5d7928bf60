"""What a spool says of its runs: points that are recorded already, runs that have not ended."""

import threading
from collections.abc import Mapping
from typing import TypeVar

from tune_jobs.tracking.spool import Record, Spool

T = TypeVar("T")


class RecordedPoints:
    """The points of a spool, so that no metric gets two values at one step.

    A run that is resumed repeats the iterations after its checkpoint. They give the same numbers,
    but take another time, and MLflow would keep both: it tells points apart by their time as well,
    and can delete none. So the first record of a point stands.

    Args:
        spool: is read once, when the first point comes.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._names: dict[tuple[str, int], frozenset[str]] | None = None
        self._shared: dict[frozenset[str], frozenset[str]] = {}  # most steps have the same names

    def add(self, run: str, step: int, metrics: Mapping[str, T]) -> dict[str, T]:
        """Notes points; returns those that are new.

        Args:
            run: our key of the run.
            step: of the points.
            metrics: values by name.
        """
        with self._lock:
            if self._names is None:
                self._names = {}
                for record in self._spool.of_kind("metrics"):
                    self._note(record["run"], record["step"], record["metrics"])
            known = self._names.get((run, step), frozenset())
            new = {name: value for name, value in metrics.items() if name not in known}
            self._note(run, step, new)
            return new

    def _note(self, run: str, step: int, metrics: Mapping[str, object]) -> None:
        assert self._names is not None
        names = self._names.get((run, step), frozenset()).union(metrics)
        self._names[run, step] = self._shared.setdefault(names, names)


def newest_root(spool: Spool) -> Record | None:
    """The ``start`` record of the run of a folder: the newest that is no other's child there."""
    started = {record["run"]: record for record in spool.of_kind("start")}
    roots = [record for record in started.values() if record["parent"] not in started]
    return roots[-1] if roots else None


def open_runs(spool: Spool) -> list[Record]:
    """The ``start`` records of the runs that have begun, or were resumed, and have not ended."""
    started: dict[str, Record] = {}
    running: dict[str, bool] = {}
    for record in spool.of_kind("start", "resume", "end"):
        if record["kind"] == "start":
            started[record["run"]] = record
        running[record["run"]] = record["kind"] != "end"
    return [record for key, record in started.items() if running[key]]
