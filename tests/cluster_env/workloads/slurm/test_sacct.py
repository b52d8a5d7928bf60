"""Exports of sacct: each pitfall of their jobs in a few rows."""

from pathlib import Path

import pytest

from tests.cluster_env.workloads.slurm.sacct_rows import (
    HEAD,
    T0,
    Cells,
    dropped,
    noticed,
    read,
    row,
    wait_of,
)


def test_a_plain_job_has_its_numbers(tmp_path: Path) -> None:
    jobs = read(tmp_path, row())
    assert (jobs.submit[0], wait_of(jobs), jobs.run[0], jobs.estimate[0]) == (
        T0 + 100,
        [20],
        300,
        600,
    )
    assert jobs.demand.tolist() == [[4, 2048, 0]]
    assert (jobs.dropped, jobs.noticed, jobs.rows, jobs.epoch) == ((), (), 1, 0)
    assert [jobs.names[name].tolist() for name in ("user", "group", "queue")] == [
        ["ada"],
        ["bio"],
        ["main"],
    ]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"JobIDRaw": "1.batch", "JobID": "1.batch"}, "is a step of a job"),
        ({"JobIDRaw": "1.extern"}, "is a step of a job"),
        ({"JobID": "1_3.0"}, "is a step of a job"),
        ({"State": "RUNNING", "End": "Unknown"}, "was still running"),
        (
            {"State": "NODE_FAIL", "End": "Unknown", "ElapsedRaw": ""},
            "has no end in the log (NODE_FAIL)",
        ),
        (
            {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "AllocTRES": ""},
            "was still waiting",
        ),
        (
            {"State": "REQUEUED", "Start": "Unknown", "End": "Unknown", "AllocTRES": ""},
            "was still waiting",
        ),
        # Cancelled before it started, in three looks; sacct may still say how many CPUs it wanted.
        (
            {"State": "CANCELLED by 7", "Start": "None", "ElapsedRaw": 0, "AllocTRES": ""},
            "was cancelled before it started",
        ),
        (
            {"State": "CANCELLED", "Start": "Unknown", "ElapsedRaw": 0, "AllocTRES": ""},
            "was cancelled before it started",
        ),
        (
            {"State": "CANCELLED by 7", "End": T0 + 120, "AllocCPUS": 0, "AllocTRES": ""},
            "was cancelled before it started",
        ),
        ({"State": "DEADLINE", "Start": "None", "AllocTRES": ""}, "never started (DEADLINE)"),
        ({"State": "REVOKED"}, "ran on another cluster (REVOKED)"),
        ({"State": "RUNNING"}, "is cut off by the export's window (sacct -T)"),
        ({"End": T0 + 119}, "ended before it started"),
        ({"Submit": T0 + 121}, "started before it was submitted"),
        ({"AllocCPUS": 0, "AllocTRES": "mem=2G,node=1"}, "held no processor"),
        ({"ElapsedRaw": 0, "End": T0 + 120}, "has no run time above 0"),
        (
            {"ElapsedRaw": 0, "End": T0 + 120, "AllocTRES": ""},
            "has no run time above 0",
        ),
        ({"AllocCPUS": 2**31}, "has a number that is too large"),
    ],
)
def test_what_is_no_job_is_counted_with_its_reason(
    tmp_path: Path, cells: Cells, reason: str
) -> None:
    jobs = read(tmp_path, row(1, **cells), row(2))
    assert dropped(jobs) == {reason: 1}
    assert jobs.dropped[0].line == 2
    assert jobs.line.tolist() == [3]


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ({"State": "REQUEUED"}, "ended in a requeue: each run is a job"),
        ({"JobID": "7_3"}, "element of an array: a job of its own"),
        ({"Eligible": T0 + 110}, "was eligible later than submitted: arrives then"),
        ({"ElapsedRaw": 310}, "ran longer than End - Start: Elapsed counts"),
        ({"ElapsedRaw": 100}, "was suspended, or clocks changed: Elapsed counts"),
        ({"Timelimit": "00:04:00"}, "outlived its time limit"),
        ({"ReqCPUS": 1}, "holds more processors than it asked for"),
        (
            {"AllocTRES": "cpu=4,mem=2G,gres/gpu=2,gres/gpu:a100=2"},
            "names the type of its GPUs: counted once",
        ),
        (
            {"ReqMem": "2Gc", "AllocTRES": "cpu=4,node=1"},
            "asks for memory per core or node (old Slurm)",
        ),
        ({"Submit": "2026-02-02T02:41:40"}, "has times without a zone"),
    ],
)
def test_what_is_not_what_it_seems_is_counted(tmp_path: Path, cells: Cells, what: str) -> None:
    jobs = read(tmp_path, row(1), row(2, **cells))
    assert noticed(jobs) == {what: 1}
    assert jobs.noticed[0].line == 3
    assert jobs.num_jobs == 2


