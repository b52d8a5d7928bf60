"""Exports of sacct as text: delimiters, times and zones, what the window cut off, wrong ones."""

import gzip
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from tests.cluster_env.workloads.slurm.sacct_rows import (
    HEAD,
    T0,
    dropped,
    noticed,
    read,
    row,
    wait_of,
)


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


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "wait", "run"),
    [
        ("02:10:00", "02:10:00", 3600, 1200, 3600),  # from the first time to the second
        ("02:50:00", "02:10:00", 1200, 3600, 1200),  # it seems to end before it starts
        ("02:10:00", "03:05:00", 3300, 4800, 3300),  # it started when the hour came again
        ("02:10:00", "03:05:00", 6900, 1200, 6900),  # when it came first
        ("02:50:00", "02:10:00", "", 3600, 1200),  # their order decides
    ],
)
def test_the_hour_that_comes_twice_is_noticed_and_elapsed_decides(
    tmp_path: Path, start: str, end: str, elapsed: int | str, wait: int, run: int
) -> None:
    times = dict.fromkeys(("Submit", "Eligible"), "2026-10-25T01:50:00")
    times |= {"Start": f"2026-10-25T{start}", "End": f"2026-10-25T{end}"}
    times["Timelimit"] = "02:00:00"
    head = HEAD if elapsed else HEAD.replace("ElapsedRaw", "QOS")
    jobs = read(tmp_path, row(1, ElapsedRaw=elapsed, **times), head=head, time_zone="Europe/Berlin")
    assert noticed(jobs) == {
        "has a time at which clocks were changed": 1,
        "has times without a zone": 1,
    }
    assert (wait_of(jobs), jobs.run.tolist()) == ([wait], [run])
    assert dropped(jobs) == {}


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
        (
            (HEAD, *(row(k) for k in range(9)), *(row(k)[:60] for k in range(4))),
            "line 11: 17 values are expected, but there are 10; 4 of 13 rows cannot be read, and "
            "no more than 3 are left out",
        ),
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
