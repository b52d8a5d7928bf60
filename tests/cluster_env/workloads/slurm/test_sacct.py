"""Exports of sacct: each of their pitfalls in a few rows."""

import gzip
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.logs import read_log
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
        (
            {"State": "DEADLINE", "Start": "None", "AllocTRES": ""},
            "never started (DEADLINE)",
        ),
        ({"State": "REVOKED"}, "ran on another cluster (REVOKED)"),
        ({"State": "RUNNING"}, "is cut off by the export's window (sacct -T)"),
        ({"End": T0 + 119}, "ended before it started"),
        ({"Submit": T0 + 121}, "started before it was submitted"),
        ({"AllocCPUS": 0}, "held no processor"),
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
        ({"ElapsedRaw": 0, "End": T0 + 120}, "ran for less than a second: counts as one"),
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
    assert dropped(jobs) == {
        "stands in the file twice": 1,
        "is no job but the header once more": 1,
    }
    assert jobs.num_jobs == 3


def test_the_delimiter_in_a_name_moves_nothing(tmp_path: Path) -> None:
    head = HEAD.replace("JobID|", "JobID|JobName|")
    lines = (row(k).replace("|ada", f"|{name}|ada") for k, name in enumerate(("a", "b|c|d", "|")))
    jobs = read(tmp_path, *lines, head=head)
    assert jobs.demand.tolist() == [[4, 2048, 0]] * 3
    assert jobs.names["user"].tolist() == ["ada"]
    assert noticed(jobs) == {"has the delimiter in its name: put together": 2}


def test_of_several_texts_the_one_is_found_that_makes_a_job(tmp_path: Path) -> None:
    head = f"JobName|{HEAD}|Comment"
    jobs = read(
        tmp_path,
        f"plain|{row(1)}|nothing",
        f"a|b|{row(2)}|nothing",
        f"plain|{row(3)}|some|thing",
        f"a|b|{row(4)}|some|thing",
        head=head,
    )
    assert dropped(jobs) == {"has the delimiter in its texts, who knows where": 1}
    assert jobs.line.tolist() == [2, 3, 4]


@pytest.mark.parametrize("delimiter", ["|", ";", "^", "\t", "||", "%%", ","])
@pytest.mark.parametrize("closed", [False, True])
def test_any_delimiter_is_found_in_the_header(tmp_path: Path, delimiter: str, closed: bool) -> None:
    end = delimiter if closed else ""
    names = HEAD.replace("|", delimiter)
    tres = row(1).rpartition("|")
    line = delimiter.join(tres[0].split("|"))
    held = "cpu=4" if delimiter == "," else tres[2]
    jobs = read(tmp_path, f"{line}{delimiter}{held}{end}", head=names + end)
    assert jobs.demand[0, 0] == 4


def test_compressed_with_windows_line_ends_and_a_mark_it_is_the_same(tmp_path: Path) -> None:
    plain = read(tmp_path, row(1), row(2))
    text = "\r\n".join([HEAD, row(1), "", row(2)])
    (tmp_path / "other.csv").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    other = read_log(tmp_path / "other.csv")  # the name says CSV, the first line knows better
    assert other.demand.tolist() == plain.demand.tolist()


@pytest.mark.parametrize(
    ("text", "zone", "second"),
    [
        ("2026-02-02T02:41:40", "", T0 + 100),
        ("2026-02-02T02:41:40Z", "", T0 + 100),
        ("2026-02-02T02:41:40Z", "Europe/Berlin", T0 + 100),
        ("2026-02-01T21:41:40-05:00", "", T0 + 100),
        ("2026-02-01T21:41:40-0500", "", T0 + 100),
        ("2026-02-02T03:41:40", "Europe/Berlin", T0 + 100),
        ("2026-02-01T21:41:40", "America/New_York", T0 + 100),
        (f"{T0 + 100}", "America/New_York", T0 + 100),
    ],
)
def test_times_with_and_without_a_zone(tmp_path: Path, text: str, zone: str, second: int) -> None:
    jobs = read(tmp_path, row(1, Submit=text, Eligible=text), time_zone=zone)
    assert jobs.submit.tolist() == [second]