def test_a_job_waits_from_when_it_was_eligible(tmp_path: Path) -> None:
    jobs = read(
        tmp_path,
        row(1, Eligible=T0 + 115),  # a dependency
        row(2, Eligible="Unknown"),
        row(3, Eligible=T0 + 500),  # later than its start: as early as it can be
        row(4, Eligible=T0 + 90),
    )
    assert dict(zip(jobs.line.tolist(), wait_of(jobs), strict=True)) == {2: 5, 3: 20, 4: 0, 5: 20}


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("00:01:00", 60),
        ("2-03:05:00", 183_900),
        ("30", 1800),
        ("UNLIMITED", 36_000),
        ("Partition_Limit", 36_000),
        ("INVALID", 36_000),
        ("", 36_000),
    ],
)
def test_limits_in_all_their_forms(tmp_path: Path, limit: str, seconds: int) -> None:
    jobs = read(tmp_path, row(1, Timelimit="10:00:00"), row(2, Timelimit=limit))
    assert jobs.estimate.tolist() == [36_000, seconds]
    without = [what for what in noticed(jobs) if what.startswith("has no time limit")]
    assert without == (
        []
        if seconds != 36_000
        else [
            f"has no time limit ({limit.upper() or 'no limit recorded'}): the log's longest counts"
        ]
    )


def test_where_nobody_has_a_limit_the_run_time_counts(tmp_path: Path) -> None:
    jobs = read(tmp_path, row(1, Timelimit="UNLIMITED"))
    assert jobs.estimate.tolist() == [300]
    assert noticed(jobs) == {"has no time limit (UNLIMITED): its run time counts": 1}


@pytest.mark.parametrize(
    ("asked", "mib"),
    [
        ("2G", 2048),
        ("2Gn", 6144),
        ("2Gc", 8192),
        ("1.5G", 1536),
        ("100M", 100),
        ("1500K", 2),
        ("1T", 1024**2),
        ("512", 512),
        ("0n", 0),
    ],
)
def test_memory_in_all_its_units(tmp_path: Path, asked: str, mib: int) -> None:
    jobs = read(tmp_path, row(1, ReqMem=asked, AllocTRES="cpu=4,node=3", NNodes=3))
    assert jobs.demand.tolist() == [[4, mib, 0]]


def test_memory_counts_only_where_all_jobs_tell(tmp_path: Path) -> None:
    jobs = read(tmp_path, row(1), row(2, ReqMem="?", AllocTRES="cpu=4"))
    assert jobs.resources == ("processors", "gpus")


@pytest.mark.parametrize(
    ("held", "gpus"),
    [
        ("cpu=4,gres/gpu=3", 3),
        ("cpu=4,gres/gpu=3,gres/gpu:a100=3", 3),
        ("cpu=4,gres/gpu:a100=1,gres/gpu:h100=2", 3),
        ("cpu=4,gres/gpumem=40G", 0),
        ("cpu=4,gres/shard=2", 0),
    ],
)
def test_gpus_typed_and_untyped_count_once(tmp_path: Path, held: str, gpus: int) -> None:
    jobs = read(tmp_path, row(1, AllocTRES=held))
    assert jobs.demand[0, -1] == gpus
    assert ("gpus" in jobs.optional) == (gpus == 0)


def test_an_exclusive_job_holds_its_node(tmp_path: Path) -> None:
    jobs = read(
        tmp_path, row(1, ReqCPUS=1, AllocCPUS=64, AllocTRES="cpu=64,mem=6400M,gres/gpu=8,node=1")
    )
    assert jobs.demand.tolist() == [[64, 6400, 8]]


