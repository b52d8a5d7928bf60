"""Small inputs of people with job logs, which lie beside the golden data; skipped where absent."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from tests.golden import stored

# Name, jobs, rows, processors held in all, GPUs held in all (None: not counted).
READ = [
    ("sacct_empty_tres.txt", 4, 4, 44, 0),
    ("sacct_allocgres.txt", 3, 3, 40, 10),
    ("sacct.json", 1, 1, 8, 0),
    ("partial.swf", 3, 6, 16, None),
    ("chain.swf", 4, 4, 16, None),
    ("zero_run.csv", 1, 3, 4, None),
    ("extra_column.csv", 2, 2, 8, None),
    ("two_cpu_partitions.txt", 120, 120, 720, 0),
    ("atlas_days_38_48.swf.gz", 890, 890, 1_159_024, None),
]
NOTICED = {
    "chain.swf": ("names a job that it came after (fields 17, 18): arrives as recorded", 2),
    "extra_column.csv": ("has columns that are not read: job_id", 2),
    "atlas_days_38_48.swf.gz": (
        "has no time limit (no limit recorded): the log's longest counts",
        799,
    ),
}


@pytest.fixture
def inputs(golden: Path) -> Path:
    """Folder of the inputs."""
    return stored(golden.parent / "field" / "hpc")


@pytest.mark.parametrize(("name", "jobs", "rows", "processors", "gpus"), READ)
def test_every_row_is_a_job_or_counted(
    inputs: Path, name: str, jobs: int, rows: int, processors: int, gpus: int | None
) -> None:
    read = read_log(stored(inputs / name))
    assert (read.num_jobs, read.rows) == (jobs, rows)
    assert rows == jobs + sum(one.count for one in read.dropped)
    assert read.demand[:, 0].sum() == processors
    assert gpus is None or read.demand[:, read.resources.index("gpus")].sum() == gpus
    assert name not in NOTICED or NOTICED[name] in [(one.what, one.count) for one in read.noticed]


def test_padded_columns_say_how_to_export(inputs: Path) -> None:
    with pytest.raises(InputError, match="export with --parsable2"):
        read_log(stored(inputs / "padded.txt"))


def test_partitions_with_nodes_of_their_own_are_logs_of_their_own(inputs: Path) -> None:
    path = stored(inputs / "two_cpu_partitions.txt")
    whole, parts = read_log(path), [read_log(path, partition=name) for name in ("batch", "short")]
    assert [part.num_jobs for part in parts] == [60, 60]
    at_once = [int(read.most_in_use[0]) for read in (whole, *parts) if read.most_in_use is not None]
    assert at_once == [40, 24, 16]
