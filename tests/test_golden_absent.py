"""Without golden data a test that compares with them is skipped by name."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE_S

REPOSITORY = Path(__file__).resolve().parent.parent


FILE = "tests/cluster_env/worlds/deeprm/test_golden_deeprm.py"


def test_golden_tests_are_skipped_by_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "golden", "-p", "no:randomly"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", FILE],
        env={**os.environ, "METASCHED_GOLDEN": str(tmp_path)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    last = done.stdout.splitlines()[-1]
    assert re.match(r"\d+ skipped", last)
    assert "passed" not in last
    assert "test_golden_deeprm.py" in done.stdout
    assert "no golden data" in done.stdout
