"""Ending runs whose process is gone: without this, MLflow would call them running for ever."""

from dataclasses import dataclass
from pathlib import Path

from tune_jobs.terminal.files import FileLock
from tune_jobs.tracking.delivered import LOCK_FILE
from tune_jobs.tracking.process import is_gone
from tune_jobs.tracking.recorded import open_runs
from tune_jobs.tracking.spool import Record, Spool, tracking_dir


@dataclass(frozen=True)
class LostRuns:
    """What became of the runs of a folder that have not ended.

    Attributes:
        killed: names of those that are KILLED now.
        elsewhere: host of the process that they belong to, if nobody here can see whether it still
            lives; empty otherwise.
    """

    killed: tuple[str, ...] = ()
    elsewhere: str = ""


def end_lost_runs(run_dir: Path, *, gone: bool = False) -> LostRuns:
    """Records the end of runs whose process was killed, as of their last record.

    A run of a process on another machine or in another container is left alone, unless somebody
    who knows says that it is gone. As long as a process sends the records of a folder, it lives.

    Args:
        run_dir: folder with the records.
        gone: whether the user says that the process is gone.
    """
    directory = tracking_dir(run_dir)
    spool = Spool(directory)
    left = open_runs(spool)
    lock = FileLock(directory / LOCK_FILE)
    if not left or not lock.acquire(wait=False):
        return LostRuns()
    try:
        opened = spool.of_kind("open")
        process = opened[-1].get("process") if opened else None
        ended = True if gone else is_gone(process)
        if ended is None:
            return LostRuns(elsewhere=(process or {}).get("host") or "an unknown host")
        if not ended:
            return LostRuns()
        for record in reversed(left):  # children before their parents
            _record_end(spool, record)
        return LostRuns(tuple(record["name"] for record in left))
    finally:
        spool.close()
        lock.release()


def _record_end(spool: Spool, started: Record) -> None:
    time = max(
        (record.get("time", 0) for record, _ in spool.read() if record and _of(record, started)),
        default=0,
    )
    key, experiment = started["run"], started["experiment"]
    end: Record = {"kind": "end", "run": key, "time": time, "status": "KILLED"}
    spool.append({**end, "experiment": experiment})


def _of(record: Record, started: Record) -> bool:
    return bool(record.get("run") == started["run"])
