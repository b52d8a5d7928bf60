"""A head that is gone is said, with how to go on, before Ray's core ends the process."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, wait_for
from tune_jobs.terminal import head


def test_a_head_that_does_not_answer_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    answers = iter([True, False, False, False, True, False, False, False, False])
    monkeypatch.setattr(head, "_answers", lambda address: next(answers))
    head._watch("10.0.0.1:6379", "metasched tune --resume 'runs/a b'", lambda seconds: False)
    assert next(answers, None) is None  # it has looked at all of them, and ended
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "head of Ray at 10.0.0.1:6379 does not answer" in error
    assert error.endswith("metasched tune --resume 'runs/a b'\n")


def test_nothing_is_said_when_the_command_has_ended(capsys: pytest.CaptureFixture) -> None:
    head._watch("10.0.0.1:6379", "", lambda seconds: True)
    assert capsys.readouterr().err == ""


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.service
def test_a_sweep_whose_gcs_is_killed_names_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tune_jobs.tune", "smoke", "--runs", str(tmp_path / "runs")]
    command += ["--set", "tracking.enabled=false", "--set", "training.iterations=100000"]
    log = tmp_path / "log"
    with log.open("w") as out:
        sweep = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for(lambda: "2 running" in log.read_text(), "two trials", process=sweep)
        (gcs,) = (
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if b"gcs_server" in path.read_bytes() and f"PPid:\t{sweep.pid}\n" in status_of(path)
        )
        time.sleep(1)
        subprocess.run(["kill", f"-{signal.SIGKILL}", str(gcs)], check=True)
        assert sweep.wait(PATIENCE_S) == 1
    finally:
        sweep.kill()
        sweep.wait()
    said = log.read_text()
    assert "does not answer" in said
    assert f"tune --resume {tmp_path / 'runs'}/smoke-" in said


def status_of(command_line: Path) -> str:
    return command_line.with_name("status").read_text()
