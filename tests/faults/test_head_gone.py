"""Parts of Ray that are gone are said, with how to go on, before its core ends the process."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, wait_for
from tune_jobs.processes import head


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


LISTENER = """
import socket, sys
own = socket.socket(socket.AF_UNIX)
own.bind(sys.argv[1])
own.listen()
print("listens", flush=True)
own.accept()[0].recv(1)
print("was looked at", flush=True)
own.accept()
"""


@pytest.mark.parametrize("is_over", [False, True])
def test_a_raylet_that_ends_is_said_unless_the_command_has_ended(
    is_over: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    place, over = tmp_path / "raylet", threading.Event()
    command = [sys.executable, "-c", LISTENER, str(place)]
    raylet = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert raylet.stdout.readline() == "listens\n"
    watch = threading.Thread(
        target=head._watch_raylet, args=(str(place), "metasched train --resume run", over)
    )
    watch.start()
    assert raylet.stdout.readline() == "was looked at\n"
    if is_over:
        over.set()
        watch.join(PATIENCE_S)
    raylet.kill()
    raylet.communicate(timeout=PATIENCE_S)
    watch.join(PATIENCE_S)
    assert not watch.is_alive()
    error = capsys.readouterr().err
    assert error.count("\n") == (0 if is_over else 1)
    assert ("raylet of Ray on this machine has ended" in error) != is_over
    assert error.endswith("metasched train --resume run\n") != is_over


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.service
@pytest.mark.parametrize(
    ("part", "words"), [(b"gcs_server", "does not answer"), (b"raylet/raylet", "has ended")]
)
def test_a_sweep_that_loses_a_part_of_ray_names_how_to_go_on(
    part: bytes, words: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tune_jobs.tune", "smoke", "--runs", str(tmp_path / "runs")]
    command += ["--set", "tracking.enabled=false", "--set", "training.iterations=100000"]
    log = tmp_path / "log"
    with log.open("w") as out:
        sweep = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for(lambda: "2 running" in log.read_text(), "two trials", process=sweep)
        (lost,) = (
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if part in path.read_bytes() and f"PPid:\t{sweep.pid}\n" in status_of(path)
        )
        time.sleep(1)
        subprocess.run(["kill", f"-{signal.SIGKILL}", str(lost)], check=True)
        assert sweep.wait(PATIENCE_S) == 1
    finally:
        sweep.kill()
        sweep.wait()
    said = log.read_text()
    assert words in said
    assert f"tune --resume {tmp_path / 'runs'}/smoke-" in said


def status_of(command_line: Path) -> str:
    return command_line.with_name("status").read_text()
