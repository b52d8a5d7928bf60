"""The job log that comes with the package, by its name."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.shipped import shipped_logs
from rllib_configs.config.loading import load_config
from tests.example_log import JOBS, PROCESSORS, write_example


def test_the_example_is_what_its_module_makes(tmp_path: Path) -> None:
    made = tmp_path / "example.swf"
    write_example(made)
    shipped = shipped_logs()["example"]
    assert shipped.read_bytes() == made.read_bytes()
    assert shipped.stat().st_size < 200_000


def test_its_name_stands_for_the_log_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = read_log("example")
    assert jobs.num_jobs == JOBS
    assert jobs.processors == PROCESSORS
    assert jobs.wait is not None
    config = load_config("hpc-smoke", {"task.workload.trace": "example"})
    assert config.to_dict()["task"]["workload"]["path"] == "example"
    monkeypatch.chdir("/")
    assert load_config("hpc-smoke", {"task.workload.trace": "example"}).task.build() is not None


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("example").write_text("arrival,duration,processors\n0,5,1\n9,5,2\n")
    assert read_log("example").num_jobs == 2


def test_a_name_that_is_no_log_is_still_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_log(tmp_path / "example")
