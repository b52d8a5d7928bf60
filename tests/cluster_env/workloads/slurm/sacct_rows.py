"""Rows of an export of sacct, and what was read of them."""

from pathlib import Path

from cluster_env.workloads.formats import read_log
from cluster_env.workloads.recorded import RecordedJobs

HEAD = "JobIDRaw|JobID|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit"
HEAD += "|ReqCPUS|AllocCPUS|NNodes|ReqMem|AllocTRES"
T0 = 1_770_000_000
Cells = dict[str, str | int]


def row(number: int = 1, **cells: str | int) -> str:
    """A job that was submitted at T0 + 100, waited 20 s and ran 300 s of 600 on 4 processors."""
    values: Cells = dict.fromkeys(HEAD.split("|"), "")
    values |= {"JobIDRaw": number, "JobID": number, "User": "ada", "Account": "bio"}
    values |= {"Partition": "main", "State": "COMPLETED", "Submit": T0 + 100}
    values |= {"Eligible": T0 + 100, "Start": T0 + 120, "End": T0 + 420, "ElapsedRaw": 300}
    values |= {"Timelimit": "00:10:00", "ReqCPUS": 4, "AllocCPUS": 4, "NNodes": 1, "ReqMem": "2G"}
    values["AllocTRES"] = "billing=4,cpu=4,mem=2G,node=1"
    return "|".join(str(value) for value in (values | cells).values())


def log(folder: Path, *lines: str, head: str = HEAD) -> Path:
    path = folder / "jobs.txt"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def read(folder: Path, *lines: str, head: str = HEAD, time_zone: str = "") -> RecordedJobs:
    return read_log(log(folder, *lines, head=head), time_zone=time_zone)


def dropped(jobs: RecordedJobs) -> dict[str, int]:
    assert jobs.rows == jobs.num_jobs + sum(one.count for one in jobs.dropped)
    return {one.reason: one.count for one in jobs.dropped}


def noticed(jobs: RecordedJobs) -> dict[str, int]:
    return {one.what: one.count for one in jobs.noticed}


def wait_of(jobs: RecordedJobs) -> list[int]:
    assert jobs.wait is not None
    return jobs.wait.tolist()
