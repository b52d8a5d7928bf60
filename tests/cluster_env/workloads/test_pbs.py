"""Accounting logs of PBS and Torque: what became of each record."""

from pathlib import Path

import pytest

from cluster_env.workloads.formats import read_log
from cluster_env.workloads.recorded import RecordedJobs

T0 = 1_780_000_000
PLAIN = (
    f"user=ann group=bio account=phys queue=workq ctime={T0} qtime={T0} etime={T0 + 10} "
    f"start={T0 + 30} end={T0 + 90} exec_host=n1/0*4+n2/0*4 Resource_List.ncpus=8 "
    "Resource_List.nodect=2 Resource_List.walltime=01:00:00 Resource_List.mem=3gb "
    "resources_used.walltime=00:01:00"
)


def line(job: str = "7.srv", kind: str = "E", pairs: str = PLAIN) -> str:
    return f"05/28/2026 20:26:40;{kind};{job};{pairs}"


def read(folder: Path, *lines: str) -> RecordedJobs:
    path = folder / "20260528"
    path.write_text("\n".join(lines) + "\n")
    return read_log(path)


def test_a_plain_end_of_a_run_has_its_numbers(tmp_path: Path) -> None:
    jobs = read(tmp_path, line())
    assert jobs.wait is not None
    numbers = [jobs.submit[0], jobs.wait[0], jobs.run[0], jobs.estimate[0], *jobs.demand[0]]
    assert numbers == [T0 + 10, 20, 60, 3600, 8, 3072, 0]
    assert [jobs.names[name].tolist() for name in ("user", "group", "queue")] == [
        ["ann"],
        ["phys"],
        ["workq"],
    ]


def test_records_that_are_no_end_of_a_run_are_counted_by_their_type(tmp_path: Path) -> None:
    lines = [line(kind="Q", pairs="queue=workq"), line(kind="S"), line(), line("8.srv", "D", "")]
    later = PLAIN.replace(f"start={T0 + 30}", f"start={T0 + 40}")
    lines += [line("9.srv", "R"), line("9.srv", "E", later), line("10[].srv"), line("10[2].srv")]
    jobs = read(tmp_path, *lines, line("10[3].srv"), line("10[3].srv"))
    assert {one.reason: one.count for one in jobs.dropped} == {
        "has not ended in this record (type Q)": 1,
        "has not ended in this record (type S)": 1,
        "has not ended in this record (type D)": 1,
        "is an array as a whole, whose elements count": 1,
        "stands in the file twice": 1,
    }
    assert jobs.num_jobs == 5
    assert jobs.rows == 10
    noticed = {one.what: one.count for one in jobs.noticed}
    assert noticed["ended in a requeue: each run is a job"] == 1
    assert noticed["element of an array: a job of its own"] == 3


@pytest.mark.parametrize(
    ("memory", "mib"),
    [("2048kb", 2), ("4096mb", 4096), ("1GB", 1024), ("512kw", 4), ("3gw", 24_576), ("1", 1)],
)
def test_memory_has_units_of_bytes_or_of_words(tmp_path: Path, memory: str, mib: int) -> None:
    jobs = read(tmp_path, line(pairs=PLAIN.replace("mem=3gb", f"mem={memory}")))
    assert jobs.demand[0][1] == mib


@pytest.mark.parametrize(
    ("asked", "processors", "gpus"),
    [
        ("Resource_List.ncpus=6 Resource_List.ngpus=3", 6, 3),
        ("Resource_List.ncpus=6 Resource_List.ngpus=0.5", 6, 1),
        ("Resource_List.nodes=2:ppn=12:gpus=2", 24, 4),
        ("Resource_List.nodes=1:ppn=8+3:ppn=2:gpus=1", 14, 3),
        ("Resource_List.nodes=big01:ppn=8", 8, 0),
        ("Resource_List.nodes=5", 5, 0),
        ("exec_host=n1/0*8+n2/0*8", 16, 0),
        ("exec_host=n1/0+n1/1+n2/0-3", 6, 0),
        ("Resource_List.nodect=3", 3, 0),
    ],
)
def test_processors_and_gpus_stand_in_several_places(
    tmp_path: Path, asked: str, processors: int, gpus: int
) -> None:
    pairs = f"user=ann ctime={T0} start={T0 + 5} end={T0 + 25} {asked}"
    jobs = read(tmp_path, line(pairs=pairs))
    assert jobs.demand[0, [0, -1]].tolist() == [processors, gpus]
    assert jobs.run.tolist() == [20]


def test_a_run_that_was_not_looked_at_lasted_from_start_to_end(tmp_path: Path) -> None:
    jobs = read(tmp_path, line(pairs=PLAIN.replace("00:01:00", "00:00:00")))
    assert jobs.run.tolist() == [60]


def test_a_run_arrives_when_the_run_before_it_was_queued_again(tmp_path: Path) -> None:
    """PBS repeats the first times of the job in the lines of all its runs."""
    lines = [
        line(job, kind, PLAIN.replace(f"start={T0 + 30} end={T0 + 90}", f"start={start} end={end}"))
        for job, kind, start, end in (
            ("7.srv", "R", T0 + 30, T0 + 90),
            ("7.srv", "R", T0 + 100, T0 + 160),
            ("7.srv", "E", T0 + 250, T0 + 310),
            ("8.srv", "E", T0 + 250, T0 + 310),
            ("9[1].srv", "R", T0 + 30, T0 + 90),
            ("9[2].srv", "E", T0 + 100, T0 + 160),
        )
    ]
    jobs = read(tmp_path, *lines)
    assert jobs.wait is not None
    waits = dict(zip(jobs.line.tolist(), jobs.wait.tolist(), strict=True))
    assert waits == {1: 20, 2: 10, 3: 90, 4: 240, 5: 20, 6: 90}
