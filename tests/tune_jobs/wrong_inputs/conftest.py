"""A folder with runs and files, whole and damaged, and the promise that every refusal keeps."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from meta.adaptation import untrained_policy
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.policy_files import write_policy
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tune_jobs import cli

MOST_CHARACTERS = 500
JOBS = "arrival,duration,cpu,gpu\n" + "".join(
    f"{k},{1 + k % 5},{1 + k % 4},1\n" for k in range(400)
)

SITE = "arrival,duration,processors" + "".join(
    f"\n{600 * k},{60 + k},{1 + k % 4}" for k in range(300)
)
SLURM = ("squeue", "sinfo", "scontrol")
JOINT = ("deeprm-joint", ("training.hidden=4",))
RECORDED = {"experiment": "e", "key": "0" * 32, "process": {}, "ended": True, "sent": False}

WORK = (
    # Whatever is measured for a table begins here, and whatever else is played in one of these.
    "tune_jobs.measuring.work.Work.measure",
    "cluster_env.worlds.accrual.world.Accrual.simulator",
    "cluster_env.worlds.deeprm.world.DeepRM.simulator",
    "cluster_env.worlds.graphs.world.Graphs.simulator",
    "cluster_env.worlds.hpc.world.HPC.simulator",
    "cluster_env.worlds.panda.world.Panda.simulator",
    "ray.init",
    "tune_jobs.experiments.running.carry_out_all",
    "tune_jobs.replaying.generating.write_table",
    "tune_jobs.runs.training.ray_session",
    "tune_jobs.sweeps.sweeping.ray_session",
    "tune_jobs.processes.ray_session._start",
    "tune_jobs.tracking.sending.LocalStore",
    "tune_jobs.tracking.server.mend_addresses",
    "tune_jobs.site.slurm.SlurmBackend.site",
)
"""Where work begins; `test_every_option` sees that each command reaches one of these places."""

Refuse = Callable[[str], str]


class Accepted(BaseException):
    """A command began to work; no command can take it for an error of its own."""


def replace_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises `Accepted` where work would begin; the working directory has programs of Slurm."""
    monkeypatch.setenv("PATH", str(Path.cwd() / "bin"), prepend=os.pathsep)

    def accepted(*args: object, **options: object) -> None:
        raise Accepted("the input was accepted")

    for place in WORK:
        monkeypatch.setattr(place, accepted)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command lines of this folder name; nothing of it is ever changed."""
    folder = tmp_path_factory.mktemp("wrong")
    make_run(folder / "runs" / "good")
    for name, preset, settings in (("scorer", "deeprm-ppo", SMALL_TASK), ("joint", *JOINT)):
        config = load_config(preset, settings)
        write_policy(untrained_policy(config, 0).weights, config, folder / f"runs/{name}/policy")
        write_config(config, folder / f"runs/{name}/config.yaml")
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    (folder / "empty").mkdir()
    (folder / "file").write_text("x")
    (folder / "good.csv").write_text(JOBS)
    (folder / "site.csv").write_text(SITE)
    (folder / "tracked" / "run" / "tracking").mkdir(parents=True)
    (folder / "tracked" / "mlflow.db").write_bytes(b"")
    (folder / "tracked" / "run" / "tracking" / "run.json").write_text(json.dumps(RECORDED))
    for program in SLURM:  # so that a command line is not refused because there is no Slurm
        (folder / "bin" / program).parent.mkdir(exist_ok=True)
        (folder / "bin" / program).write_text("#!/bin/sh\nexit 1\n")
        (folder / "bin" / program).chmod(0o755)
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
    replace_work(monkeypatch)

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
