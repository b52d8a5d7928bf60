"""Ten damages to a good log of each format: every row is a job, or counted, or the file refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log

T0 = 1_780_000_000
NUM_JOBS = 8
Lines = list[bytes]
Damage = Callable[[Lines], Lines]


def swf() -> Lines:
    jobs = (
        f"{k} {50 * k} {k} {60 + k} {k} -1 -1 {k} 900 -1 1 {k % 3} 1 -1 1 -1 -1 -1"
        for k in range(1, NUM_JOBS + 1)
    )
    return [line.encode() for line in ("; MaxProcs: 32", *jobs)]


def csv() -> Lines:
    jobs = (f"{T0 + 50 * k},{60 + k},{k},900,user{k % 3}" for k in range(1, NUM_JOBS + 1))
    return [line.encode() for line in ("arrival,duration,processors,estimate,user", *jobs)]


def sacct() -> Lines:
    head = "JobIDRaw|User|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|AllocTRES"
    jobs = (
        f"{k}|user{k % 3}|COMPLETED|{T0 + 50 * k}|{T0 + 51 * k}|{T0 + 52 * k + 60}|{60 + k}|15|{k}|"
        f"cpu={k},node=1"
        for k in range(1, NUM_JOBS + 1)
    )
    return [line.encode() for line in (head, *jobs)]


def sacct_json() -> Lines:
    def job(k: int) -> dict[str, object]:
        held = [
            {"type": "cpu", "name": "", "count": k},
            {"type": "gres", "name": "gpu", "count": 1},
        ]
        times = {"submission": T0 + 50 * k, "start": T0 + 51 * k, "end": T0 + 52 * k + 60}
        limit = {"set": True, "infinite": False, "number": 15}
        return {
            "job_id": k,
            "user": f"user{k % 3}",
            "state": {"current": ["COMPLETED"]},
            "time": {**times, "elapsed": 60 + k, "limit": limit},
            "tres": {"allocated": held},
        }

    jobs = [json.dumps(job(k)).encode() for k in range(1, NUM_JOBS + 1)]
    return [b'{"jobs": [', *(one + b"," for one in jobs[:-1]), jobs[-1], b"], ", b'"errors": []}']


def pbs() -> Lines:
    return [
        (
            f"05/28/2026 20:{k:02}:00;E;{k}.server;user=user{k % 3} group=bio queue=workq "
            f"ctime={T0 + 50 * k} etime={T0 + 50 * k} start={T0 + 51 * k} end={T0 + 52 * k + 60} "
            f"exec_host=n1/0*{k} Resource_List.ncpus={k} Resource_List.walltime=00:15:00 "
            f"resources_used.walltime=00:01:{k:02}"
        ).encode()
        for k in range(1, NUM_JOBS + 1)
    ]


GOOD = {"swf": swf, "csv": csv, "sacct": sacct, "sacct-json": sacct_json, "pbs": pbs}


def change(old: str, new: str, line: int = 4) -> Damage:
    """Another text in one line, counted from the end of the header."""

    def damage(lines: Lines) -> Lines:
        assert old.encode() in lines[line], lines[line]
        return [
            text.replace(old.encode(), new.encode("utf-8"), 1) if k == line else text
            for k, text in enumerate(lines)
        ]

    return damage


def cut(line: int = 4, length: int = 17) -> Damage:
    return lambda lines: [text[:length] if k == line else text for k, text in enumerate(lines)]


def twice(lines: Lines) -> Lines:
    return [*lines[:5], lines[4], *lines[5:]]


def latin(lines: Lines) -> Lines:
    return [text.replace(b"user", b"\xfcser") for text in lines]


def decorated(lines: Lines) -> Lines:
    """A mark, blank lines and the line ends of Windows."""
    return [
        b"\xef\xbb\xbf" + lines[0] + b"\r",
        *(part for text in lines[1:] for part in (text + b"\r", b"")),
    ]


def wide(lines: Lines) -> Lines:
    """UTF-16, as spreadsheets save it."""
    return ["\n".join(text.decode() for text in lines).encode("utf-16")]


def half(lines: Lines) -> Lines:
    return [text[:17] if k > 4 else text for k, text in enumerate(lines)]


BIG = "9" * 12
UNREADABLE = "cannot be read: "

# format, damage, jobs that are left, and what is said: of a row, or of a file without jobs left.
CASES: list[tuple[str, str, Damage, int, str]] = [
    ("swf", "a line that is cut off", cut(), 7, UNREADABLE + "a job has 18 numbers"),
    ("swf", "a column missing in most lines", half, 0, "4 of 8 rows cannot be read"),
    ("swf", "a negative run time", change(" 64 ", " -64 "), 7, "has no run time above 0"),
    ("swf", "no number", change(" 64 ", " NaN "), 7, UNREADABLE + "run must be a number"),
    ("swf", "a wrong time", change("4 200 ", "4 2026-03-01 "), 7, "submit must be a number"),
    ("swf", "a job twice", twice, 9, ""),
    ("swf", "a huge number", change(" 64 ", f" {BIG} "), 7, "has a number that is too large"),
    ("swf", "an empty field", change(" 64 4 -1 -1 4", "  -1 -1 4"), 7, "a job has 18 numbers"),
    ("swf", "another encoding", wide, 8, ""),
    ("swf", "marks and blank lines", decorated, 8, ""),
    ("csv", "a line that is cut off", cut(), 7, UNREADABLE + "5 values are expected"),
    ("csv", "a column missing", change("duration", "colour", 0), 0, "lacks the column duration"),
    ("csv", "a negative run time", change(",64,", ",-64,"), 7, "has no run time above 0"),
    ("csv", "no number", change(",64,", ",nan,"), 7, UNREADABLE + "duration must be a number"),
    ("csv", "a wrong date", change(f"{T0 + 200}", "2026-13-01T00:00"), 7, "a time of the calendar"),
    ("csv", "a job twice", twice, 9, ""),
    ("csv", "a huge number", change(",64,", f",{BIG},"), 7, "has a number that is too large"),
    ("csv", "an empty field", change(",64,", ",,"), 7, UNREADABLE + "duration must be a number"),
    ("csv", "another encoding", wide, 8, ""),
    ("csv", "marks and blank lines", decorated, 8, ""),
    ("sacct", "a line that is cut off", cut(), 7, UNREADABLE + "10 values are expected"),
    ("sacct", "a column missing", change("|Submit", "|Later", 0), 0, "lacks the column Submit"),
    ("sacct", "a negative number", change("|64|", "|-64|"), 7, "ElapsedRaw must be a whole number"),
    ("sacct", "no number", change("|64|", "|NaN|"), 7, "ElapsedRaw must be a whole number"),
    (
        "sacct",
        "a wrong date",
        change(f"{T0 + 204}", "2026-02-30T08:00:00"),
        7,
        "Start must be a time of the calendar",
    ),
    ("sacct", "a job twice", twice, 8, "stands in the file twice"),
    ("sacct", "a huge number", change("|64|", f"|{BIG}|"), 7, "has a number that is too large"),
    ("sacct", "an empty field", change("|COMPLETED|", "||"), 7, "State must be a word"),
    ("sacct", "another encoding", latin, 8, ""),
    ("sacct", "marks and blank lines", decorated, 8, ""),
    (
        "sacct-json",
        "a file that is cut off",
        lambda lines: [*lines[:8], lines[8][:60]],
        7,
        "is cut",
    ),
    ("sacct-json", "a field missing", change('"time"', '"hour"'), 7, "the job lacks time"),
    ("sacct-json", "a negative number", change(": 64", ": -64"), 7, "must be a whole number"),
    ("sacct-json", "no number", change(": 64", ": NaN"), 7, "ElapsedRaw must be a whole number"),
    ("sacct-json", "a wrong date", change(f"{T0 + 204}", '"soon"'), 7, "Start must be a time like"),
    ("sacct-json", "a job twice", twice, 8, "stands in the file twice"),
    ("sacct-json", "a huge number", change(": 64", f": {BIG}"), 7, "a number that is too large"),
    ("sacct-json", "an empty field", change('"COMPLETED"', '""'), 7, "State must be a word"),
    ("sacct-json", "another encoding", latin, 8, ""),
    ("sacct-json", "marks and blank lines", decorated, 8, ""),
    ("pbs", "a line that is cut off", cut(), 7, UNREADABLE + "a line begins with"),
    ("pbs", "a key missing", change("ctime", "later"), 7, "ctime must be a time"),
    ("pbs", "a negative number", change("ncpus=5", "ncpus=-5"), 7, "must be a whole number"),
    ("pbs", "no number", change("00:15:00", "NaN"), 7, "walltime must be a length of time"),
    ("pbs", "a wrong date", change(f"start={T0 + 255}", "start=soon"), 7, "start must be a time"),
    ("pbs", "a job twice", twice, 8, "stands in the file twice"),
    (
        "pbs",
        "a huge number",
        change("ncpus=5", f"ncpus={BIG}"),
        7,
        "has a number that is too large",
    ),
    ("pbs", "an empty field", change(f"start={T0 + 255}", "start="), 8, ""),
    ("pbs", "another encoding", latin, 8, ""),
    ("pbs", "marks and blank lines", decorated, 8, ""),
]


@pytest.mark.parametrize(("kind", "name", "damage", "jobs", "words"), CASES)
def test_every_row_of_a_damaged_log_is_a_job_or_counted(
    kind: str, name: str, damage: Damage, jobs: int, words: str, tmp_path: Path
) -> None:
    lines = damage(GOOD[kind]())
    path = tmp_path / "log.txt"
    path.write_bytes(b"\n".join(lines) + (b"" if damage is wide else b"\n"))
    if not jobs:
        with pytest.raises(InputError) as refusal:
            read_log(path, kind)
        assert words in str(refusal.value)
        assert "line " in str(refusal.value)
        return
    read = read_log(path)  # known by what stands in it
    num_rows = NUM_JOBS + (damage is twice)
    assert read.rows == num_rows
    assert read.num_jobs == jobs
    assert read.num_jobs + sum(one.count for one in read.dropped) == num_rows
    assert len(read.dropped) == bool(words and num_rows > jobs)
    assert all(words in one.reason for one in read.dropped)


@pytest.mark.parametrize("kind", GOOD)
def test_all_formats_say_the_same_of_the_same_jobs(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"\n".join(GOOD[kind]()))
    jobs = read_log(path)
    assert (jobs.submit - jobs.submit[0]).tolist() == [50 * k for k in range(NUM_JOBS)]
    assert jobs.run.tolist() == [60 + k for k in range(1, NUM_JOBS + 1)]
    assert jobs.demand[:, 0].tolist() == list(range(1, NUM_JOBS + 1))
    assert jobs.estimate.tolist() == [900] * NUM_JOBS
    assert jobs.names["user"][jobs.ids["user"]].astype(str).tolist() == [
        f"{'' if kind == 'swf' else 'user'}{k % 3}" for k in range(1, NUM_JOBS + 1)
    ]
    if kind != "csv":
        assert jobs.wait is not None
        assert jobs.wait.tolist() == list(range(1, NUM_JOBS + 1))


@pytest.mark.parametrize("kind", ["swf", "csv", "sacct", "pbs"])
def test_a_share_of_bad_rows_is_left_out_and_more_refuse_the_file(
    kind: str, tmp_path: Path
) -> None:
    head, *rows = GOOD[kind]() if kind != "pbs" else [b"", *GOOD[kind]()]
    path = tmp_path / "log.txt"
    many = rows * 1000  # 8,000 rows, of which 8 may be bad
    for num_bad, tolerated in ((8, True), (9, False)):
        spoiled = [
            row[:14] if k % 800 == 5 and k < 800 * num_bad else row for k, row in enumerate(many)
        ]
        path.write_bytes(b"\n".join([head, *spoiled]))
        if tolerated:
            read = read_log(path, kind)
            assert read.rows == 8000 == read.num_jobs + sum(one.count for one in read.dropped)
            assert max(one.count for one in read.dropped if "cannot be read" in one.reason) == 8
            continue
        with pytest.raises(
            InputError, match=r"line 7: .*; 9 of 8,000 rows cannot be read, and no m"
        ):
            read_log(path, kind)


def test_what_is_no_log_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "export"
    head, *rows = (line.decode() for line in sacct())
    for text, words in {
        "Welcome to the cluster\n\n" + "\n".join([head, *rows]): "begins in line 3 (sacct); delete",
        head.replace("|", "   ") + "\n" + rows[0].replace("|", "   "): "export with --parsable2",
        f"   {head.replace('|', ' ')}\n": "export with --parsable2",
        "11   COMPLETED 2026-03-02T08:00:00    8\n": "export with sacct --parsable2, or name",
        '{"meta": {}}': "is JSON without a list of jobs; export with sacct --json",
        '{"jobs": [{"job_id": 1}, oops {"job_id": 2}]}': "line 1: this is no JSON",
        "": "holds no job",
    }.items():
        path.write_text(text)
        with pytest.raises(InputError) as refusal:
            read_log(path)
        assert words in str(refusal.value)
        assert "\n" not in str(refusal.value)
