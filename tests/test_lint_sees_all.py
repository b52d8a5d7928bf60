"""What checks style sees every Python file that Git tracks, in whatever folder."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.waiting import PATIENCE_S


def python_files(name: str, *arguments: str) -> set[str]:
    """Python files that a program lists, by their paths below the root.

    The test is skipped where the program is missing, or where Git knows nothing of the folder.
    """
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    if name == "git" and not (REPOSITORY / ".git").exists():
        pytest.skip("git does not track this copy")
    done = subprocess.run(
        [program, *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    paths = {(REPOSITORY / line).relative_to(REPOSITORY) for line in done.stdout.splitlines()}
    return {str(path) for path in paths if path.suffix == ".py"}


def tracked() -> set[str]:
    """Those that are tracked and that nobody has just deleted."""
    return {path for path in python_files("git", "ls-files") if (REPOSITORY / path).exists()}


def test_ruff_checks_all_tracked_files() -> None:
    files = tracked()
    assert "tune_jobs/runs/training.py" in files
    assert files - python_files("ruff", "check", "--show-files") == set()
