"""Tables of jobs that sites publish as Parquet, as records.

* **PM100** (Marconi100 at CINECA, https://doi.org/10.5281/zenodo.10127767; Antici et al., "PM100:
  A Job Power Consumption Dataset of a Large-scale Production HPC System", 2023): the columns of
  Slurm's job table, time limits in minutes, and ``power_consumption``, samples in W over the run.
* **F-DATA** (Fugaku at RIKEN; Antici et al., "F-DATA: A Fugaku Workload Dataset for Job-centric
  Predictive Modelling in HPC Systems", 2025): limits in seconds (``elpl``), and ``avgpcon``, the
  mean in W.

Each job's mean power becomes the attribute ``power``, in whole W; -1 where it is unknown.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.workloads.clock import Clock, Unreadable
from cluster_env.workloads.files import MOST_UNPACKED_LINES
from cluster_env.workloads.numbers import as_shown
from cluster_env.workloads.records import BadRow, Findings, Record, Request, with_times, wrong_value

BEGIN = "PAR1"
"""What files of Parquet begin with."""

_COLUMNS = {
    "PM100": {
        "job": "job_id",
        "state": "job_state",
        "submit": "submit_time",
        "eligible": "eligible_time",
        "start": "start_time",
        "end": "end_time",
        "elapsed": "run_time",
        "limit": "time_limit",
        "processors": "num_cores_alloc",
        "gpus": "num_gpus_alloc",
        "user": "user_id",
        "account": "group_id",
        "partition": "partition",
        "qos": "qos",
        "power": "power_consumption",
    },
    "F-DATA": {
        "job": "jid",
        "state": "exit state",
        "submit": "adt",
        "start": "sdt",
        "end": "edt",
        "elapsed": "duration",
        "limit": "elpl",
        "processors": "cnumat",
        "user": "usr",
        "power": "avgpcon",
    },
}
"""Columns of a table by what they are in a `Record`."""

_OPTIONAL = {"job", "state", "eligible", "elapsed", "gpus", "account", "partition", "qos", "power"}
_TIMES = ("submit", "eligible", "start", "end")
_SECONDS = {"PM100": 60, "F-DATA": 1}  # in one of the column ``limit``
_NO_LIMIT = 2**32 - 2  # and one more: how Slurm counts a limit that there is not
_ROWS = 10_000  # that are in memory at once
_MOST_BYTES = 1 << 30  # of the columns that are read


def read_rows(path: Path, clock: Clock, findings: Findings) -> Iterator[Record]:
    """Records of all rows that are jobs; the others are counted in ``findings``.

    Raises:
        InputError: if it is no Parquet, holds too much, or has the columns of neither table.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            table, columns = _table_of(path, file.schema_arrow.names)
            _require_bounded(path, file.metadata, set(columns.values()))
            for batch in file.iter_batches(_ROWS, columns=list(columns.values())):
                cells = {ours: _values(batch.column(theirs)) for ours, theirs in columns.items()}
                for row in zip(*cells.values(), strict=True):
                    findings.rows += 1
                    try:
                        yield _record(
                            path, table, dict(zip(cells, row, strict=True)), clock, findings
                        )
                    except BadRow as bad:
                        findings.spoil(bad)
                        clock.doubts()  # of a row that counts for nothing else
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {as_shown(str(error))}") from None


def _table_of(path: Path, names: list[str]) -> tuple[str, dict[str, str]]:
    """Name of a table, and those of its columns that the file has."""
    for table, columns in _COLUMNS.items():
        found = {ours: theirs for ours, theirs in columns.items() if theirs in names}
        if columns.keys() - _OPTIONAL <= found.keys():
            return table, found
    needed = " or ".join(
        ", ".join(theirs for ours, theirs in columns.items() if ours not in _OPTIONAL)
        + f" ({table})"
        for table, columns in _COLUMNS.items()
    )
    raise InputError(
        f"{path} has not the columns of a table of jobs that is known: {needed}; write its jobs to "
        "a CSV with the columns arrival, duration and processors, and where known estimate and user"
    )


def _require_bounded(path: Path, metadata: Any, columns: set[str]) -> None:
    """Refuses what would take too much memory: a stranger's file unpacks to any size."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    chunks = [group.column(k) for group in groups for k in range(group.num_columns)]
    num_bytes = sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema.partition(".")[0] in columns
    )
    if metadata.num_rows > MOST_UNPACKED_LINES or num_bytes > _MOST_BYTES:
        raise InputError(
            f"cannot read {path}: it holds {metadata.num_rows:,} rows, {num_bytes:,} bytes in the "
            f"columns of jobs, but at most {MOST_UNPACKED_LINES:,} and {_MOST_BYTES:,} are read"
        )


def _values(column: Any) -> list[Any]:
    """The cells of a column: times that are no text in seconds since 1970, lists as means."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_timestamp(column.type):
        cast = column.cast(pa.timestamp("s", column.type.tz), safe=False)
        return cast.cast(pa.int64()).to_pylist()
    if pa.types.is_list(column.type):
        lengths = compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        values = compute.list_flatten(column).to_numpy(zero_copy_only=False).astype(float)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        sums = np.bincount(owners, np.nan_to_num(values), len(lengths))
        means = sums / np.maximum(lengths, 1)
        return np.where(lengths > 0, means, np.nan).tolist()
    return column.to_pylist()


def _record(
    path: Path, table: str, row: Mapping[str, Any], clock: Clock, findings: Findings
) -> Record:
    """The record of a row, whose number stands for a line."""
    line = findings.rows
    columns = _COLUMNS[table]

    def number(name: str) -> int | None:
        """A whole number, rounded up; None for a cell that is empty, or no number at all."""
        value = row.get(name)
        if value is None or value != value:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**62:
            expected = "a number that is not negative"
            raise wrong_value(path, line, columns[name], expected, str(value))
        return -int(-value // 1)

    def text(name: str) -> str:
        value = row.get(name)
        return "" if value is None else str(value)

    times = []
    for name in _TIMES:
        value = row.get(name)
        try:
            times.append(
                (value,) if value is None or isinstance(value, int) else clock.readings(value)
            )
        except (Unreadable, AttributeError, TypeError) as error:
            expected = str(error) if isinstance(error, Unreadable) else "a time"
            raise wrong_value(path, line, columns[name], expected, str(value)) from None
    findings.doubt(clock.doubts(), line)
    job, limit, processors = text("job"), number("limit"), number("processors") or 0
    power = number("power")
    record = Record(
        line=line,
        job=int(job) if job.isdecimal() and len(job) < 18 else line,
        het=0,
        state=text("state").upper() or "COMPLETED",
        elapsed=number("elapsed"),
        limit=limit * _SECONDS[table] if limit and limit < _NO_LIMIT else None,
        no_limit="UNLIMITED" if limit and limit >= _NO_LIMIT else "",
        held=processors > 0,
        processors=processors,
        memory=None,
        gpus=number("gpus") or 0,
        user=text("user"),
        account=text("account"),
        partition=text("partition"),
        request=_request(text("qos")),
        power=-1 if power is None else power,
    )
    return with_times(record, findings, *times)


@lru_cache(maxsize=1_000)
def _request(qos: str) -> Request:
    """What else a job asked for: one object for all that asked alike."""
    return Request(qos=qos)
