"""Job logs of any known format."""

from functools import lru_cache
from pathlib import Path

from cluster_env.core.registry import unknown
from cluster_env.workloads.clock import Clock
from cluster_env.workloads.csv_jobs import read_csv_jobs
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.record_jobs import jobs_of
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.records import Findings
from cluster_env.workloads.slurm import jobcomp, sacct
from cluster_env.workloads.swf import read_swf_jobs

AUTO = "auto"
"""The format that a file seems to have."""

CSV, SWF, SACCT, JOBCOMP = "csv", "swf", "sacct", "jobcomp"
FORMATS = (AUTO, CSV, SWF, SACCT, JOBCOMP)
"""Names of the formats."""

_OF_SLURM = {SACCT: sacct.read_rows, JOBCOMP: jobcomp.read_lines}
_FIRST = 100_000  # characters in which the first line that is not blank begins


def read_log(
    path: Path | str, log_format: str = AUTO, time_zone: str = "", num_resources: int | None = None
) -> RecordedJobs:
    """Reads a log, plain or with gzip.

    The latest files are remembered as long as they do not change.

    Args:
        path: the file.
        log_format: one of `FORMATS`. What Slurm writes is known by its first line; of the others,
            ``.csv`` and ``.csv.gz`` are CSV, and anything else is SWF.
        time_zone: of times that name none, in what Slurm writes; by default UTC.
        num_resources: of jobs in a CSV in time steps, where resources have names of one's own; None
            for a CSV in seconds. See `cluster_env.workloads.csv_jobs.read_csv_jobs`.

    Raises:
        InputError: if the file cannot be read, a line is wrong, or no job can be scheduled.
    """
    path = Path(path)
    if log_format not in FORMATS:
        raise unknown("format of logs", log_format, FORMATS)
    if log_format == AUTO:
        is_csv = path.name.lower().endswith((".csv", ".csv.gz"))
        # A pipe or a device is refused here: it would have no end.
        version_of(path, "the trace" if is_csv else "the log")
        with opened(path, "the log", newline="\n", errors="replace") as text:
            line = text.read(_FIRST).lstrip().partition("\n")[0]
        # Slurm's formats go first, because sites call their exports anything, also .csv.
        log_format = _of_slurm(line) or (CSV if is_csv else SWF)
    if log_format == CSV:
        return read_csv_jobs(path, num_resources)
    if log_format == SWF:
        return read_swf_jobs(path)
    return _read_slurm_version(path, *version_of(path, "the log"), log_format, time_zone)


def _of_slurm(line: str) -> str:
    """The format of a file that begins with this line; empty if it is none of Slurm's."""
    if jobcomp.is_line(line):
        return JOBCOMP
    # An export without header is an export all the same, and its reader says what it lacks.
    return SACCT if sacct.is_header(line) or line.count("|") >= 3 else ""


@lru_cache(maxsize=4)
def _read_slurm_version(
    path: Path, modified_ns: int, size: int, log_format: str, time_zone: str
) -> RecordedJobs:
    clock, findings = Clock.of(time_zone), Findings()
    with opened(path, "the log", newline="\n", errors="replace") as text:
        jobs = jobs_of(
            path, _OF_SLURM[log_format](path, text, clock, findings), findings, "longest"
        )
    return jobs
