"""The log that ships: made again by the command on its page, and found by its name."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cluster_env.workloads.files import SHIPPED
from cluster_env.workloads.formats import read_log
from rllib_configs.loading import load_config
from tests.conftest import REPOSITORY
from tune_jobs import generate

SETTINGS = ["task.world.kind=hpc", "task.workload.kind=trace", "task.workload.path=example"]
SETTINGS += ["task.workload.whole=true"]


def test_the_command_of_the_page_makes_it_again_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (SHIPPED / "README.md").read_text()
    (command,) = re.findall(r"^ {4}metasched generate (.+)$", page, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(generate.command, shlex.split(command), catch_exceptions=False)
    made = (tmp_path / "example.swf").read_bytes()
    assert made == (SHIPPED / "example.swf").read_bytes()
    assert len(made) < 200_000


def test_it_has_what_a_log_of_a_site_has() -> None:
    jobs = read_log("example")
    assert (jobs.processors, jobs.num_jobs) == (256, 3000)
    assert jobs.epoch
    assert jobs.wait is not None
    assert jobs.wait.mean() > 600
    assert not jobs.dropped
    assert {name: np.unique(ids).size for name, ids in jobs.ids.items()} == {
        "user": 40,
        "group": 8,
        "queue": 3,
    }
    assert (jobs.estimate >= jobs.run).all()
    assert 0.8 < jobs.load((256,))[0] < 0.9
    # Users have habits: among the jobs of a user with one size and limit, run times vary less.
    log_run = np.log(jobs.run)
    habit = np.stack([jobs.ids["user"], jobs.demand[:, 0], jobs.estimate], axis=1)
    _, group = np.unique(habit, axis=0, return_inverse=True)
    group = group.ravel()
    means = np.bincount(group, log_run) / np.bincount(group)
    assert np.var(log_run - means[group]) < 0.5 * np.var(log_run)
    # By day more is submitted than by night, and on weekdays more than on weekends.
    hour, day = jobs.submit // 3600 % 24, jobs.submit // 86_400 % 7
    assert ((hour >= 8) & (hour < 20)).mean() > 0.6
    assert (day >= 5).mean() < 2 / 7


def test_a_file_of_its_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_log("example").num_jobs == 3000
    config = load_config("hpc-smoke", SETTINGS)
    assert str(config.task.workload.path) == "example"  # on any machine, not an absolute path
    Path("example").write_text(
        "; MaxProcs: 4\n" + "".join(f"{k} {9 * k} -1 5 2{' -1' * 13}\n" for k in (1, 2))
    )
    assert read_log("example").num_jobs == 2
    config = load_config("hpc-smoke", SETTINGS)
    assert Path(config.task.workload.path) == tmp_path / "example"


def test_it_travels_with_the_package_and_to_clusters() -> None:
    data = (REPOSITORY / "pyproject.toml").read_text()
    assert '"*.swf"' in data
    for name in (".rayignore", ".dockerignore", ".gitignore"):
        lines = (REPOSITORY / name).read_text().splitlines()
        assert not [line for line in lines if ".swf" in line or "logs" in line]
