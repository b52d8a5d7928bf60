"""Job logs of any known format."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.workloads import csv_jobs, parquet, pbs
from cluster_env.workloads.clock import Clock
from cluster_env.workloads.csv_jobs import read_csv_jobs
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.limits import LONGEST, check_missing_limits
from cluster_env.workloads.numbers import as_shown, read_number
from cluster_env.workloads.record_jobs import jobs_of
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.records import Findings, Record
from cluster_env.workloads.shipped import find_log
from cluster_env.workloads.slurm import jobcomp, sacct, sacct_json
from cluster_env.workloads.swf import read_swf

AUTO = "auto"
"""The format that a file seems to have."""

CSV, SWF, SACCT, SACCT_JSON = "csv", "swf", "sacct", "sacct-json"
JOBCOMP, PBS, PARQUET = "jobcomp", "pbs", "parquet"
FORMATS = (AUTO, CSV, SWF, SACCT, SACCT_JSON, JOBCOMP, PBS, PARQUET)
"""Names of the formats."""

READ_OPTIONS = ("log_format", "time_zone", "columns", "partition", "missing_limits")
"""Options of `read_log` that workloads have under the same names."""

Records = Callable[[Path, TextIO, Clock, Findings], Iterator[Record]]
_ACCOUNTING: dict[str, Records] = {
    SACCT: sacct.read_rows,
    SACCT_JSON: sacct_json.read_jobs,
    JOBCOMP: jobcomp.read_lines,
    PBS: pbs.read_lines,
}
_FOREIGN = {
    "LSF (lsb.acct)": re.compile(r'"JOB_[A-Z]+" "[\d.]+" \d+ '),
    "Grid Engine (accounting)": re.compile(r"(#[^\n]*\n)*([^:;|=,\s]*:){30}"),
    "Batsim (JSON)": re.compile(r'\s*\{.*"(nb_res|subtime)"\s*:', re.DOTALL),
    "Philly (JSON)": re.compile(r'\s*\[.*"attempts"\s*:', re.DOTALL),
}
"""How logs begin that are not read, by the names of their formats."""

_FIRST = 100_000  # characters in which the first lines that are not blank begin
_MOST_LINES = 50
"""First lines that are looked at where the very first one is no line of any format."""


@dataclass(frozen=True)
class _Reading:
    """How a file is read, see `read_log`."""

    log_format: str
    time_zone: str
    num_resources: int | None
    columns: str
    partition: str
    missing_limits: str


def read_log(
    path: Path | str,
    log_format: str = AUTO,
    time_zone: str = "",
    num_resources: int | None = None,
    *,
    columns: str = "",
    partition: str | int = "",
    missing_limits: str | int = LONGEST,
) -> RecordedJobs:
    """Reads a log, plain or with gzip.

    The latest files are remembered as long as they do not change.

    Args:
        path: the file, or the name of a log that comes with the package, such as ``example``.
        log_format: one of `FORMATS`. By default what the first lines look like.
        time_zone: of times that name none; by default UTC.
        num_resources: of jobs in a CSV in time steps, where resources have names of one's own; None
            for a CSV in seconds. See `cluster_env.workloads.csv_jobs.read_csv_jobs`.
        columns: of a CSV in seconds, names that differ: ``arrival=submission_time``.
        partition: name or number of the one partition or queue whose jobs are read; none for all.
        missing_limits: what counts for a job without a time limit, see
            `cluster_env.workloads.limits`.

    Raises:
        InputError: if the file cannot be read, too many lines are wrong, or no job can be
            scheduled.
    """
    path = find_log(path)
    if log_format not in FORMATS:
        raise unknown("format of logs", log_format, FORMATS)
    partition, missing_limits = str(partition), str(missing_limits)
    check_missing_limits(missing_limits)
    if log_format == AUTO:
        log_format = _format_of(path, columns)
    version = version_of(path, "the trace" if log_format == CSV else "the log")
    reading = _Reading(log_format, time_zone, num_resources, columns, partition, missing_limits)
    return _read_version(path, *version, reading)


@lru_cache(maxsize=4)
def _read_version(path: Path, modified_ns: int, size: int, reading: _Reading) -> RecordedJobs:
    """The jobs of a version of a file."""
    if reading.columns and (reading.log_format != CSV or reading.num_resources is not None):
        raise InputError(f"--columns is for a CSV in seconds, but {path} is none")
    if reading.log_format == CSV:
        jobs = read_csv_jobs(
            path,
            reading.num_resources,
            time_zone=reading.time_zone,
            columns=reading.columns,
            missing_limits=reading.missing_limits,
        )
    elif reading.log_format == SWF:
        jobs = read_swf(path).jobs(reading.missing_limits)
    elif reading.log_format == PARQUET:
        clock, findings = Clock.of(reading.time_zone), Findings()
        records = parquet.read_rows(path, clock, findings)
        jobs = jobs_of(path, records, findings, reading.missing_limits)
    else:
        clock, findings = Clock.of(reading.time_zone), Findings()
        with opened(path, "the log", newline="\n", errors="replace") as text:
            records = _ACCOUNTING[reading.log_format](path, text, clock, findings)
            jobs = jobs_of(path, records, findings, reading.missing_limits)
    return jobs.of_partition(reading.partition) if reading.partition else jobs


def _format_of(path: Path, columns: str) -> str:
    """The format that a file has by its first lines.

    Raises:
        InputError: if it has none, or something else stands above the log.
    """
    suffixes = path.name.lower().removesuffix(".gz")
    is_csv, is_swf = suffixes.endswith(".csv"), suffixes.endswith(".swf")
    # A pipe or a device is refused here: it would have no end.
    version_of(path, "the trace" if is_csv else "the log")
    with opened(path, "the log", newline="\n", errors="replace") as text:
        begin = text.read(_FIRST)
    if begin.startswith(parquet.BEGIN):
        return PARQUET
    for name, pattern in _FOREIGN.items():
        if pattern.match(begin):
            raise InputError(
                f"{path} is a log of {name}, which is not read; write its jobs to a CSV with the "
                "columns arrival, duration and processors, and where known gpus, wait and user"
            )
    lines = begin.splitlines()
    first = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not first:
        return CSV if is_csv else SWF
    # Names count last, because sites call their exports anything, also .csv.
    number, line = first[0]
    found = _format_of_line(line) or (CSV if is_csv or columns else SWF if is_swf else "")
    if found:
        return found
    for later, text_of_line in first[1:_MOST_LINES]:
        kind = _format_of_line(text_of_line)
        if kind == SWF:  # lines of which some are broken
            return SWF
        if kind:
            raise InputError(
                f"{path}, line {number}: '{as_shown(line)}' is no line of a log, which "
                f"begins in line {later} ({kind}); delete the lines above it, or export it "
                "again, for instance with sacct --parsable2"
            )
    raise InputError(
        f"{path}, line {number}: '{as_shown(line)}' is no line of SWF, PBS or jobcomp, and "
        "no header of a CSV or of sacct; export with sacct --parsable2, or name the format "
        "with --log-format or --columns"
    )


def _format_of_line(line: str) -> str:
    """The format of a file that begins with this line; empty if it is none."""
    if sacct_json.is_begin(line):
        return SACCT_JSON
    if jobcomp.is_line(line):
        return JOBCOMP
    if pbs.is_line(line):
        return PBS
    if csv_jobs.is_header(line):
        return CSV
    # An export without header is an export all the same, and its reader says what it lacks.
    if sacct.is_header(line) or line.count("|") >= 3:
        return SACCT
    cells = line.split()
    is_job = len(cells) >= 17 and all(read_number(cell) is not None for cell in cells[:17])
    return SWF if is_job or line.startswith(";") else ""
