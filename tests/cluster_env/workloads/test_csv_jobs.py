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
        ("arrival,duration,processors,colour\n", "'colour' is none of them"),
        ("arrival,duration,processors,cpus\n", "'processors' stands twice"),
        ("arrival,duration,processors\n", "holds no job"),
        ("arrival,duration,processors\n1,2", "line 2: 3 values are expected, but there are 2"),
        ("arrival,duration,processors\n1,0,4", "line 2: duration must be a number of seconds"),
        ("arrival,duration,processors\n1,2,1.5", "line 2: processors must be a whole number"),
        ("arrival,duration,processors\n-1,2,1", "line 2: arrival must be .* 0 or more"),
        (
            "arrival,duration,processors\n0,2,1\n9999999999,1,1",
            "submitted over 9,999,999,999 seconds",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_csv_jobs(file(tmp_path, text))
