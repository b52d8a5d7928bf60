"""A local Ray keeps nothing of each call, and leaves nothing behind, unless something failed."""

import sys
import tempfile
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, run_python, started
from tune_jobs.processes import ray_session

SESSIONS = """
import time
from pathlib import Path
import ray
from rllib_configs.config.loading import load_config
from tune_jobs.processes.ray_session import ray_session

def found():
    return sorted(path.name for path in Path({folder!r}).glob("**/session_*"))

@ray.remote(num_cpus=0)
def nothing():
    return None

config = load_config("deeprm-smoke")
with ray_session(config):
    assert len(found()) == 2, found()
    ray.get([nothing.remote() for _ in range(20)])
    time.sleep(3)  # by default they would be reported every second
    assert ray.timeline() == [], "Ray keeps what happened to each call: it grows without end"
assert found() == [], found()
time.sleep(2)
assert found() == [], found()  # nobody was left who could bring it back
try:
    with ray_session(config):
        raise RuntimeError
except RuntimeError:
    # A session that this process starts later may bring back the folder of the first.
    assert len(found()) >= 2, found()
"""


@pytest.mark.integration
def test_a_session_keeps_no_calls_and_leaves_its_folder_only_where_something_failed() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="ray") as folder:  # sockets need it short
        done = run_python("-c", SESSIONS.format(folder=folder), RAY_TMPDIR=folder)
        assert done.returncode == 0, done.stderr
        assert list(Path(folder).glob("**/session_latest"))  # of the one that failed


def test_a_session_waits_for_its_last_writer_and_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_session, "_WRITERS_LIMIT_S", PATIENCE_S)
    folder = tmp_path / "session_1"
    folder.mkdir()
    # As Ray's processes do, it has the folder in its command line and writes when it ends.
    code = "import pathlib, sys, time; time.sleep(float(sys.argv[2]))\n"
    code += "path = pathlib.Path(sys.argv[1]); path.mkdir(exist_ok=True)\n"
    code += "(path / 'late.log').touch()"
    late = [sys.executable, "-c", code]
    with (
        started([*late, str(folder), "0.5"]) as writer,
        started([*late, str(tmp_path / "session_2"), "600"]) as other,
    ):
        ray_session._remove_session(folder)
        assert not ray_session._is_named(folder)
        writer.wait(PATIENCE_S)
        assert not folder.exists()
        assert other.poll() is None


def test_a_writer_that_never_ends_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_session, "_WRITERS_LIMIT_S", 0.2)
    folder = tmp_path / "session_1"
    folder.mkdir()
    endless = [sys.executable, "-c", "import time; time.sleep(600)", str(folder)]
    with started(endless) as writer:
        ray_session._remove_session(folder)
        assert writer.poll() is None
        assert not folder.exists()
