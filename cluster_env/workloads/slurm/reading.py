"""Which of Slurm's formats a file is, and the jobs in it."""

from functools import lru_cache
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.slurm.jobcomp import is_line, read_lines
from cluster_env.workloads.slurm.jobs import jobs_of
from cluster_env.workloads.slurm.record import Findings
from cluster_env.workloads.slurm.sacct import is_header, read_rows
from cluster_env.workloads.slurm.values import Clock

SACCT, JOBCOMP = "sacct", "jobcomp"
"""Names of the formats."""

_READERS = {SACCT: read_rows, JOBCOMP: read_lines}


def looks_like(line: str) -> str:
    """The format of a file that begins with this line; empty if it is none of Slurm's."""
    if is_line(line):
        return JOBCOMP
    # An export without header is an export all the same, and its reader says what it lacks.
    return SACCT if is_header(line) or line.count("|") >= 3 else ""


def read_slurm_jobs(path: Path | str, kind: str, time_zone: str = "") -> RecordedJobs:
    """Reads jobs; the latest files are remembered as long as they do not change.

    Args:
        path: the file, plain or compressed with gzip.
        kind: `SACCT` or `JOBCOMP`.
        time_zone: of times that name none, such as ``Europe/Berlin``; by default UTC.

    Raises:
        InputError: if the file cannot be read, a value is wrong (it names line and field), or no
            job can be scheduled.
    """
    path = Path(path)
    return _read_version(path, *version_of(path, "the log"), kind, time_zone)


@lru_cache(maxsize=4)
def _read_version(
    path: Path, modified_ns: int, size: int, kind: str, time_zone: str
) -> RecordedJobs:
    clock, findings = Clock.of(time_zone), Findings()
    with opened(path, "the log", newline="\n", errors="replace") as text:
        jobs = jobs_of(path, _READERS[kind](path, text, clock, findings), findings)
    if not findings.rows:
        raise InputError(f"{path} holds no job")
    return jobs
