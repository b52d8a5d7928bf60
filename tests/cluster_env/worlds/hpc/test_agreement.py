"""Starts that are those of other simulators, job by job; see the page AGREEMENT.md."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from cluster_env.workloads.swf import read_swf
from tests.cluster_env.worlds.hpc import agreement
from tests.cluster_env.worlds.hpc.agreement import (
    PASSES,
    generated,
    of_folder,
    with_accasim,
    with_pyss,
)
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of
from tests.conftest import REPOSITORY

KNOWN_ANSWERS = Path(__file__).parent / "known_answers"


@pytest.fixture(scope="module")
def traces() -> Path:
    """Folder of real logs with pyss's schedules."""
    folder = Path(os.environ.get("METASCHED_TRACES") or REPOSITORY.parent / "shared" / "traces")
    if not any(folder.glob("pyss-easy-*")):
        pytest.skip(f"no logs in {folder}; METASCHED_TRACES can name another folder")
    return folder


def test_generated_jobs_start_as_in_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "NUM_GENERATED", 600)
    rows = list(generated())
    assert [row.num_equal for row in rows] == [row.num_jobs for row in rows] == [600] * 3


@pytest.mark.parametrize(("log", "num_jobs"), [("kth-sp2-1996", 28_481), ("sdsc-sp2-1998", 54_006)])
def test_jobs_of_a_real_log_start_as_in_a_plain_loop_and_in_pyss(
    traces: Path, log: str, num_jobs: int
) -> None:
    """All do where the pass is the same; with one pass at each instant fewer do."""
    plain, instant, event = of_folder(traces, [log])
    assert plain.num_equal == plain.num_jobs >= num_jobs
    assert event.num_equal == event.num_jobs == num_jobs
    assert 0.9 * num_jobs < instant.num_equal < num_jobs


@pytest.mark.parametrize("ending", ["npz", "swf"])
def test_a_schedule_is_read_as_pyss_writes_it(tmp_path: Path, ending: str) -> None:
    """Those of a log with a known answer for both passes; pyss lists jobs by their ends."""
    log = KNOWN_ANSWERS / "same_second.swf"
    known = np.genfromtxt(log.with_suffix(".csv"), delimiter=",", names=True, dtype=np.int64)
    submit = read_swf(log).columns["submit"].astype(np.int64)
    wait, path = known["start_pass_per_event"] - submit, tmp_path / f"pyss-easy-same.{ending}"
    if ending == "npz":
        np.savez(path, job=known["job"], submit=submit, wait_easy=wait)
    else:
        fields = [line.split() for line in log.read_text().splitlines() if line[0] != ";"]
        lines = [[*f[:2], str(w), *f[3:]] for f, w in zip(fields, wait.tolist(), strict=True)]
        path.write_text("\n".join(" ".join(line) for line in reversed(lines)) + "\n")
    rows = list(with_pyss("same", log, path))
    assert [row.ours for row in rows] == list(PASSES)
    assert [row.num_equal for row in rows] == [8, 12]
    assert "8 of" in str(rows[0])


def test_schedules_of_other_jobs_and_missing_logs_are_refused(tmp_path: Path) -> None:
    log = KNOWN_ANSWERS / "strict.swf"
    submit, job = np.arange(12) * 10, np.arange(1, 13)
    np.savez(tmp_path / "other.npz", job=job, submit=submit, wait_easy=submit)
    with pytest.raises(ValueError, match="is not of the jobs of"):
        list(with_pyss("strict", log, tmp_path / "other.npz"))
    with pytest.raises(FileNotFoundError, match=r"no \*\.swf\.gz in"):
        list(of_folder(tmp_path, []))
    with gzip.open(tmp_path / "strict.swf.gz", "wb") as file:
        file.write(log.read_bytes())
    with pytest.raises(FileNotFoundError, match=r"no nasa\.swf\.gz in"):
        list(of_folder(tmp_path, ["strict", "nasa"]))


def test_another_simulator_plays_the_jobs_as_they_are_killed(tmp_path: Path) -> None:
    """An interpreter that stands for AccaSim's: each job starts when it is submitted."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nawk '{print $2}' \"$2\"\n")
    python.chmod(0o755)
    jobset = jobset_of([0, 1, 2, 3], [50, 10, 10, 10], [20, 10, 10, 10], [2, 2, 1, 1])
    ours, easy, skip = with_accasim("four", jobset, 2, str(python))
    # The first is killed after 20 s. Then the second starts, and then the others together.
    assert (ours.mean_wait, ours.longest_wait) == ((0 + 19 + 28 + 27) / 4, 28)
    assert [easy.num_equal, skip.num_equal, easy.longest_wait] == [1, 1, 0]
