"""Tables that sites publish as Parquet: PM100's and F-DATA's columns become jobs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads import parquet
from cluster_env.workloads.formats import read_log

T0 = 1_600_000_000
Table = dict[str, Sequence[Any]]


def pm100() -> Table:
    """Four jobs: one without power, one without a limit, and one that never ran."""
    at = [datetime.fromtimestamp(T0 + s, UTC) for s in (0, 10, 20, 30, 40, 100, 400, 4000)]
    return {
        "job_id": [7, 8, 9, 10],
        "job_state": ["COMPLETED", "TIMEOUT", "FAILED", "CANCELLED"],
        "submit_time": at[:4],
        "eligible_time": [at[0], at[1], at[3], at[3]],
        "start_time": [at[3], at[1], at[4], None],
        "end_time": [at[6], at[7], at[5], None],
        "run_time": [370, 3990, 60, 0],
        "time_limit": [10, 60, 2**32 - 1, 5],
        "num_cores_alloc": [128, 32, 4, 0],
        "num_gpus_alloc": [0, 4, 0, 0],
        "user_id": [3, 5, 3, 3],
        "group_id": [1, 1, 2, 2],
        "partition": ["0", "1", "0", "0"],
        "qos": ["a", "b", "a", "a"],
        "power_consumption": [[1000, 1101], [], [10, 20, 31], None],
        "shared": ["0"] * 4,
    }


def f_data() -> Table:
    return {
        "jid": ["jid_1", "jid_2"],
        "usr": ["usr_0", "usr_1"],
        "exit state": ["completed", "failed"],
        "adt": ["2020-09-13 12:26:40+00:00", "2020-09-13 21:26:50+09:00"],
        "sdt": ["2020-09-13 12:26:45+00:00", "2020-09-13 21:27:50+09:00"],
        "edt": ["2020-09-13 12:36:45+00:00", "2020-09-13 21:28:50+09:00"],
        "duration": [600.0, 60.0],
        "elpl": [3600.0, 100.5],
        "cnumat": [96, 48],
        "avgpcon": [200.2, None],
    }


def write(path: Path, table: Table) -> Path:
    pq.write_table(pa.table(table), path)
    return path


def test_a_table_like_pm100_is_read(tmp_path: Path) -> None:
    jobs = read_log(write(tmp_path / "jobs.parquet", pm100()))
    assert (jobs.submit - T0).tolist() == [0, 10, 30]
    assert jobs.wait is not None
    assert jobs.wait.tolist() == [30, 0, 10]
    assert jobs.run.tolist() == [370, 3990, 60]
    assert jobs.estimate.tolist() == [600, 3600, 3600]  # the longest of the log where there is none
    assert jobs.resources == ("processors", "gpus")
    assert jobs.demand.tolist() == [[128, 0], [32, 4], [4, 0]]
    assert jobs.names["user"][jobs.ids["user"]].tolist() == ["3", "5", "3"]
    assert [(one.reason, one.count) for one in jobs.dropped] == [
        ("was cancelled before it started", 1)
    ]
    assert jobs.jobset().attributes["power"].tolist() == [1051, -1, 21]


def test_a_table_like_f_data_is_read_whatever_its_file_is_called(tmp_path: Path) -> None:
    jobs = read_log(write(tmp_path / "23_06.csv", f_data()))
    assert (jobs.submit - T0).tolist() == [0, 10]
    assert jobs.wait is not None
    assert jobs.wait.tolist() == [5, 60]
    assert jobs.estimate.tolist() == [3600, 101]
    assert jobs.attributes["power"].tolist() == [201, -1]
    assert jobs.details["failed"].tolist() == [0, 1]


def test_power_stays_with_its_job_through_more_batches_than_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_ROWS", 2)
    whole = read_log(write(tmp_path / "a.parquet", pm100()))
    np.testing.assert_array_equal(whole.attributes["power"], [1051, -1, 21])


@pytest.mark.parametrize(
    ("column", "good", "bad", "says"),
    [
        ("run_time", 370, -1, "run_time must be a number that is not negative, not '-1'"),
        ("submit_time", str(T0), "noon", "submit_time must be a time like"),
    ],
)
def test_a_wrong_cell_is_counted_and_too_many_are_refused(
    tmp_path: Path, column: str, good: object, bad: object, says: str
) -> None:
    table = {name: [cells[0]] * 40 for name, cells in pm100().items()}
    table |= {"job_id": list(range(40)), column: [bad] * 40}
    with pytest.raises(InputError, match=says):
        read_log(write(tmp_path / "all.parquet", table))
    jobs = read_log(write(tmp_path / "one.parquet", table | {column: [bad] + [good] * 39}))
    assert [one.count for one in jobs.dropped] == [1]
    assert jobs.num_jobs == 39


def test_other_tables_and_broken_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="has not the columns of a table of jobs that is known"):
        read_log(write(tmp_path / "other.parquet", {"a": [1]}))
    whole = write(tmp_path / "whole.parquet", pm100()).read_bytes()
    for name, content in {
        "cut": whole[:200],
        "garbled": whole[:900] + b"x" * 99 + whole[999:],
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"cannot read .*{name}"):
            read_log(tmp_path / name)
    monkeypatch.setattr(parquet, "_MOST_BYTES", 100)
    with pytest.raises(InputError, match="bytes in the columns of jobs"):
        read_log(tmp_path / "whole.parquet", missing_limits="run-time")
