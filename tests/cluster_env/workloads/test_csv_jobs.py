"""Jobs in a CSV file, in seconds."""

import gzip
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.csv_jobs import read_csv_jobs
from cluster_env.workloads.formats import read_log


def file(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_columns_in_any_order_with_other_names(tmp_path: Path) -> None:
    header, *jobs = "user,cpus,GPU,submit,limit,run", "ann,16,2,1700000100.7,7200,59.5"
    text = "\n".join([header, *jobs, "bob,1,0,1700000000,60,60"])
    jobs = read_csv_jobs(file(tmp_path, text))
    assert jobs.resources == ("processors", "gpus")
    assert jobs.demand.tolist() == [[1, 0], [16, 2]]
    assert jobs.run.tolist() == [60, 60]
    assert jobs.estimate.tolist() == [60, 7200]
    jobset = jobs.jobset()
    assert jobset.arrival.tolist() == [0, 100]
    assert jobset.attributes["user"].tolist() == [1, 0]
    assert jobset.attributes["submit"].tolist() == [1700000000, 1700000100]


def test_a_job_without_an_estimate_is_expected_to_last_as_long_as_it_does(tmp_path: Path) -> None:
    text = "arrival,duration,processors\n8,2.5,1\n3,60,4\n8,7,2\n"
    jobs = read_csv_jobs(file(tmp_path, text))
    assert jobs.submit.tolist() == [3, 8, 8]
    assert jobs.run.tolist() == jobs.estimate.tolist() == [60, 3, 7]


def test_names_waits_dates_and_compressed_files(tmp_path: Path) -> None:
    text = "arrival,duration,processors,user,queue,wait\n1700000000,60,1,ann,,5\n"
    text += '1700000060,60,2,"bo, jr",long,0.5\n'
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    for jobs in (read_log(path), read_csv_jobs(file(tmp_path, text))):
        assert jobs.names["user"][jobs.ids["user"]].tolist() == ["ann", "bo, jr"]
        assert jobs.names["queue"].tolist() == ["", "long"]
        assert jobs.wait is not None
        assert jobs.wait.tolist() == [5, 1]
        assert jobs.epoch == 0  # times are Unix times
    assert read_csv_jobs(file(tmp_path, "arrival,duration,processors\n0,1,1\n")).epoch is None


def test_further_columns_are_noticed_and_other_names_can_be_said(tmp_path: Path) -> None:
    text = "job_id;Submitted;walltime_used;cores;user;colour\n7;5;60;4;ann;red\n8;9;70;2;bob;blue\n"
    path = file(tmp_path, text)
    said = "arrival=submitted, run=walltime_used,processors=Cores"
    jobs = read_log(path, columns=said)
    assert jobs.submit.tolist() == [5, 9]
    assert jobs.run.tolist() == [60, 70]
    assert jobs.demand.tolist() == [[4], [2]]
    assert [one.what for one in jobs.noticed] == [
        "has columns that are not read: job_id, colour",
        "has no time limit (no limit recorded): its run time counts",
    ]
    with pytest.raises(InputError, match="the header has no column 'submited'"):
        read_log(path, columns="arrival=submited")
    with pytest.raises(InputError, match="columns must be pairs such as arrival=submission_time"):
        read_log(path, columns="when=submitted")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_dates_in_any_zone_between_any_delimiters(tmp_path: Path, delimiter: str) -> None:
    dates = ("2026-03-02T08:00:00Z", "2026-03-02 10:30:00+01:00", "2026-03-02T05:00:00.5")
    rows = [f"{when},{60 + k},4" for k, when in enumerate(dates)]
    text = "\n".join(["arrival,duration,processors", *rows]).replace(",", delimiter)
    jobs = read_log(file(tmp_path, text), time_zone="America/New_York")
    first = 1_772_438_400
    assert jobs.submit.tolist() == [first, first + 5400, first + 7200]
    assert jobs.epoch == 0
    assert ("has times without a zone", 1) in [(one.what, one.count) for one in jobs.noticed]


def test_a_text_may_have_lines_and_a_stray_quotation_mark_costs_its_line(tmp_path: Path) -> None:
    rows = ('0,5,1,"a\nb"', '1,5,1,"c', "2,5,1,d", '3,5,1,e"f', "4,5,1,g", "5,5,1,h", "6,5,1,i")
    jobs = read_log(file(tmp_path, "\n".join(["arrival,duration,processors,user", *rows])))
    assert jobs.line.tolist() == [2, 5, 6, 7, 8, 9]
    assert jobs.names["user"].tolist() == ["a\nb", "d", 'e"f', "g", "h", "i"]
    assert [(one.reason, one.line) for one in jobs.dropped] == [
        ("cannot be read: a quotation mark is not closed, or stands inside of a cell", 4)
    ]
    assert jobs.rows == 7


def test_what_cannot_be_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = ("0,600,4,.5", "30,0,4,1", "60,-1,4,1", "70,5,0,1", "80,9e9,1,0", "90,7,2,", "95,7,2,-1")
    jobs = read_csv_jobs(file(tmp_path, "\n".join(["arrival,duration,cpus,gpus", *rows])))
    assert jobs.demand.tolist() == [[4, 1], [2, 0]]
    assert [(one.reason, one.count, one.line) for one in jobs.dropped] == [
        ("has no run time above 0", 2, 3),
        ("asks for no processor", 1, 5),
        ("has a number that is too large", 1, 6),
        ("asks for less than nothing of a resource", 1, 8),
    ]
    assert jobs.noticed[0].what == "asks for a part of a GPU: counted as a whole one"
    assert jobs.rows == 7


def test_a_job_without_a_limit_gets_the_longest_or_what_is_said(tmp_path: Path) -> None:
    text = "arrival,duration,processors,limit\n0,5,1,\n1,900,1,-1\n2,7,1,100\n"
    path = file(tmp_path, text)
    for choice, expected in {
        "longest": [100, 900, 100],
        "run-time": [5, 900, 100],
        "300": [300, 900, 100],
    }.items():
        jobs = read_log(path, missing_limits=choice)
        assert jobs.estimate.tolist() == expected
        assert [(one.count, one.line) for one in jobs.noticed] == [(2, 2)]
    with pytest.raises(InputError, match="must be longest, run-time or a number of seconds"):
        read_log(path, missing_limits="never")


def test_a_machine_counts_what_jobs_ask_for_by_name(tmp_path: Path) -> None:
    jobs = read_csv_jobs(file(tmp_path, "arrival,duration,processors,gpus\n0,1,1,2\n"))
    assert jobs.that_fit((4, 2), "it", ("processors", "gpus")).num_jobs == 1
    with pytest.raises(InputError, match="counts processors and memory"):
        jobs.that_fit((4, 2), "it", ("processors", "memory"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: the header lacks the column arrival"),
        ("arrival,duration\n1,2", "line 1: the header lacks the column processors"),
        ("arrival,duration,processors,cpus\n", "may stand once, but 'processors' does twice"),
        ("arrival,time,processors\n", "lacks the column duration; .* --columns duration=NAME"),
        ("arrival,duration,processors\n", "holds no job"),
        ("arrival,duration,processors\n1,2", "line 2: 3 values are expected, but there are 2"),
        (
            "arrival,duration,processors\n1,0,4",
            "holds no job that can .* 1 has no run time above 0",
        ),
        ("arrival,duration,processors\n1,x,4", "line 2: duration must be a number of seconds"),
        ("arrival,duration,processors\n1,2,1.5", "line 2: processors must be a whole number"),
        ("arrival,duration,processors\n-1,2,1", "1 was submitted before the log begins"),
        ("arrival,duration,processors\nnow,2,1", "line 2: arrival must be a number .* or a date"),
        ('arrival,duration,processors\n1,2,"1\n1,2,1\n', "line 2: a quotation mark is not closed"),
        (
            "arrival,duration,processors\n0,2,1\n9999999999,1,1",
            "submitted over 9,999,999,999 seconds",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_csv_jobs(file(tmp_path, text))
