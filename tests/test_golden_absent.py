"""Without golden data the tests that compare with them are skipped by name, and none passes."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE_S

REPOSITORY = Path(__file__).resolve().parent.parent


def files_with_golden_tests() -> list[str]:
    """All that name the fixture; nothing else can be marked."""
    texts = ((path, path.read_text()) for path in (REPOSITORY / "tests").rglob("test_*.py"))
    return [str(path) for path, text in texts if "golden" in text and path != Path(__file__)]


def test_golden_tests_are_skipped_by_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "golden", "-p", "no:randomly"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *files_with_golden_tests()],
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
