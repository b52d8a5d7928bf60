"""What sacct --json writes is what sacct --parsable2 writes of the same jobs."""

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.recorded import RecordedJobs

T0 = 1_780_000_000


def job(number: int = 1, **changes: Any) -> dict[str, Any]:
    held = [
        {"type": "cpu", "name": "", "count": 4},
        {"type": "mem", "name": "", "count": 2048},
        {"type": "gres", "name": "gpu", "count": 2},
        {"type": "gres", "name": "gpu:a100", "count": 2},
    ]
    times = {"submission": T0, "eligible": T0 + 5, "start": T0 + 25, "end": T0 + 85, "elapsed": 60}
    return {
        **{"job_id": number, "user": "ada", "account": "bio", "partition": "main"},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {**times, "limit": {"set": True, "infinite": False, "number": 30}},
        "tres": {"allocated": held, "requested": held},
        "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}},
        "het": {"job_id": 0, "job_offset": {"set": False, "number": 0}},
        "steps": [{"step": {"id": f"{number}.batch"}, "state": "COMPLETED"}],
        **changes,
    }


def read(folder: Path, *jobs: Any, indent: int | None = 2) -> RecordedJobs:
    path = folder / "jobs.json"
    path.write_text(json.dumps({"meta": {"plugin": {}}, "jobs": jobs, "errors": []}, indent=indent))
    return read_log(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_nested_fields_make_the_job(tmp_path: Path, indent: int | None) -> None:
    jobs = read(tmp_path, job(), indent=indent)
    assert jobs.wait is not None
    numbers = [jobs.submit[0], jobs.wait[0], jobs.run[0], jobs.estimate[0], *jobs.demand[0]]
    assert numbers == [T0 + 5, 20, 60, 1800, 4, 2048, 2]
    assert [jobs.names[name].tolist() for name in ("user", "group", "queue")] == [
        ["ada"],
        ["bio"],
        ["main"],
    ]
    assert {one.what for one in jobs.noticed} == {
        "names the type of its GPUs: counted once",
        "was eligible later than submitted: arrives then",
    }


def test_older_forms_of_states_limits_and_arrays_are_read(tmp_path: Path) -> None:
    times = job()["time"]
    waiting = {**times, "start": 0, "end": 0, "elapsed": 0}
    jobs = read(
        tmp_path,
        job(1, state="FAILED", time={**times, "limit": 30}),
        job(2, time={**times, "limit": {"set": False, "infinite": True, "number": 0}}),
        job(3, array={"job_id": 9, "task_id": {"set": True, "number": 3}}),
        job(4, het={"job_id": 4, "job_offset": {"set": True, "number": 0}}),
        job(5, het={"job_id": 4, "job_offset": {"set": True, "number": 1}}),
        job(6, state={"current": ["PENDING"]}, time=waiting, tres={"allocated": []}),
        "no job",
    )
    assert {one.reason: one.count for one in jobs.dropped} == {
        "is part of a heterogeneous job, counted once": 1,
        "was still waiting": 1,
        "cannot be read: a job must be an object with job_id, state and time": 1,
    }
    assert jobs.rows == 7
    assert sorted(jobs.demand[:, 0].tolist()) == [4, 4, 4, 8]
    noticed = {one.what: one.count for one in jobs.noticed}
    assert noticed["has no time limit (UNLIMITED): the log's longest counts"] == 1
    assert noticed["element of an array: a job of its own"] == 1


def test_what_is_broken_in_the_middle_is_refused_by_its_line(tmp_path: Path) -> None:
    read(tmp_path, job(1), job(2), job(3))
    path = tmp_path / "jobs.json"
    lines = path.read_text().splitlines()
    lines[90] = lines[90] + " oops"
    path.write_text("\n".join(lines))
    with pytest.raises(
        InputError, match=r"line 9[12]: this is no JSON, so the rest cannot be read"
    ):
        read_log(path)
