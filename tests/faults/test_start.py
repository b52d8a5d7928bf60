"""What is wrong with the start is said before Ray starts, or when it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import load_config, write_config
from tests.waiting import PATIENCE_S
from tune_jobs import cli
from tune_jobs.processes import ray_session
from tune_jobs.runs import training


@pytest.mark.parametrize("broken", [False, True])
def test_a_start_that_is_not_there_is_refused_before_ray_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.setattr(training, "ray_session", lambda *_: pytest.fail("Ray was started"))
    start, run = tmp_path / "start", tmp_path / "run"
    if broken:
        start.mkdir()
        write_config(load_config("deeprm-smoke"), start / "config.yaml")
        (start / "weights.pt").write_bytes(b"no weights")
    arguments = ["train", "deeprm-smoke", "--run", str(run), "--set", f"training.start={start}"]
    assert cli.run(cli.metasched, arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert ("weights.pt is broken" if broken else f"no trained policy in {start}") in error
    assert not run.exists()


def test_a_command_line_that_ray_cannot_pass_on_is_refused_before_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the locale C, letters beyond ASCII reach Python as surrogates."""
    config = load_config("deeprm-smoke")
    monkeypatch.setattr(sys, "argv", ["metasched", "train", "--run", "runs/\udcc3\udca4"])
    with pytest.raises(InputError, match=r"letters of 'runs/\?\?'.*set PYTHONUTF8=1"):
        ray_session.check_placement(config, None)
    monkeypatch.setattr(sys, "argv", ["metasched", "train", "--run", "runs/ä"])
    ray_session.check_placement(config, None)


def test_a_shell_that_lets_no_library_be_mapped_is_refused_in_a_sentence(tmp_path: Path) -> None:
    line = 'ulimit -v 3000000; exec "$0" -m tune_jobs.train deeprm-smoke --run "$1"'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "this shell lets a process map 3.1 GB, but Ray and PyTorch map more" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("wrong", [True, False])
def test_a_wrong_token_of_a_cluster_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture, wrong: bool
) -> None:
    """Ray says that it has failed to connect, and its core why, twenty times."""
    import ray

    reason = "Unauthenticated: RPC error: InvalidAuthToken" if wrong else "Deadline exceeded"

    def join(**options: object) -> None:
        for second in range(20):
            line = f"[2026-11-25 23:18:{second:02},074 W 7 7] gcs_client.cc:210: {reason}\n"
            os.write(2, line.encode())
        raise ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379")

    monkeypatch.setattr(ray, "init", join)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    expected = "asks for a token, .* set RAY_AUTH_MODE=token" if wrong else "Failed to connect"
    session = ray_session.ray_session(load_config("deeprm-smoke"), "10.0.0.1:6379")
    with pytest.raises(InputError, match=f"10.0.0.1:6379: .*{expected}"), session:
        pass
    assert capfd.readouterr().err == ""


def test_a_long_tmpdir_of_a_batch_system_does_not_reach_the_sockets_of_ray(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    long = "/scratch/" + "x" * 91
    for name, folder, root in (
        ("TMPDIR", "/scratch/job", None),
        ("TMPDIR", long, "/tmp/ray"),
        ("RAY_TMPDIR", "/scratch/job", None),
    ):
        monkeypatch.setenv(name, folder)
        assert ray_session._session_root() == root
    monkeypatch.setenv("RAY_TMPDIR", long)
    with pytest.raises(InputError, match=r"by [0-9]+ characters; set RAY_TMPDIR to a shorter"):
        ray_session.check_placement(load_config("deeprm-smoke"), None)
