"""Job logs of any known format."""

from pathlib import Path

from cluster_env.workloads.csv_jobs import read_csv_jobs
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.swf import read_swf_jobs


def read_log(path: Path | str) -> RecordedJobs:
    """Reads ``.csv`` and ``.csv.gz`` as CSV in seconds, anything else as SWF, plain or with gzip.

    The latest files are remembered as long as they do not change.

    Raises:
        InputError: if the file cannot be read, a line is wrong, or no job can be scheduled.
    """
    path = Path(path)
    is_csv = path.name.lower().endswith((".csv", ".csv.gz"))
    return read_csv_jobs(path) if is_csv else read_swf_jobs(path)
