"""A folder with runs and files, whole and damaged, and the promise that every refusal keeps."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from meta.adaptation import untrained_policy
from rllib_configs.loading import load_config, write_config
from rllib_configs.policy_files import write_policy
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tune_jobs import cli

MOST_CHARACTERS = 500
JOBS = "arrival,duration,cpu,gpu\n" + "".join(
    f"{k},{1 + k % 5},{1 + k % 4},1\n" for k in range(400)
)

Refuse = Callable[[str], str]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command lines of this folder name; nothing of it is ever changed."""
    folder = tmp_path_factory.mktemp("wrong")
    make_run(folder / "runs" / "good")
    scorer = load_config("deeprm-ppo", [*SMALL_TASK])
    policy = folder / "runs" / "scorer"
    write_policy(untrained_policy(scorer, 0).weights, scorer, policy / "policy")
    write_config(scorer, policy / "config.yaml")
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    (folder / "empty").mkdir()
    (folder / "file").write_text("x")
    (folder / "good.csv").write_text(JOBS)
    return folder


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Names, sizes and times of all that lies below a folder."""
    return {
        str(path.relative_to(folder)): (status.st_size, status.st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        for status in [path.lstat()]
        if not path.is_dir()
    } | {str(path.relative_to(folder)): (0, 0) for path in folder.rglob("*") if path.is_dir()}


@pytest.fixture
def refuse(
    made: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Refuse:
    """Gives a command line in the folder; it must be refused as is promised to users."""
    monkeypatch.chdir(made)
    for place in (
        "tune_jobs.runs.training.ray_session",
        "tune_jobs.adapting.specialists.ray_session",
        "tune_jobs.sweeps.sweeping.ray_session",
        "tune_jobs.comparing.evaluating.compare_policies",
        "tune_jobs.comparing.guard_report.calibrate",
        "tune_jobs.benchmarks.reporting.measure_subjects",
        "tune_jobs.tracking.server.run_server",
        "meta.adaptation.rollout",
    ):
        monkeypatch.setattr(place, accepted, raising=False)

    def give(line: str) -> str:
        before = tree(made)
        status = cli.run(cli.metasched, shlex.split(line))
        shown = capfd.readouterr()
        assert status == 2, (status, shown)
        assert shown.out == ""
        error = shown.err
        assert error.startswith("metasched: ")
        assert error.count("\n") == 1, error
        assert error.endswith("\n")
        assert len(error) < MOST_CHARACTERS
        assert "Traceback" not in error
        assert tree(made) == before
        return error

    return give


def accepted(*args: object, **options: object) -> None:
    """Stands where work would begin."""
    raise AssertionError("the input was accepted")
