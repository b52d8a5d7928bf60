"""A local Ray leaves nothing behind, unless something failed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SESSIONS = """
from pathlib import Path
from rllib_configs.loading import load_config
from tune_jobs.terminal.ray_session import ray_session

def found():
    return sorted(path.name for path in Path({folder!r}).glob("**/session_*"))

config = load_config("deeprm-smoke")
with ray_session(config):
    assert len(found()) == 2, found()
assert found() == [], found()
try:
    with ray_session(config):
        raise RuntimeError
except RuntimeError:
    assert len(found()) >= 2, found()
"""


@pytest.mark.integration
def test_a_session_leaves_its_folder_only_where_something_failed() -> None:
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
