"""``metasched generate``: logs that readers understand, the same for the same seed."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from tune_jobs import generate


def write(path: Path, *args: str) -> Path:
    options = [str(path), "--jobs", "50", "--processors", "32", *args]
    result = CliRunner().invoke(generate.command, options, catch_exceptions=False)
    assert result.exit_code == 0
    assert f"Wrote 50 jobs to {path}" in result.output
    return path


def test_a_log_can_be_read_and_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    tsafrir = ("--set", "task.workload.estimates=tsafrir")
    first = write(tmp_path / "a.csv", *tsafrir)
    assert first.read_bytes() == write(tmp_path / "b.csv", *tsafrir).read_bytes()
    assert first.read_bytes() != write(tmp_path / "c.csv", *tsafrir, "--seed", "1").read_bytes()
    as_csv, as_swf = read_log(first), read_log(write(tmp_path / "d.swf.gz", *tsafrir))
    assert as_swf.processors == 32
    for name in ("submit", "run", "estimate", "demand"):
        assert np.array_equal(getattr(as_csv, name), getattr(as_swf, name))
    assert (as_csv.estimate > as_csv.run).any()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["--config", "deeprm"],
            "the world hpc that draws its jobs, but bimodal of the world deeprm",
        ),
        (["--set", "task.workload.kind=lublins"], "lublin"),
    ],
)
def test_what_has_no_log_in_seconds_is_refused(tmp_path: Path, args: list[str], words: str) -> None:
    options = [str(tmp_path / "a.csv"), *args]
    with pytest.raises(InputError, match=words):
        CliRunner().invoke(generate.command, options, catch_exceptions=False)
    assert not list(tmp_path.iterdir())
