"""Lines of jobcomp/filetxt: what stands in them, and what names and folders may pretend."""

import time
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.recorded import RecordedJobs

LINE = (
    "JobId={job} UserId=ada(501) GroupId=staff(20) Name={name} JobState={state} Partition=main "
    "TimeLimit={limit} StartTime={start} EndTime={end} NodeList={nodes} NodeCnt=2 ProcCnt=8 "
    "WorkDir={folder} ReservationName= {held} Account={account} QOS=normal WcKey= Cluster=lab "
    "SubmitTime=2026-03-01T08:00:00 EligibleTime=2026-03-01T08:00:05{more} DerivedExitCode=0:0 "
    "ExitCode=0:0 "
)
PLAIN = {
    "job": "7",
    "name": "sim",
    "state": "COMPLETED",
    "limit": "30",
    "start": "2026-03-01T08:01:00",
    "end": "2026-03-01T08:11:00",
    "nodes": "n[1-2]",
    "folder": "/home/ada",
    "held": "Tres=cpu=8,mem=4G,node=2,billing=8",
    "account": "bio",
    "more": "",
}


def line(**parts: str) -> str:
    return LINE.format(**(PLAIN | parts))


def read(folder: Path, *lines: str) -> RecordedJobs:
    path = folder / "jobcomp.log"
    path.write_text("\n".join(lines) + "\n")
    return read_log(path)


def numbers(jobs: RecordedJobs) -> list[list[int]]:
    assert jobs.wait is not None
    return [
        [int(jobs.wait[k]), int(jobs.run[k]), int(jobs.estimate[k]), *jobs.demand[k].tolist()]
        for k in range(jobs.num_jobs)
    ]


def test_a_plain_line_has_its_numbers(tmp_path: Path) -> None:
    jobs = read(tmp_path, line())
    assert numbers(jobs) == [[55, 600, 1800, 8, 4096, 0]]
    assert jobs.names["user"].tolist() == ["ada"]
    assert jobs.names["group"].tolist() == ["bio"]
    assert read(tmp_path, line(account="")).names["group"].tolist() == ["staff"]


@pytest.mark.parametrize(
    "name",
    [
        *("a|b name", "x JobState=FAILED", "x=y", "", " ", "Name=z", "WorkDir=/tmp StartTime=now"),
        *("$(reboot)", "a ProcCnt=9999 NodeCnt=3", "x ReservationName= Tres=cpu=1"),
    ],
)
def test_names_and_folders_may_pretend_what_they_want(tmp_path: Path, name: str) -> None:
    jobs = read(tmp_path, line(name=name), line(job="8", folder=f"/home/{name}"))
    assert numbers(jobs) == [[55, 600, 1800, 8, 4096, 0]] * 2
    assert not jobs.dropped


def test_a_line_that_fits_in_two_ways_is_counted_and_left_out(tmp_path: Path) -> None:
    forged = line(state="FAILED", limit="1").partition("Name=")[2].partition("WorkDir=")[0]
    jobs = read(tmp_path, line(name=f"{forged}WorkDir=/x"), line(job="8"))
    assert [(one.reason, one.count) for one in jobs.dropped] == [
        ("has keys in its name or folder, who knows which", 1)
    ]
    assert jobs.num_jobs == 1


def test_a_name_made_to_cost_time_costs_none(tmp_path: Path) -> None:
    forged = "JobState=F Partition=p TimeLimit=1 WorkDir=/x " * 200
    began = time.process_time()
    jobs = read(tmp_path, line(name=forged), line(job="8"))
    assert time.process_time() - began < 1  # trying all ways takes 3 s, and grows with the cube
    assert [one.count for one in jobs.dropped] == [1]


def test_runs_requeues_and_what_never_ran(tmp_path: Path) -> None:
    jobs = read(
        tmp_path,
        line(job="1"),
        line(job="2", state="PENDING"),
        line(job="3", state="CANCELLED", nodes="(null)", end=PLAIN["start"]),
        line(job="4", state="TIMEOUT", limit="UNLIMITED"),
        line(job="5", more=" ArrayJobId=5 ArrayTaskId=1"),
        line(job="6", more=" HetJobId=6 HetJobOffset=0"),
        line(job="7", more=" HetJobId=6 HetJobOffset=1"),
    )
    assert jobs.rows == jobs.num_jobs + sum(one.count for one in jobs.dropped) == 7
    assert {one.reason: one.count for one in jobs.dropped} == {
        "was cancelled before it started": 1,
        "is part of a heterogeneous job, counted once": 1,
    }
    assert {one.what: one.count for one in jobs.noticed if "zone" not in one.what} == {
        "was eligible later than submitted: arrives then": 5,
        "ended in a requeue: each run is a job": 1,
        "has no time limit (UNLIMITED): the log's longest counts": 1,
        "element of an array: a job of its own": 1,
        "is heterogeneous: its parts start together": 1,
    }
    assert jobs.demand[:, 0].tolist() == [8, 8, 8, 8, 16]


@pytest.mark.parametrize(
    ("held", "gpus"),
    [
        ("Tres=cpu=8,mem=4G,gres/gpu=3,gres/gpu:a100=3", 3),
        ("Gres=gpu:2", 4),  # of older versions, for each of the two nodes
        ("Gres=gpu:a100:2", 4),
        ("Gres=lustre:1", 0),
        ("Gres=", 0),
    ],
)
def test_gpus(tmp_path: Path, held: str, gpus: int) -> None:
    assert read(tmp_path, line(held=held)).demand[0, -1] == gpus


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((line().replace(" SubmitTime=", " Sub="),), "line 1: the job lacks SubmitTime="),
        ((line().replace(" WorkDir=", " Folder="),), "line 1: the job lacks WorkDir="),
        ((line(folder="/ TimeLimit=3").replace("TimeLimit=30 ", ""),), "not stand in the order"),
        ((line(start="soon"),), "line 1: StartTime must be a time like 2026-"),
        ((line(limit="a day"),), "line 1: TimeLimit must be a limit like"),
        ((line().replace("ProcCnt=8", "ProcCnt=-8"),), "line 1: ProcCnt must be a whole number"),
        ((line(held="Tres=cpu"),), "line 1: Tres must be resources like cpu=4,mem=4G,node=1"),
        (
            (line(state="CANCELLED", nodes="(null)", end=PLAIN["start"]),),
            "1 was cancelled before it started",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_field(
    tmp_path: Path, lines: tuple[str, ...], words: str
) -> None:
    with pytest.raises(InputError) as refusal:
        read(tmp_path, *lines)
    assert words in str(refusal.value)


def test_a_line_that_is_none_of_a_job_is_left_out_and_counted(tmp_path: Path) -> None:
    jobs = read(
        tmp_path, line(), "and then", line(job="8", start="soon"), line(job="9"), line(job="10")
    )
    assert [one.line for one in jobs.dropped] == [2, 3]
    assert jobs.dropped[0].reason.startswith("cannot be read: a job begins with JobId=NUMBER")
    assert jobs.dropped[1].reason.startswith("cannot be read: StartTime must be a time like")
    assert (jobs.rows, jobs.num_jobs) == (5, 3)
