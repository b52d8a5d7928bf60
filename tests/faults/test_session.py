"""A local Ray keeps nothing of each call, and leaves nothing behind, unless something failed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SESSIONS = """
import time
from pathlib import Path
import ray
from rllib_configs.loading import load_config
from tune_jobs.terminal.ray_session import ray_session

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
try:
    with ray_session(config):
        raise RuntimeError
except RuntimeError:
    assert len(found()) >= 2, found()
"""


@pytest.mark.integration
def test_a_session_keeps_no_calls_and_leaves_its_folder_only_where_something_failed() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="ray") as folder:  # sockets need it short
        done = subprocess.run(
            [sys.executable, "-c", SESSIONS.format(folder=folder)],
            env={**os.environ, "RAY_TMPDIR": folder, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list(Path(folder).glob("**/session_latest"))  # of the one that failed
