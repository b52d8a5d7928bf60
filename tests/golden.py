"""Golden data, some of which may be absent."""

from pathlib import Path

import pytest


def stored(path: Path) -> Path:
    """A file or folder of the golden data; a test that needs it is skipped where it is absent."""
    if not path.exists():
        pytest.skip(f"no golden data in {path}")
    return path