def test_parts_of_a_heterogeneous_job_are_one_job(tmp_path: Path) -> None:
    jobs = read(
        tmp_path,
        row(10, JobID="10+0"),
        row(11, JobID="10+1", AllocCPUS=8, AllocTRES="cpu=8,mem=1G,gres/gpu=2", ElapsedRaw=290),
        row(12, JobID="10+2", State="CANCELLED", Start="None", AllocTRES=""),
        row(10, JobID="10+0", Submit=T0 + 9000, Start=T0 + 9000, End=T0 + 9300),  # a second run
    )
    assert jobs.demand.tolist() == [[12, 3072, 2], [4, 2048, 0]]
    assert jobs.run.tolist() == [300, 300]
    assert dropped(jobs) == {
        "is part of a heterogeneous job, counted once": 1,
        "was cancelled before it started": 1,
    }


def test_an_array_that_never_started_is_one_row_of_many_jobs(tmp_path: Path) -> None:
    gone: Cells = {"State": "CANCELLED", "Start": "None", "End": T0, "AllocTRES": ""}
    jobs = read(
        tmp_path,
        row(1),
        row(18, JobID="18_[0-2]", **gone),
        row(19, JobID="19_[0-9:3,20,30-31%2]", **gone),
        row(20, JobID="20_[5]", **gone),
    )
    assert dropped(jobs) == {"was cancelled before it started": 3}
    assert noticed(jobs) == {"elements of arrays in one row": 3 + (4 + 1 + 2) + 1}


def test_a_run_that_stands_twice_counts_once_and_ids_may_come_again(tmp_path: Path) -> None:
    then = T0 + 9_000_000
    later = row(1, Submit=then, Eligible=then, Start=then, End=then + 300)
    jobs = read(tmp_path, row(1), row(2), HEAD, row(1), later)
    assert dropped(jobs) == {"stands in the file twice": 1, "is no job but the header once more": 1}
    assert jobs.num_jobs == 3


def test_no_column_alone_decides_whether_a_job_ran(tmp_path: Path) -> None:
    jobs = read(
        tmp_path,
        row(1, AllocTRES=""),
        row(2, AllocTRES="", State="CANCELLED by 7", ElapsedRaw=0),  # Start and End say it
        row(3, AllocCPUS=0),  # AllocTRES says how many
        row(4, Start="Unknown", State="FAILED"),  # 300 s before its end
        row(5, End="None", State="TIMEOUT"),
        row(6, AllocTRES="", Start="None", ElapsedRaw=0, State="CANCELLED"),
    )
    assert jobs.demand[:, 0].tolist() == [4] * 5
    assert jobs.run.tolist() == [300] * 5
    assert wait_of(jobs) == [20] * 5
    assert dropped(jobs) == {"was cancelled before it started": 1}
    assert noticed(jobs)["has no start or no end: the length of its run says it"] == 2


@pytest.mark.parametrize(
    ("given", "asked", "gpus"),
    [
        ("gpu:3", "gpu:9", 3),
        ("gpu:p100:5(S:0-1)", "", 5),
        ("gpu:a:1,gpu:b:2,lustre:1", "", 3),
        ("", "gpu:2", 6),  # on each of three nodes
        ("(null)", "gpu:k80:1", 3),
        ("", "gpu", 3),
        ("", "craynetwork:1", 0),
    ],
)
def test_gpus_of_slurm_before_tres_counted_them(
    tmp_path: Path, given: str, asked: str, gpus: int
) -> None:
    head = f"{HEAD}|AllocGRES|ReqGRES"
    lines = (f"{row(k, NNodes=3, AllocTRES=held)}" for k, held in enumerate(("cpu=4", "")))
    jobs = read(tmp_path, *(f"{line}|{given}|{asked}" for line in lines), head=head)
    assert jobs.demand[:, -1].tolist() == [gpus, gpus]


def test_half_a_gpu_counts_as_one_and_is_noticed(tmp_path: Path) -> None:
    jobs = read(tmp_path, row(1, AllocTRES="cpu=4,gres/gpu=0.5"), row(2, AllocTRES="gres/gpu=2.0"))
    assert jobs.demand[:, -1].tolist() == [1, 2]
    assert noticed(jobs) == {"asks for a part of a GPU: counted as a whole one": 1}