def test_the_hour_that_comes_twice_is_noticed_and_elapsed_believed(tmp_path: Path) -> None:
    times = {"Submit": "2026-10-25T01:50:00", "Eligible": "2026-10-25T01:50:00"}
    times |= {"Start": "2026-10-25T02:10:00", "End": "2026-10-25T02:10:00"}
    jobs = read(tmp_path, row(1, ElapsedRaw=3600, **times), time_zone="Europe/Berlin")
    assert noticed(jobs)["has a time at which clocks were changed"] == 1
    assert noticed(jobs)["ran longer than End - Start: Elapsed counts"] == 1
    assert jobs.run.tolist() == [3600]


def test_jobs_that_the_window_cut_off_are_left_out(tmp_path: Path) -> None:
    begin, end = 1_770_000_000, 1_770_003_600  # whole minutes, as windows have them
    early = [
        row(k, Submit=begin - 50 - k, Eligible=begin - 50 - k, Start=begin, End=begin + 70)
        for k in range(3)
    ]
    late = [row(10 + k, Start=end - 500 - k, End=end, ElapsedRaw=500 + k) for k in range(3)]
    jobs = read(tmp_path, *early, row(5), *late)
    assert dropped(jobs) == {"is cut off by the export's window (sacct -T)": 6}
    assert jobs.line.tolist() == [5]
    fewer = read(tmp_path, *early[:2], row(5), *late[:2])
    assert dropped(fewer) == {}
    shifted = [line.replace(str(begin), str(begin + 1)) for line in early]
    assert dropped(read(tmp_path, *shifted, row(5))) == {}


def test_signs_that_a_terminal_obeys_are_no_part_of_a_name(tmp_path: Path) -> None:
    jobs = read(tmp_path, row(1, User="a\x1b[31md\x07a", Account="$(reboot)"))
    assert jobs.names["user"].tolist() == ["a?[31md?a"]
    assert jobs.names["group"].tolist() == ["$(reboot)"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((HEAD,), "holds no job"),
        ((HEAD, row(1, State="PENDING", Start="Unknown", AllocTRES="")), "of its 1 rows 1 never"),
        ((row(1),), "line 1: a header with names as JobIDRaw"),
        ((HEAD.replace("|Submit", ""), row(1)), "line 1: the header lacks the column Submit"),
        ((HEAD.replace("AllocCPUS", "x").replace("AllocTRES", "y"), row(1)), "AllocCPUS or NCPUS"),
        ((HEAD.replace("|", "   "), row(1)), "export with --parsable2"),
        ((HEAD, row(1)[:60]), "line 2: 17 values are expected, but there are"),
        ((HEAD, row(1) + "|x"), "line 2: 17 values are expected, but there are 18"),
        ((HEAD, row(1, JobIDRaw="x")), "line 2: JobIDRaw must be a job's number, not 'x'"),
        ((HEAD, row(1, State="")), "line 2: State must be a word like COMPLETED, not ''"),
        ((HEAD, row(1, Submit="Unknown")), "line 2: Submit must be a time, not 'Unknown'"),
        ((HEAD, row(1, Start="soon")), "line 2: Start must be a time like 2026-"),
        ((HEAD, row(1, End="2026-13-01T00:00:00")), "line 2: End must be a time of the calendar"),
        ((HEAD, row(1, ElapsedRaw="long")), "line 2: ElapsedRaw must be a whole number, not"),
        ((HEAD, row(1, Timelimit="a day")), "line 2: Timelimit must be a limit like 1-02:30:00"),
        ((HEAD, row(1, AllocCPUS="-4")), "line 2: AllocCPUS must be a whole number, not '-4'"),
        ((HEAD, row(1, AllocTRES="cpu")), "line 2: AllocTRES must be resources like cpu=4"),
        ((HEAD, row(1, ReqMem="lots", AllocTRES="cpu=4")), "line 2: ReqMem must be memory like 4G"),
        ((HEAD, row(1, AllocTRES="mem=lots")), "line 2: AllocTRES must be memory like 4G"),
        (
            (f"{HEAD}|Cluster", f"{row(1)}|north", f"{row(2)}|south"),
            "line 3: the log holds jobs of several clusters",
        ),
    ],
)
def test_a_wrong_export_is_refused_with_line_and_field(
    tmp_path: Path, lines: tuple[str, ...], words: str
) -> None:
    with pytest.raises(InputError) as refusal:
        read(tmp_path, *lines[1:], head=lines[0])
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 400
    assert "ada" not in str(refusal.value)
