"""A copy of the program finds what an installed one has compiled, and only if nothing differs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_env.core.kernel_cache import COMPILED_PACKAGES, installed_twin, source_hash

LOCATORS = "cluster_env.core.kernel_cache.InstalledCopyLocator,InTreeCacheLocator"
KERNEL = """
from numba import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""
ASK = "from cluster_env.kernel import double; double(2); print(double._cache.cache_path)"


def make_copy(root: Path) -> Path:
    """Both packages with one compiled function, and the locator itself."""
    source = Path(__file__).parents[2] / "cluster_env" / "core" / "kernel_cache.py"
    for package in COMPILED_PACKAGES:
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").touch()
    (root / "cluster_env" / "core").mkdir()
    (root / "cluster_env" / "core" / "__init__.py").touch()
    (root / "cluster_env" / "core" / "kernel_cache.py").write_bytes(source.read_bytes())
    (root / "cluster_env" / "kernel.py").write_text(KERNEL)
    return root


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    return make_copy(tmp_path / "submitted"), make_copy(tmp_path / "installed")


def cache_of(copy: Path, *others: Path) -> Path:
    """Where the copy's function is cached, in a process that finds the others behind it."""
    path = os.pathsep.join(map(str, (copy, *others)))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_LOCATOR_CLASSES": LOCATORS}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-P", "-c", ASK]
    done = subprocess.run(
        command, env=environment, cwd=copy, capture_output=True, text=True, timeout=60, check=True
    )
    return Path(done.stdout.strip())


def test_a_copy_shares_the_cache_of_the_installed_one(copies):
    submitted, installed = copies
    assert cache_of(submitted, installed) == installed / "cluster_env" / "__pycache__"
    assert list((installed / "cluster_env" / "__pycache__").glob("kernel.double-*.nbc"))
    assert not list(submitted.rglob("*.nbc"))


@pytest.mark.parametrize("package", COMPILED_PACKAGES)
def test_a_copy_that_differs_anywhere_has_a_cache_of_its_own(copies, package):
    submitted, installed = copies
    (submitted / package / "other.py").write_text("CHANGED = True\n")
    assert installed_twin(submitted, (str(submitted), str(installed))) is None
    if package == COMPILED_PACKAGES[0]:
        assert cache_of(submitted, installed) == submitted / "cluster_env" / "__pycache__"


def test_an_installed_copy_is_its_own_and_needs_no_twin(copies):
    _, installed = copies
    assert installed_twin(installed, (str(installed),)) is None


def test_moving_a_line_from_one_file_to_the_next_changes_the_hash(copies):
    submitted, installed = copies
    for root, first, second in ((submitted, "ab", "c"), (installed, "a", "bc")):
        (root / "cluster_env" / "x.py").write_text(first)
        (root / "cluster_env" / "y.py").write_text(second)
    assert source_hash(submitted) != source_hash(installed)
